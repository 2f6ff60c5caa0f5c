"""No property value, disk or other process causes an internal error of a statement."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import pyarrow as io

from rowmerge_nb import IcebergConnector
from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError
from rowmerge_nb.connectors.iceberg import notes
from rowmerge_nb.connectors.iceberg.metadata_tables import METADATA_TABLES
from rowmerge_nb.connectors.shared.retention import Retention
from rowmerge_nb.spi import SaveMode, SchemaTableName
from rowmerge_nb.spi.alterations import SetProperties
from tests.connectors.iceberg.kit import (
    COLUMNS,
    Statement,
    contents,
    insert,
    make_table,
    rows,
    table,
)
from tests.connectors.iceberg.test_notes import STATEMENTS, executing

pytestmark = [
    pytest.mark.not_quick,
    pytest.mark.filterwarnings("ignore:No preferred file implementation"),
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IcebergConnector]:
    # A location without a leading slash is one below the working directory.
    monkeypatch.chdir(tmp_path)
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1, 2))
        insert(store, rows(3))
        yield store


def attempt(action: Callable[[], Any]) -> None:
    """Run an action that may only fail with one of our errors."""
    with suppress(RowMergeError):
        action()


def run(store: IcebergConnector, kind: str) -> None:
    statement = Statement(store)
    try:
        STATEMENTS[kind](statement)
        statement.commit()
    finally:
        statement.rollback()


VALUES = ("", "x", "-5", "9" * 40, "nonsense://a/b", "truncate(0)")


@pytest.mark.not_quick
@pytest.mark.parametrize(
    "name",
    [
        "commit.retry.num-retries",
        "commit.manifest.min-count-to-merge",
        "commit.manifest-merge.enabled",
        "history.expire.min-snapshots-to-keep",
        "write.metadata.previous-versions-max",
        "write.metadata.metrics.column.id",
        "write.summary.partition-limit",
        "write.target-file-size-bytes",
        "write.parquet.compression-codec",
        "write.parquet.compression-level",
        "write.avro.compression-codec",
        "write.object-storage.enabled",
        "write.data.path",
        "write.metadata.path",
        "write.merge.isolation-level",
        "gc.enabled",
    ],
)
def test_no_value_of_a_property_causes_an_internal_error(
    store: IcebergConnector, name: str
) -> None:
    for value in VALUES:
        set_by_another_engine(store, name, value)
        attempt(lambda: insert(store, rows(4)))
        for kind in ("optimize_manifests", "set properties", "restore to nothing", "truncate"):
            attempt(lambda kind=kind: run(store, kind))  # type: ignore[misc]
        attempt(lambda: store.orphans(timedelta()))


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
@pytest.mark.parametrize("kind", [*sorted(STATEMENTS), "insert"])
def test_nothing_is_written_below_the_working_directory(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    set_by_another_engine(store, name, "relative/folder")
    try:
        insert(store, rows(4)) if kind == "insert" else run(store, kind)
    except ConnectorError as error:
        assert error.code == "ICEBERG_INVALID_METADATA", error.message  # noqa: PT017 - statements that write no data files succeed
    assert not list((tmp_path / "here").iterdir())


def set_by_another_engine(store: IcebergConnector, name: str, value: str) -> None:
    """Write a property into the table's metadata, like an engine that does not check it."""
    path = Path(store.catalog.metadata_files()[0].removeprefix("file://"))  # type: ignore[attr-defined]
    metadata = json.loads(path.read_text())
    metadata["properties"][name] = value
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize(
    "location",
    ["nonsense://x/y", "s3x://bucket/folder", "relative", "file://host/x", "s3://b/a#b", "/a\0b"],
)
@pytest.mark.parametrize("how", ["create", "replace", "set properties"])
def test_an_inaccessible_data_location_is_refused_when_it_is_set(
    store: IcebergConnector, tmp_path: Path, location: str, how: str
) -> None:
    properties = {"object_store_layout_enabled": True, "data_location": location}
    statement = Statement(store)
    metadata, session = statement.metadata, statement.session
    with pytest.raises(AnalysisError) as caught:
        match how:
            case "create":
                make_table(tmp_path / "other", **properties).close()
            case "replace":
                metadata.create_table(session, definition(properties), SaveMode.REPLACE)
            case _:
                metadata.alter_table(session, statement.handle, SetProperties(properties))
    assert caught.value.properties == ("data_location",)
    assert caught.value.code in {"INVALID_TABLE_PROPERTY", "ICEBERG_FILESYSTEM_ERROR"}
    statement.rollback()


def definition(properties: dict[str, Any]) -> Any:
    from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata, parse_type
    from tests.connectors.iceberg.kit import NAME

    made = tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in COLUMNS)
    return ConnectorTableMetadata(NAME, made, properties)


def test_a_data_location_of_an_unknown_scheme_can_be_put_right(store: IcebergConnector) -> None:
    with table(store).transaction() as transaction:
        transaction.set_properties({"write.data.path": "nonsense://x/y"})
    with pytest.raises(ConnectorError, match=r"PERMISSION_DENIED: File 'nonsense://x/y/"):
        insert(store, rows(4))
    statement = Statement(store)
    statement.metadata.alter_table(
        statement.session, statement.handle, SetProperties({"data_location": None})
    )
    statement.commit()
    insert(store, rows(4))
    assert [row[0] for row in contents(store)] == [1, 2, 3, 4]


