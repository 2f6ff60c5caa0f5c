"""Statements on tables with required fields, or with types that SQL lacks, run by the engine on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as t
from pyiceberg.schema import Schema

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import by_pyiceberg, contents

pytestmark = pytest.mark.spark

BEFORE = t.StructType(
    t.NestedField(11, "n", t.LongType(), required=True),
    t.NestedField(12, "x", t.FixedType(2), required=True),
)


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[tuple[Engine, IcebergConnector]]:
    connector = IcebergConnector(tmp_path)
    fields = (
        t.NestedField(1, "id", t.LongType(), required=True),
        t.NestedField(2, "before", BEFORE),
        t.NestedField(3, "xs", t.ListType(4, BEFORE, element_required=True)),
        t.NestedField(5, "v", t.StringType()),
    )
    connector.catalog.create_table(("default", "t"), Schema(*fields))
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", connector)
    yield engine, connector
    engine.close()


def test_rows_with_null_in_an_optional_row_of_required_fields_are_inserted_updated_and_merged(
    lake: tuple[Engine, IcebergConnector], capfd: pytest.CaptureFixture[str]
) -> None:
    engine, connector = lake
    row = "CAST(ROW(1, X'6162') AS row(n bigint, x varbinary))"
    engine.run(f"INSERT INTO t VALUES (1, NULL, NULL, 'a'), (2, {row}, ARRAY[{row}], 'b')")
    engine.run("UPDATE t SET v = 'c' WHERE before IS NULL")
    engine.run("""
        MERGE INTO t USING (VALUES (1, 'd'), (3, 'e')) s (id, v) ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)""")
    whole = {"n": 1, "x": b"ab"}
    expected = [(1, None, None, "d"), (2, whole, [whole], "b"), (3, None, None, "e")]
    assert contents(connector) == expected
    # pyiceberg itself reads a NULL as an empty list if it contains rows.
    assert [(*row[:2], row[2] or [], row[3]) for row in expected] == by_pyiceberg(connector)
    engine.run("UPDATE t SET before = NULL, xs = ARRAY[] WHERE id = 2")
    assert contents(connector)[1] == (2, None, [], "b")
    for wrong, path in (
        ("CAST(ROW(NULL, X'6162') AS row(n bigint, x varbinary)), NULL", "before.n"),
        (f"{row}, ARRAY[NULL]", "xs.element"),
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(f"INSERT INTO t VALUES (4, {wrong}, 'f')")
        assert (caught.value.code, caught.value.changed) == ("CONSTRAINT_VIOLATION", False)
        assert f"NULL value not allowed for NOT NULL field: {path}" in caught.value.message
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "UPDATE t SET before = CAST(ROW(1, X'616263') AS row(n bigint, x varbinary)) WHERE id = 2"
        )
    assert (caught.value.code, caught.value.changed) == ("CONSTRAINT_VIOLATION", False)
    assert "X'616263' has 3 bytes" in caught.value.message
    assert len(by_pyiceberg(connector)) == 3
    assert "Exception ignored" not in capfd.readouterr().err


def test_statements_of_every_kind_see_the_rows_whose_partition_has_wrapped_around(
    lake: tuple[Engine, IcebergConnector],
) -> None:
    engine, connector = lake
    least = -(2**63) + 1
    engine.run(
        "CREATE TABLE w (c bigint, v varchar) WITH (partitioning = ARRAY['truncate(c, 10)'])"
    )
    engine.run(f"INSERT INTO w VALUES ({least}, 'a'), (-1, 'b'), (0, 'c')")
    selected = engine.run("SELECT v FROM w WHERE c < 0").table
    assert selected is not None
    assert sorted(selected.column(0).to_pylist()) == ["a", "b"]
    assert engine.run("UPDATE w SET v = 'u' WHERE c < 0").count == 2
    merged = f"""
        MERGE INTO w USING (VALUES {least}) s (c) ON w.c = s.c
        WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (s.c, 'new')"""
    assert engine.run(merged).count == 1
    name = SchemaTableName("default", "w")
    assert contents(connector, name) == [(-1, "u"), (least, "m"), (0, "c")]
    assert engine.run(f"DELETE FROM w WHERE c = {least}").count == 1
    assert engine.run("DELETE FROM w WHERE c <= -1").count == 1
    assert contents(connector, name) == [(0, "c")]
