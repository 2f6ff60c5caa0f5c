"""Tables of another engine on a real metastore are read as by that engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.connectors.hive_acid.reader import read_split, splits_of
from rowmerge_nb.spi import ConnectorSession, SchemaTableName

SAMPLES = Path(__file__).parent / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
SESSION = ConnectorSession("q")


def registered(tmp_path: Path, sample: str) -> tuple[HiveAcidConnector, dict[str, Any]]:
    expected = json.loads((SAMPLES / sample / "expected.json").read_text())
    shutil.copytree(SAMPLES / sample / "table", tmp_path / "table")
    connector = HiveAcidConnector(tmp_path / "store")
    connector.register_table(
        "default",
        "t",
        tmp_path / "table",
        columns=expected["columns"],
        partitioned_by=expected["partition_columns"],
        bucketed_by=expected["bucket_columns"],
        bucket_count=expected["num_buckets"] or None,
        bucketing_version=int(expected["bucketing_version"] or 1),
        write_ids=expected["writeIds"],
    )
    return connector, expected


def read(
    connector: HiveAcidConnector, columns: list[str] | None = None
) -> list[tuple[str, tuple[Any, ...]]]:
    """Return all rows, each with the path of its file."""
    metadata = connector.get_metadata(connector.begin_transaction())
    handle = metadata.get_table_handle(SESSION, SchemaTableName("default", "t"))
    assert handle is not None
    handles = metadata.get_column_handles(SESSION, handle)
    wanted = [c for c in handles if columns is None or c.name in columns]
    root = Path(handle.table.location)
    return [
        (str(split.path.relative_to(root)), tuple(row.values()))
        for split in splits_of(handle)
        for page in read_split(split, handle.table, wanted)
        for row in page.to_pylist()
    ]


def as_recorded(value: Any, kind: pa.DataType | str) -> Any:
    """Return a value in the form of the recording."""
    kind = str(kind)
    if value is None:
        return None
    if kind.startswith(("decimal", "date")):
        return str(value)
    if kind.startswith("timestamp"):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if kind == "varbinary":
        return "hex:" + value.hex()
    if kind.startswith("map"):
        return dict(value)
    return list(value.values()) if kind.startswith("row") else value


@pytest.mark.parametrize("sample", NAMES)
def test_a_sample_yields_the_recorded_rows_from_the_recorded_files(
    tmp_path: Path, sample: str
) -> None:
    connector, expected = registered(tmp_path, sample)
    kinds = [kind for _, kind in expected["columns"]]
    found = [[path, *map(as_recorded, row, kinds)] for path, row in read(connector)]
    assert sorted(found, key=repr) == sorted(expected["rows_with_path"], key=repr)


@pytest.mark.parametrize("sample", ["types", "part", "ctas"])
def test_every_single_column_has_the_values_that_it_has_among_all(
    tmp_path: Path, sample: str
) -> None:
    connector, expected = registered(tmp_path, sample)
    rows = [row for _, row in read(connector)]
    for place, (name, _) in enumerate(expected["columns"]):
        assert [row for _, row in read(connector, [name])] == [(row[place],) for row in rows]


def test_open_write_ids_of_another_metastore_end_with_the_table(tmp_path: Path) -> None:
    connector, _ = registered(tmp_path, "aborted")
    (foreign,) = connector.open_transactions()
    assert (foreign.process, foreign.user) == ("elsewhere", "another metastore")
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    handle = metadata.get_table_handle(SESSION, SchemaTableName("default", "t"))
    assert handle is not None
    metadata.drop_table(SESSION, handle)
    connector.commit(transaction)
    assert connector.open_transactions() == []
    assert (tmp_path / "table").is_dir()