REFUSALS = [
    (errno.ENOSPC, "GENERIC_INSUFFICIENT_RESOURCES"),
    (errno.EIO, "ICEBERG_FILESYSTEM_ERROR"),
    (errno.EACCES, "PERMISSION_DENIED"),
    (errno.EMFILE, "ICEBERG_FILESYSTEM_ERROR"),
]


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        *(
            (kind, ".avro")
            for kind in (
                "truncate",
                "optimize_manifests",
                "restore to nothing",
                "replace",
                "create as",
            )
        ),
        *((kind, ".metadata.json") for kind in ("truncate", "restore", "comment", "create")),
        *((kind, "-writer") for kind in ("truncate", "comment", "create as")),
    ],
)
def test_a_disk_that_refuses_metadata_is_an_error_with_the_path_and_the_table_is_unchanged(
    store: IcebergConnector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, what: str
) -> None:
    before, content = everything(tmp_path), contents(store)
    create, note = io.PyArrowFile.create, notes.create
    number = 0

    def refused(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.location.endswith(what):
            raise OSError(number, os.strerror(number))
        return create(self, *arguments, **options)

    def refused_note(properties: Any, location: str) -> Any:
        if what == "-writer":
            note(properties, location).close()
            raise OSError(number, os.strerror(number))
        return note(properties, location)

    monkeypatch.setattr(io.PyArrowFile, "create", refused)
    monkeypatch.setattr(notes, "create", refused_note)
    for number, code in REFUSALS:  # noqa: B007 - read by what refuses
        with pytest.raises(ConnectorError) as caught:
            run(store, kind)
        assert caught.value.code == code
        assert str(tmp_path / "default") in caught.value.message
        assert caught.value.changed is False
        assert (everything(tmp_path), contents(store)) == (before, content)


def everything(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "catalog.sqlite" not in path.name
    }


@pytest.mark.parametrize(
    ("kind", "width", "value"),
    [
        ("integer", 10, -2147483645),
        ("integer", 2**31 - 1, -(2**31)),
        ("decimal(3,1)", 50, Decimal("-99.9")),
        ("decimal(38,0)", 10, Decimal("-" + "9" * 38)),
        ("decimal(38,37)", 2**31 - 1, Decimal("-9." + "9" * 37)),
    ],
)
def test_a_value_whose_partition_is_out_of_range_is_refused_with_the_value(
    tmp_path: Path, kind: str, width: int, value: Any
) -> None:
    with closing(
        make_table(tmp_path, (("c", kind),), partitioning=(f"truncate(c, {width})",))
    ) as store:
        with pytest.raises(
            ConnectorError, match=rf"NUMERIC_VALUE_OUT_OF_RANGE: Value {value} of column 'c'"
        ):
            insert(store, {"c": [value]})
        insert(store, {"c": [None]})
        assert contents(store) == [(None,)]


def test_a_snapshot_that_expires_before_it_is_restored_is_a_conflict(
    store: IcebergConnector,
) -> None:
    statement = Statement(store)
    STATEMENTS["restore"](statement)
    first = table(store).metadata.snapshots[0].snapshot_id
    table(store).maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(ConnectorError, match="TRANSACTION_CONFLICT"):
        statement.commit()
    statement.rollback()


@pytest.mark.parametrize("damage", ["gone", "half"])
@pytest.mark.parametrize("pattern", ["snap-*.avro", "*-m0.avro"])
def test_manifests_that_cannot_be_read_make_no_internal_error(
    store: IcebergConnector, tmp_path: Path, pattern: str, damage: str
) -> None:
    for path in tmp_path.rglob(pattern):
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:40])
    for kind in METADATA_TABLES:
        name = SchemaTableName("default", f"t${kind}")
        statement = Statement(store)
        attempt(
            lambda statement=statement, name=name: statement.metadata.get_system_table(
                statement.session, name
            )
        )  # type: ignore[misc]
    for kind in ("optimize_manifests", "restore", "comment", "truncate"):
        attempt(lambda kind=kind: run(store, kind))  # type: ignore[misc]
    attempt(lambda: insert(store, rows(4)))
    attempt(lambda: store.orphans(timedelta()))
    attempt(lambda: expire(store))


def expire(store: IcebergConnector) -> None:
    statement = Statement(store)
    try:
        executing(statement, "EXPIRE_SNAPSHOTS", retention_threshold=Retention(30, "d"))
        statement.commit()
    finally:
        statement.rollback()


@pytest.mark.parametrize(
    "method", ["list_namespaces", "load_table", "list_tables", "create_table_transaction"]
)
def test_an_unresponsive_catalog_causes_no_internal_error(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def silent(*_: Any, **__: Any) -> None:
        msg = "no answer"
        raise ConnectionError(msg)

    monkeypatch.setattr(store.catalog, method, silent)
    for kind in STATEMENTS:
        attempt(lambda kind=kind: run(store, kind))  # type: ignore[misc]
    attempt(store.orphans)
