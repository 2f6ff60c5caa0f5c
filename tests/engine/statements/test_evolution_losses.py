"""WITH SCHEMA EVOLUTION reports the values changed by a column that keeps its type, for each pair of types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import DeltaConnector, Engine, IcebergConnector, RowMergeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark

STAR = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
# The column's type, the source's value, the stored value, and how the column changes values of the source's type.
CHANGED = [
    ("integer", "CAST(1.5 AS double)", "2", "double are rounded"),
    ("integer", "CAST(1.5 AS real)", "2", "real are rounded"),
    ("bigint", "CAST(1.55 AS decimal(5, 2))", "2", "decimal(5,2) are rounded"),
    ("decimal(5, 2)", "CAST(1.235 AS decimal(5, 3))", "1.24", "decimal(5,3) are rounded"),
    ("decimal(5, 2)", "CAST(1.238 AS double)", "1.24", "double are rounded"),
    ("double", "CAST(9007199254740993 AS bigint)", "9007199254740992.0", "bigint are rounded"),
    ("real", "CAST(16777217 AS integer)", "16777216.0", "integer are rounded"),
    (
        "double",
        "CAST('12345678901234567890' AS decimal(20, 0))",
        "1.2345678901234567e+19",
        "decimal(20,0) are rounded",
    ),
    ("date", "TIMESTAMP '2020-01-01 10:00:00'", "2020-01-01", "timestamp(0) are cut to their day"),
    (
        "date",
        "TIMESTAMP '2020-01-01 10:00:00 UTC'",
        "2020-01-01",
        "timestamp(0) with time zone are cut to their day",
    ),
    (
        "timestamp(3)",
        "TIMESTAMP '2020-01-01 10:00:00 UTC'",
        "2020-01-01 10:00:00",
        "timestamp(0) with time zone are stored without their zone",
    ),
    (
        "timestamp(3)",
        "TIMESTAMP '2020-01-01 10:00:00.1236'",
        "2020-01-01 10:00:00.124000",
        "timestamp(4) are rounded",
    ),
    ("time(3)", "TIME '10:00:00.1236'", "10:00:00.124000", "time(4) are rounded"),
]
EXACT = [
    ("integer", "CAST(5 AS bigint)", "5"),
    ("real", "CAST(0.1 AS double)", "0.1"),
    ("double", "CAST(5 AS integer)", "5.0"),
    ("real", "CAST(5 AS smallint)", "5.0"),
    ("double", "CAST(5.5 AS real)", "5.5"),
    ("decimal(5, 2)", "CAST(1.2 AS decimal(8, 1))", "1.20"),
    ("decimal(5, 2)", "CAST(5 AS tinyint)", "5.00"),
    ("timestamp(6)", "TIMESTAMP '2020-01-01 10:00:00.123'", "2020-01-01 10:00:00.123000"),
    ("timestamp(3)", "DATE '2020-01-01'", "2020-01-01 00:00:00"),
    ("varchar(3)", "CAST('abc' AS varchar)", "abc"),
]
REFUSED = [
    ("integer", "'12'", "TYPE_MISMATCH"),
    ("varchar", "CAST(5 AS integer)", "TYPE_MISMATCH"),
    ("date", "'2020-01-01'", "TYPE_MISMATCH"),
    ("boolean", "CAST(1 AS integer)", "TYPE_MISMATCH"),
    ("integer", "CAST(1e10 AS double)", "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("smallint", "CAST(70000.5 AS decimal(9, 1))", "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("decimal(3, 1)", "CAST(1234.5 AS double)", "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("varchar(3)", "CAST('abcd' AS varchar)", "INVALID_CAST_ARGUMENT"),
]


@pytest.fixture(scope="module")
def engine(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("losses")
    with Engine(spark=spark, dialect="extended") as engine:
        engine.add_catalog("lake", IcebergConnector(folder / "lake"))
        engine.add_catalog("delta", DeltaConnector(folder / "delta"))
        yield engine


def _merged(
    engine: Engine, column_type: str, value: str, clauses: str = STAR, name: str = "t"
) -> tuple[list[str], list[str]]:
    """Return the stored values and the notices."""
    engine.run(f"DROP TABLE IF EXISTS {name}")
    engine.run(f"CREATE TABLE {name} (k integer, v {column_type})")
    result = engine.run(
        f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING (SELECT 1 AS k, {value} AS v) s ON t.k = s.k {clauses}"
    )
    table = engine.run(f"SELECT v FROM {name}").table
    assert table is not None
    return [str(v) for v in table.column("v").to_pylist()], [
        n.message for n in result.trace.notices
    ]


@pytest.mark.parametrize(("column_type", "value", "stored", "words"), CHANGED)
def test_a_notice_names_the_values_that_change(
    engine: Engine, column_type: str, value: str, stored: str, words: str
) -> None:
    values, notices = _merged(engine, column_type, value)
    assert values == [stored]
    kept = column_type.replace(", ", ",")
    assert notices == [
        f"v keeps the type {kept}: values of {words}. WITH SCHEMA EVOLUTION does not change it to their type."
    ]


@pytest.mark.parametrize(("column_type", "value", "stored"), EXACT)
def test_values_that_stay_the_same_have_no_notice(
    engine: Engine, column_type: str, value: str, stored: str
) -> None:
    assert _merged(engine, column_type, value) == ([stored], [])


@pytest.mark.parametrize(("column_type", "value", "code"), REFUSED)
def test_values_that_do_not_fit_are_refused(
    engine: Engine, column_type: str, value: str, code: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        _merged(engine, column_type, value)
    assert caught.value.code == code
    assert engine.table("t").num_rows == 0


@pytest.mark.parametrize("name", ["lake.default.t", "delta.default.t"])
def test_parts_of_values_have_notices_on_every_store(engine: Engine, name: str) -> None:
    value = "CAST(ROW(2.5, 7) AS row(B double, a integer))"
    _, notices = _merged(engine, "row(a integer, b integer)", value, name=name)
    assert [notice[:52] for notice in notices] == [
        "v.b keeps the type integer: values of double are rou"
    ]


def test_an_expression_of_a_clause_has_a_notice_but_a_constant_has_none(engine: Engine) -> None:
    insert = "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, {})"
    for value, count in (("s.v * 1.5", 1), ("1.5", 0), ("CAST(s.v AS integer)", 0)):
        _, notices = _merged(engine, "integer", "CAST(2 AS integer)", insert.format(value))
        assert len(notices) == count
