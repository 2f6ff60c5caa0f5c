"""Expressions over one table, computed on pages without Spark: what the tests of the older flow's expressions share."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator, PageExpression, PageProgram
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import Type, from_arrow
from rowmerge_nb.sql.analyzer.statements import analyze
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.parser.statements import parse
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed.expressions import references
from tests.sql.support import FakeTables

COLUMNS = {
    "i": ("integer", [1, -7, 0, 2147483647, -2147483648, None, 12, 3]),
    "j": ("integer", [2, 3, -2, 1, -1, 5, None, 3]),
    "l": ("bigint", [10, -3, 0, 9007199254740993, -5, None, 2, 3]),
    "n": ("decimal(9,2)", ["1.25", "-2.50", "0.00", "1234567.89", "-0.05", None, "99.99", "3.00"]),
    "m": ("decimal(5,3)", ["1.005", "-1.005", "0.000", "99.999", "0.5", "2.125", None, "3.000"]),
    "f": ("decimal(2,2)", ["0.50", "-0.05", "0.00", "0.99", None, "0.10", "0.01", "-0.99"]),
    "d": ("double", [1.5, -2.5, -0.0, float("nan"), float("inf"), None, 1e16, 3.0]),
    "e": ("double", [2.0, float("nan"), 0.0, 1.0, float("-inf"), 0.1, None, 3.0]),
    "s": ("varchar", ["Aéb", " x_y% ", "", "ßtraße", "e\u0301\U0001f600", None, "\t a\u2003", "abcabc"]),
    "t": ("varchar", ["é", "x", "", "ß", "\u0301", "q", None, "bc"]),
    "c": ("varchar(3)", ["abc", "12", "-5", " 7 ", "x", None, "", "+9"]),
    "b": ("boolean", [True, False, None, True, False, True, None, False]),
    "a": ("date", ["2024-01-31", "2023-12-31", "1969-12-31", "2024-02-29", "2021-01-03", None, "2000-01-01", "2024-03-01"]),
    "z": ("date", ["2024-02-29", "2024-12-30", "1970-01-01", "2023-02-28", "2021-01-04", "2020-05-05", None, "2024-03-01"]),
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


def _read(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(value)
    return date.fromisoformat(value) if kind == "date" else datetime.fromisoformat(value) if kind.startswith("times") else value


def table() -> pa.Table:
    from rowmerge_nb.spi.types import parse_type

    arrays = {
        name: pa.array([_read(kind, value) for value in values], parse_type(kind).arrow)
        for name, (kind, values) in COLUMNS.items()
    }
    return pa.table(arrays)


TABLES = FakeTables({"v": [(name, kind) for name, (kind, _) in COLUMNS.items()]})


def tree_of(text: str) -> Any:
    """Analyze an expression over the table."""
    analysis: Any = analyze(parse(f"DELETE FROM v WHERE ({text}) IS NULL"), TABLES, era=Era.DOCUMENTS)
    return analysis.where.tree.arguments[0], [field.symbol for field in analysis.target_fields]


def computed(text: str, rows: pa.Table | None = None) -> tuple[pa.Array, Type]:
    """Compute an expression on a page."""
    tree, symbols = tree_of(text)
    page = (rows if rows is not None else table()).combine_chunks().to_batches()[0].rename_columns(symbols)
    expression = PageExpression(PagePrinter().value(tree), Span(0, len(text), 1, 1), "in a test", reads=references(tree))
    column = AssignedColumn("x", tree.type.arrow, expression)
    evaluator = PageEvaluator(PageProgram(assigned=(column,)))
    try:
        (array,) = evaluator.project(page)
    finally:
        evaluator.close()
    return array, tree.type


def same(left: list[Any], right: list[Any]) -> bool:
    """Compare values, NaN with itself, and zeros with their signs."""
    return [repr(value) for value in left] == [repr(value) for value in right]


__all__ = ["COLUMNS", "computed", "from_arrow", "same", "table", "tree_of"]
