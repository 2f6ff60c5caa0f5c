"""Expressions over one table, computed on pages without Spark: shared by the tests of the older flow's expressions."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageEvaluator,
    PageExpression,
    PageProgram,
)
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import VARCHAR, Type, from_arrow
from rowmerge_nb.sql.analyzer.statements.statement import analyze
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.functions.signatures import resolve
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed.expressions import Apply, Column, Constant, references
from tests.sql.support import FakeTables

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = {
    "i": ("integer", [1, -7, 0, 2147483647, -2147483648, None, 12, 3]),
    "j": ("integer", [2, 3, -2, 1, -1, 5, None, 3]),
    "l": ("bigint", [10, -3, 0, 9007199254740993, -5, None, 2, 3]),
    "n": ("decimal(9,2)", ["1.25", "-2.50", "0.00", "1234567.89", "-0.05", None, "99.99", "3.00"]),
    "m": ("decimal(5,3)", ["1.005", "-1.005", "0.000", "99.999", "0.5", "2.125", None, "3.000"]),
    "f": ("decimal(2,2)", ["0.50", "-0.05", "0.00", "0.99", None, "0.10", "0.01", "-0.99"]),
    "d": ("double", [1.5, -2.5, -0.0, float("nan"), float("inf"), None, 1e16, 3.0]),
    "e": ("double", [2.0, float("nan"), 0.0, 1.0, float("-inf"), 0.1, None, 3.0]),
    "s": (
        "varchar",
        ["Aéb", " x_y% ", "", "ßtraße", "e\u0301\U0001f600", None, "\t a\u2003", "abcabc"],
    ),
    "t": ("varchar", ["é", "x", "", "ß", "\u0301", "q", None, "bc"]),
    "c": ("varchar(3)", ["abc", "12", "-5", " 7 ", "x", None, "", "+9"]),
    "b": ("boolean", [True, False, None, True, False, True, None, False]),
    "a": (
        "date",
        [
            "2024-01-31",
            "2023-12-31",
            "1969-12-31",
            "2024-02-29",
            "2021-01-03",
            None,
            "2000-01-01",
            "2024-03-01",
        ],
    ),
    "z": (
        "date",
        [
            "2024-02-29",
            "2024-12-30",
            "1970-01-01",
            "2023-02-28",
            "2021-01-04",
            "2020-05-05",
            None,
            "2024-03-01",
        ],
    ),
    "w": (
        "timestamp(6)",
        [
            "2024-01-31 23:59:59.999999",
            "1969-12-31 23:59:59.500000",
            "2024-02-29 00:00:00",
            "2023-10-29 02:30:00.123456",
            "1960-07-01 12:00:00.000001",
            None,
            "2024-06-15 10:20:30.5",
            "2000-01-01 00:00:00",
        ],
    ),
}
"""Values that trip implementations up: limits, signed zeros, NaN, letters of several code points, ends of months, times before 1970."""


WIDE_COLUMNS = {
    "q": (
        "varchar",
        [
            # numbers
            *(
                "1",
                "+1.",
                ".5",
                "-.5e1",
                "1e3",
                "1E-3",
                " 12 ",
                "\t7\n",
                "1_0",
                "0x10",
                "",
                " ",
                "NaN",
                "-NaN",
                "Infinity",
                "-Infinity",
            ),
            *(
                "inf",
                "nan",
                "1d",
                "1.5F",
                "NaNf",
                "1e400",
                "-1e400",
                "1e-400",
                "4.9e-324",
                "-0",
                "0.1e1",
                "00012",
                "9007199254740993",
                "\u0663",
                " -\uff11\uff12 ",
                "1\u0663",
                "\u0663x",
                "\u00b2",
            ),
            *(
                "99.995",
                "99.994",
                "-99.995",
                "0.005",
                "1e-2",
                "999e-3",
                "0.00000000000000000001e20",
                "123456789012345678901234567890",
            ),
            *(
                "1e5",
                "1.e2",
                "12345678901234567890e-18",
                "0e99999999999",
                "0e99",
                "1e99999999999",
                "5e-11",
                "4e-11",
                "1\u0085",
                "\u0661",
            ),
            *(
                "99999999999999999999999999999999999999",
                "3.4028236e38",
                "16777217",
                "-1.",
                ".",
                "e5",
                "1e",
                "--1",
                "1 2",
            ),
            # truth
            *("t", "TRUE", "tRuE", "f", "FALSE", "0", "yes", "true "),
            # days and clocks
            *(
                "2024-01-05",
                "2024-1-5",
                " 2024-02-29 ",
                "2023-02-29",
                "2024-00-10",
                "2024-13-01",
                "2024-01-00",
                "2024-04-31",
                "24-1-1",
            ),
            *(
                "0001-01-01",
                "0000-01-01",
                "-0001-01-01",
                "+2024-01-05",
                "12345-01-01",
                "1582-10-10",
                "2024-01-05x",
                "2024/01/05",
            ),
            *(
                "\u20032024-01-05",
                "2024-01-05\u0085",
                "2024-01-05\n",
                "20240105",
                "2024-01",
                "99999999-01-01",
            ),
            *(
                "2024-01-05 ",
                "2024-01-05 1:2",
                "2024-01-05 01:02:03",
                "2024-01-05 01:02:03.4",
                "2024-01-05 01:02:03.123456789",
            ),
            *(
                "2024-01-05 23:59:59.9999995",
                "2024-01-05 23:59:59.9999994",
                "2024-01-05 24:00:00",
                "2024-01-05 1:60",
                "2024-01-05 1:1:60",
            ),
            *(
                "2024-01-05T01:02:03",
                "2024-01-05 01:02:03 UTC",
                "2024-01-05 01:02:03 +02:00",
                "2024-01-05 01:02:03Z",
                "2024-01-05 UTC",
            ),
            *(
                "1969-12-31 23:59:59.999999",
                "9999-12-31 23:59:59.9999996",
                "2024-01-05  01:02:03",
                "-0001-03-01 01:02:03",
            ),
            # uuid
            *(
                "12151FD2-7586-11e9-8f9e-2a86e4085a59",
                "12151fd2758611e98f9e2a86e4085a59",
                "12151fd2-7586-11e9-8f9e-2a86e4085a5",
            ),
            *("2151fd2-17586-11e9-8f9e-2a86e4085a59", "g2151fd2-7586-11e9-8f9e-2a86e4085a59"),
            # text
            *(
                "a,b,,c",
                ",",
                "a\U0001f600b",
                "e\u0301",
                "\u0130\u03a3\u00df",
                "A b  c ",
                "(1, 2)",
                "a.b*c",
                "a\nb",
                "%_",
                "\\d+",
                "\ufb03",
            ),
        ],
    ),
    "p": ("varchar", [",", "a", "", "\U0001f600", None, "b", ".", "bc", "\u0301", "1"]),
    "u": (
        "double",
        [
            *(
                0.0,
                -0.0,
                1.0,
                -1.5,
                0.001,
                0.00099,
                1e7,
                9999999.0,
                123456.789,
                5e-324,
                2.2250738585072014e-308,
                1e-310,
            ),
            *(
                1.7976931348623157e308,
                0.1,
                1 / 3,
                2e-3,
                float("nan"),
                float("inf"),
                float("-inf"),
                -7.0e-5,
                100.0,
                2.5,
                3.5,
                -2.5,
            ),
            *(
                4503599627370496.5,
                9007199254740993.0,
                9.223372036854776e18,
                -9.223372036854776e18,
                2147483647.5,
            ),
            *(
                0.49999999999999994,
                1e22,
                1.005,
                2.675,
                1e-7,
                12345678.9,
                4.35,
                1e300,
                -1e-300,
                0.045,
                1234567.5,
            ),
        ],
    ),
    "r": (
        "real",
        [
            0.0,
            -0.0,
            1.5,
            -2.5,
            3.4028234663852886e38,
            1.401298464324817e-45,
            float("nan"),
            float("inf"),
            float("-inf"),
            0.1,
            16777216.0,
        ],
    ),
    "g": (
        "bigint",
        [
            0,
            1,
            -1,
            2**63 - 1,
            -(2**63),
            10,
            255,
            -128,
            2**31,
            65,
            0x1F600,
            0xD800,
            1114112,
            64,
            2,
            3,
        ],
    ),
    "k": ("integer", [0, 1, -1, 2, 3, -2, 5, 100, None, 2**31 - 1, -(2**31)]),
    "h": (
        "decimal(38,10)",
        [
            "0",
            "0.0000000001",
            "-9999999999999999999999999999.9999999999",
            "1.5",
            "-2.5",
            "123.4567890125",
            "0.5",
            "-0.5",
        ],
    ),
    "n": (
        "decimal(12,3)",
        [
            "0",
            "1.005",
            "-1.005",
            "2.5",
            "-2.5",
            "999999999.999",
            "-999999999.995",
            "12.345",
            "0.001",
            "15",
            "-15",
        ],
    ),
    "o": (
        "varbinary",
        [b"", b"\x00\xff", b"a", "\u00e9\U0001f600".encode(), bytes(range(70)), None],
    ),
    "a": (
        "date",
        [
            0,
            -719162,
            2932896,
            -1,
            19723,
            19782,
            18320,
            -141427,
            -141428,
            11016,
            20088,
            19812,
            -719528,
            3652059,
            10957,
            19417,
        ],
    ),
    "w": (
        "timestamp(6)",
        [
            *(
                0,
                -1,
                1,
                -62135596800000000,
                253402300799999999,
                1704067199999999,
                1709164799999999,
                -1000,
                -999,
                999,
                1709210096123456,
            ),
            *(
                951782400000000,
                1698546600500000,
                1583020799999500,
                -2208988800000001,
                1711929599999499,
            ),
        ],
    ),
    "y": (
        "timestamp(6) with time zone",
        [0, -1, 1709210096123456, 1704067199999999, 253402300799999999, -62135596800000000],
    ),
    "m": ("time(6)", [0, 86399999999, 43200000000, 3723004005, None, 59999999]),
    "l": (
        "array(integer)",
        [[], [1, 2, 3], [None], [3, None, 1], None, [2147483647, -2147483648], [1, 1, 2], [5]],
    ),
    "v": (
        "array(varchar)",
        [[], ["a", None, ""], ["b", "a", "b"], None, ["\U0001f600", "\ufb03"], ["x,y"]],
    ),
    "z": (
        "map(varchar,integer)",
        [[("a", 1), ("b", None)], [], None, [("", 3)], [("\U0001f600", -1)]],
    ),
    "x": (
        "row(b integer, c varchar)",
        [{"b": 1, "c": "a"}, None, {"b": None, "c": ""}, {"b": -5, "c": None}],
    ),
    "b": ("boolean", [True, False, None]),
}
"""Many more: texts that one cast reads and another one does not, days and years at the limits, floats that are hard to format."""

ROWS = 140
"""Each column of the wide table is repeated up to this number of rows, with a NULL after its values; no two cycles are alike."""


def _read(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value)
    if isinstance(value, int):
        return value
    return (
        date.fromisoformat(value)
        if kind == "date"
        else datetime.fromisoformat(value)
        if kind.startswith("times")
        else value
    )


def table(columns: Mapping[str, tuple[str, list[Any]]] = COLUMNS) -> pa.Table:
    from rowmerge_nb.spi.types import parse_type

    arrays = {
        name: pa.array([_read(kind, value) for value in values], parse_type(kind).arrow)
        for name, (kind, values) in columns.items()
    }
    return pa.table(arrays)


def wide_table() -> pa.Table:
    return table(
        {
            name: (kind, list(islice(cycle([*values, None]), ROWS)))
            for name, (kind, values) in WIDE_COLUMNS.items()
        }
    )


TABLES = FakeTables(
    {
        name: [(column, kind) for column, (kind, _) in columns.items()]
        for name, columns in (("v", COLUMNS), ("w", WIDE_COLUMNS))
    }
)


def tree_of(text: str, name: str = "v") -> Any:
    """Analyze an expression over a table."""
    analysis: Any = analyze(
        parse(f"DELETE FROM {name} WHERE ({text}) IS NULL"), TABLES, era=Era.DOCUMENTS
    )
    return analysis.where.tree.arguments[0], [field.symbol for field in analysis.target_fields]


def computed(text: str, rows: pa.Table | None = None, name: str = "v") -> tuple[pa.Array, Type]:
    """Compute an expression on a page."""
    tree, symbols = tree_of(text, name)
    page = (
        (rows if rows is not None else table())
        .combine_chunks()
        .to_batches()[0]
        .rename_columns(symbols)
    )
    printer = PagePrinter()
    printed = printer.value(tree)
    expression = PageExpression(
        printed,
        Span(0, len(text), 1, 1),
        "in a test",
        reads=references(tree),
        lists=dict(printer.lists),
    )
    column = AssignedColumn("x", tree.type.arrow, expression)
    evaluator = PageEvaluator(PageProgram(assigned=(column,)))
    try:
        (array,) = evaluator.project(page)
    finally:
        evaluator.close()
    return array, tree.type


def regexp(name: str, pattern: str) -> Any:
    """Build the call of a function with a pattern, even one that the analyzer refuses."""
    found = resolve(name, [VARCHAR, VARCHAR])
    assert found is not None
    return Apply(
        found.result, "function", (Column(VARCHAR, "s"), Constant(VARCHAR, pattern)), found.overload
    )


def values_of(array: Any) -> list[Any]:
    """Return values that Python can hold: days and moments, whose range in Python is too small, as numbers."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return list(array.to_pylist())


def same(left: list[Any], right: list[Any]) -> bool:
    """Compare values, NaN with itself, and zeros with their signs."""
    return [repr(value) for value in left] == [repr(value) for value in right]


__all__ = [
    "COLUMNS",
    "ROWS",
    "computed",
    "from_arrow",
    "regexp",
    "same",
    "table",
    "tree_of",
    "values_of",
    "wide_table",
]
