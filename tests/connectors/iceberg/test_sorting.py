"""Tables with sorted files, and other properties specific to Iceberg."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from rowmerge_nb import Engine, IcebergConnector, RowMergeError

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path_factory.mktemp("lake")))
    yield engine
    engine.close()


def files_of(engine: Engine, table: str) -> list[Any]:
    found = engine.run(
        f'SELECT file_path, sort_order_id FROM "{table}$files" WHERE content = 0'
    ).table
    assert found is not None
    return [
        (pq.read_table(row["file_path"].removeprefix("file://")), row["sort_order_id"])
        for row in found.to_pylist()
    ]


def shown(engine: Engine, table: str) -> str:
    return str(engine.run(f"SHOW CREATE TABLE {table}").explained)


def test_the_rows_of_every_file_are_sorted_by_the_order_of_the_table_at_the_time(
    lake: Engine,
) -> None:
    lake.run(
        "CREATE TABLE t (d double, \"A b\" varchar) WITH (sorted_by = ARRAY['d DESC', '\"a b\" nulls last'])"
    )
    assert "sorted_by = ARRAY['d DESC NULLS LAST', '\"A b\" ASC NULLS LAST']" in shown(lake, "t")
    lake.run(
        "INSERT INTO t VALUES (1, 'b'), (NULL, 'x'), (nan(), 'z'), (2, NULL), (1, 'a'), (1, NULL)"
    )
    [(written, order)] = files_of(lake, "t")
    assert written.column(1).to_pylist() == ["z", None, "a", "b", None, "x"]
    assert order == 1
    lake.run("ALTER TABLE t SET PROPERTIES sorted_by = ARRAY['\"a b\"'], max_commit_retry = 7")
    lake.run("UPDATE t SET d = 0")
    assert [
        written.column(1).to_pylist() for written, order in files_of(lake, "t") if order == 2
    ] == [[None, None, "a", "b", "x", "z"]]
    assert "max_commit_retry = 7" in shown(lake, "t")
    lake.run("CREATE OR REPLACE TABLE t (d double, n integer) WITH (sorted_by = ARRAY['n'])")
    lake.run("INSERT INTO t VALUES (1, 2), (2, 1)")
    assert [written.column(1).to_pylist() for written, _ in files_of(lake, "t")] == [[1, 2]]
    with pytest.raises(RowMergeError, match="Cannot find source column for sort field: identity"):
        lake.run("ALTER TABLE t DROP COLUMN n")
    lake.run("ALTER TABLE t SET PROPERTIES sorted_by = DEFAULT, max_commit_retry = DEFAULT")
    assert "sorted_by" not in shown(lake, "t")
    assert "max_commit_retry = 4" in shown(lake, "t")


def test_files_are_at_the_locations_of_the_object_store_layout(
    lake: Engine, tmp_path: Path
) -> None:
    lake.run(
        f"CREATE TABLE o (id integer) WITH (object_store_layout_enabled = true, data_location = '{tmp_path}')"
    )
    lake.run("INSERT INTO o VALUES 1")
    [written] = tmp_path.rglob("*.parquet")
    assert len(written.relative_to(tmp_path).parts) > 1
    assert f"WITH (\n   data_location = '{tmp_path}',\n   format = " in shown(lake, "o")
    assert "\n   object_store_layout_enabled = true\n" in shown(lake, "o")


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (
            "sorted_by = ARRAY['id FOO']",
            "INVALID_TABLE_PROPERTY",
            "Unable to parse sort field: [id FOO]",
        ),
        ("sorted_by = ARRAY['a']", "INVALID_TABLE_PROPERTY", "Invalid sorted_by definition"),
        ("sorted_by = ARRAY['nope']", "COLUMN_NOT_FOUND", "Column not found: nope"),
        (
            "data_location = '/x'",
            "INVALID_TABLE_PROPERTY",
            "Data location can only be set when object store layout is enabled",
        ),
        (
            "max_commit_retry = -1",
            "INVALID_TABLE_PROPERTY",
            "Unable to set catalog 'iceberg' table property 'max_commit_retry' to [-1]: max_commit_retry must be greater than or equal to 0",
        ),
        (
            "object_store_layout_enabled = 1",
            "INVALID_TABLE_PROPERTY",
            "Invalid value for catalog 'iceberg' table property 'object_store_layout_enabled': Cannot convert [1] to boolean",
        ),
        (
            "orc_bloom_filter_fpp = 0.1",
            "NOT_SUPPORTED",
            "Table property 'orc_bloom_filter_fpp' is not supported: ORC is not written",
        ),
    ],
)
def test_a_senseless_property_is_refused_as_in_trino(
    lake: Engine, given: str, code: str, message: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        lake.run(f"CREATE TABLE wrong (id integer, a array(integer)) WITH ({given})")
    assert (caught.value.code, caught.value.message, caught.value.line) == (code, message, 1)
