"""Tables of Trino's Iceberg plugin, read by PyIceberg from their metadata file."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable

from rowmerge_nb.spi.metadata import IndependentRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.connectors.trino.trino_handles import TrinoColumnHandle

_ROOT: Final = "local.location"
"""The catalog's property with the folder of ``local:///``."""
_POSITION_DELETES: Final = ["file_path", "pos"]


def read_table(
    metadata_file: str,
    properties: Mapping[str, str],
    columns: Sequence[TrinoColumnHandle],
    most: int,
) -> IndependentRows | None:
    """Read the table of a metadata file; None if the file is not on this machine."""
    root = properties.get(_ROOT, "")
    if local_path(metadata_file, root) is None:
        return None
    with tempfile.TemporaryDirectory(prefix="rowmerge_nb-deletes-") as folder:
        files = _LocalFiles(root, Path(folder))
        metadata = FromInputFile.table_metadata(files.new_input(metadata_file))
        # A table's own properties must not name the class that reads files.
        table = StaticTable(("table",), metadata, metadata_file, files, NoopCatalog("static"))
        names = tuple(column.name for column in columns)
        rows = table.scan(selected_fields=names, limit=most + 1).to_arrow()
    reader = f"PyIceberg {pyiceberg.__version__}"
    if rows.num_rows > most:
        return IndependentRows(reader, None)
    arrays = [_conformed(rows[column.name], column) for column in columns]
    return IndependentRows(reader, pa.table(arrays, list(names)))


def local_path(location: str, root: str) -> str | None:
    """Return the path of a file on this machine; None for another file system.

    >>> local_path("local:///shop/a.json", "/lake"), local_path("file:/lake/a%20b.json", "")
    ('/lake/shop/a.json', '/lake/a b.json')
    >>> local_path("s3://lake/a.json", "/lake") is None
    True
    """
    parts = urlsplit(location)
    if parts.scheme == "local" and root:
        return f"{root.rstrip('/')}/{location.partition('://')[2].lstrip('/')}"
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return unquote(parts.path)
    return location if not parts.scheme and location.startswith("/") else None


class _LocalFiles(PyArrowFileIO):
    """Files on this machine, by the locations that Trino has for them."""

    def __init__(self, root: str, folder: Path) -> None:
        super().__init__({})
        self._root = root
        self._folder = folder

    def new_input(self, location: str) -> PyArrowFile:
        path = local_path(location, self._root)
        if path is None:
            raise ValueError(f"{location} is not a file of this machine")
        if path.endswith(".parquet") and pq.read_schema(path).names == _POSITION_DELETES:
            path = str(self._plainly_encoded(path))
        return super().new_input(path)

    def _plainly_encoded(self, path: str) -> Path:
        """Return a copy of a file of deletes without the encoding DELTA_LENGTH_BYTE_ARRAY, which
        PyIceberg cannot read.
        """
        copy = self._folder / f"{uuid.uuid4().hex}.parquet"
        pq.write_table(pq.read_table(path), copy)
        return copy


def _conformed(array: pa.ChunkedArray, column: TrinoColumnHandle) -> Any:
    if column.type.base == "uuid":
        texts = [
            None
            if value is None
            else str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=value))
            for value in array.to_pylist()
        ]
        return pa.array(texts, column.type.arrow)
    return array.cast(column.type.arrow)
