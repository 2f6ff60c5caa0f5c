"""Version 3 of Iceberg's format, as far as pyiceberg 0.12 does not have it.

pyiceberg has models of version 3. It reads manifests without the fields of that version, and
refuses to write metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.table import Transaction

VERSION: Final = 3
FIRST_ROW_ID: Final = 15
"""The index of a manifest's first row id in its record."""
_FILE_FIRST_ROW_ID, _REFERENCED, _OFFSET, _SIZE = 16, 17, 18, 19
"""The indexes of the fields of version 3 in the record of a file."""


def support_version_3() -> None:
    """Make pyiceberg read the fields of version 3, and write its metadata, in this process."""
    from pyiceberg import manifest
    from pyiceberg.table import update
    from pyiceberg.table.metadata import TableMetadataV3
    from pyiceberg.typedef import IcebergBaseModel

    read_version: int = manifest.DEFAULT_READ_VERSION
    if read_version == VERSION:
        return
    manifest.DEFAULT_READ_VERSION = VERSION  # type: ignore[assignment]
    # Manifests that were read before lack their first row ids.
    manifest.clear_manifest_cache()
    TableMetadataV3.model_dump_json = IcebergBaseModel.model_dump_json  # type: ignore[method-assign]
    update.SUPPORTED_TABLE_FORMAT_VERSION = VERSION  # type: ignore[attr-defined]
    _begin_row_ids()
    _inherit_row_ids()
    _keep_defaults()


def _begin_row_ids() -> None:
    from pyiceberg.table import update

    apply = update._apply_table_update  # noqa: SLF001
    upgrade_metadata: Any = apply.dispatch(update.UpgradeFormatVersionUpdate)

    def upgrade_with_row_ids(change: Any, metadata: Any, context: Any) -> Any:
        upgraded = upgrade_metadata(change, metadata, context)
        if upgraded.format_version < VERSION or upgraded.next_row_id is not None:
            return upgraded
        return upgraded.model_copy(update={"next_row_id": 0})

    apply.register(update.UpgradeFormatVersionUpdate, upgrade_with_row_ids)


def _inherit_row_ids() -> None:
    from pyiceberg.manifest import ManifestFile, _ManifestCache

    fetch = ManifestFile.fetch_manifest_entry

    def fetch_with_row_ids(
        self: ManifestFile, io: FileIO, discard_deleted: bool = True
    ) -> list[ManifestEntry]:
        entries = fetch(self, io, discard_deleted)
        _assign_row_ids(self, entries)
        return entries

    ManifestFile.fetch_manifest_entry = fetch_with_row_ids  # type: ignore[method-assign]
    get = _ManifestCache.get_or_cache

    def get_with_row_ids(self: Any, manifest: ManifestFile) -> ManifestFile:
        # The first commit after an upgrade lists older manifests again, then with row ids.
        entry = get(self, manifest)
        return entry if entry[FIRST_ROW_ID] == manifest[FIRST_ROW_ID] else manifest

    cache: Any = _ManifestCache
    cache.get_or_cache = get_with_row_ids


def _keep_defaults() -> None:
    """Keep the defaults of columns that get fresh ids, as those of a new table."""
    from pyiceberg.schema import _SetFreshIDs
    from pyiceberg.types import StructType

    set_ids = _SetFreshIDs.struct

    def set_ids_with_defaults(self: Any, struct: StructType, results: list[Any]) -> StructType:
        fields = zip(struct.fields, set_ids(self, struct, results).fields, strict=True)
        return StructType(
            *(
                fresh.model_copy(
                    update={
                        name: getattr(old, name) for name in ("initial_default", "write_default")
                    }
                )
                for old, fresh in fields
            )
        )

    visitor: Any = _SetFreshIDs
    visitor.struct = set_ids_with_defaults


def upgrade(transaction: Transaction, version: int) -> None:
    """Upgrade a table to a version that is not below its own."""
    from pyiceberg.table.update import UpgradeFormatVersionUpdate

    change = UpgradeFormatVersionUpdate.model_validate({"format-version": version})
    transaction._apply((change,), ())  # noqa: SLF001


def first_row_id_of(file: DataFile) -> int | None:
    number: int | None = file[_FILE_FIRST_ROW_ID]
    return number


def referenced_file(file: DataFile) -> str | None:
    """Return the only data file that a delete file refers to, if its entry names it."""
    path: str | None = file[_REFERENCED]
    return path


def vector_range(file: DataFile) -> tuple[int, int] | None:
    """Return the offset and size of a deletion vector in its file, None for other files."""
    offset, size = file[_OFFSET], file[_SIZE]
    return None if offset is None or size is None else (offset, size)


def key_of(file: DataFile) -> str:
    """Return what identifies a file among those of a snapshot: one file has many deletion vectors."""
    vector = vector_range(file)
    return file.file_path if vector is None else f"{file.file_path}#{vector[0]}"


def _assign_row_ids(manifest: ManifestFile, entries: Iterable[ManifestEntry]) -> None:
    from pyiceberg.manifest import ManifestContent, ManifestEntryStatus

    next_id = manifest[FIRST_ROW_ID] if len(manifest) > FIRST_ROW_ID else None
    if next_id is None or manifest.content != ManifestContent.DATA:
        return
    for entry in entries:
        file = entry.data_file
        if entry.status != ManifestEntryStatus.DELETED and file[_FILE_FIRST_ROW_ID] is None:
            file[_FILE_FIRST_ROW_ID] = next_id
            next_id += file.record_count
