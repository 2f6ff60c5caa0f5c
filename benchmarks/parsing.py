"""The growth of the front end's time with the size of a statement: ten times the size,
and the ratio of the times.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from benchmarks.measure import timed
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.notebook.template import render
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.sql.analyzer.analysis import TableBinding
from rowmerge_nb.sql.analyzer.statements.statement import analyze
from rowmerge_nb.sql.parser.statement_reader import parse, split_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.procedures import Procedure, TableProcedure
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.expressions import Typed

__all__ = ["Tables", "growth"]

_MERGE: Final = "MERGE INTO t USING s ON t.a = s.a"


class Tables:
    """A catalog without an engine: every name is a table of these columns.

    Args:
        columns: names and types.
    """

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self.columns = tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in columns)

    def resolve(
        self, parts: Sequence[str], version: ConnectorTableVersion | None = None
    ) -> TableBinding:
        """Return the table of a name."""
        name = ".".join(parts)
        return TableBinding(name, "memory", ("memory", "default", name), self.columns, f"v_{name}")

    def view(self, parts: Sequence[str]) -> None:
        """There are no views."""

    def catalogs(self) -> Sequence[str]:
        """Return the one catalog."""
        return ["memory"]

    def default(self) -> tuple[str, str]:
        """Return the default catalog and schema."""
        return "memory", "default"

    def schemas(self, catalog: str) -> Sequence[str]:
        """Return the one schema."""
        return ["default"]

    def has_schema(self, catalog: str, schema: str) -> bool:
        """Return whether it is the one schema."""
        return schema == "default"

    def store(self, catalog: str) -> ConnectorMetadata:
        """Return the metadata of a store in memory."""
        connector = MemoryConnector()
        return connector.get_metadata(connector.begin_transaction())

    def settings(self) -> dict[str, str]:
        """No property of the session is set."""
        return {}

    def user(self) -> str:
        """A user."""
        return "ann"

    def branches(self, table: TableBinding) -> Sequence[str]:
        """Return none: there are no branches."""
        return ()

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata]) -> TableBinding:
        """Return the table with more columns."""
        return replace(table, columns=(*table.columns, *columns))

    def relations(self, catalog: str, schema: str) -> Sequence[str]:
        """There is no list of tables."""
        return []

    def evaluate(self, values: Sequence[Typed]) -> Sequence[Any]:
        """There are no roles."""
        raise NotImplementedError

    def procedures(self, catalog: str) -> Sequence[Procedure]:
        """There are no procedures."""
        return []

    def table_procedures(self, catalog: str) -> Sequence[TableProcedure]:
        """There are no table procedures either."""
        return []

    def hidden(self, table: TableBinding) -> tuple[ColumnHandle, ...]:
        """There are no hidden columns."""
        return ()

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        """Complete a name."""
        return "memory", "default", parts[-1]

    def source_hint(self, name: str) -> str | None:
        """Return None: there is no notebook."""

    def frame_hint(self, column: str) -> str | None:
        """Return None: there are no DataFrames."""

    def candidates(self, parts: Sequence[str]) -> Sequence[str]:
        """There is no list of names."""
        return []

    def describe(
        self, spark_sql: str, bindings: Sequence[TableBinding]
    ) -> Sequence[tuple[str, Type]]:
        """There is no Spark to ask."""
        return []


def _listed(write: Callable[[int], str], between: str, count: int) -> str:
    return between.join(write(number) for number in range(count))


_TEXTS: Final[dict[str, Callable[[int], str]]] = {
    "OR": lambda n: f"DELETE FROM t WHERE {_listed(lambda k: f'a = {k} AND b > {k}', ' OR ', n)}",
    "AND": lambda n: f"DELETE FROM t WHERE {_listed(lambda k: f'a + {k} <> b', ' AND ', n)}",
    "+ and -": lambda n: (
        f"UPDATE t SET a = a{_listed(lambda k: f' + {k}' if k % 2 else f' - {k}', '', n)}"
    ),
    "*": lambda n: f"UPDATE t SET d = d{' * d' * n}",
    "||": lambda n: "UPDATE t SET s = s" + _listed(lambda k: f" || '{k}'", "", n),
    "WHEN clauses": (
        lambda n: (
            _MERGE
            + _listed(lambda k: f" WHEN MATCHED AND s.b = {k} THEN UPDATE SET b = {k}", "", n)
        )
    ),
    "CASE": lambda n: (
        f"SELECT CASE {_listed(lambda k: f'WHEN a = {k} THEN b + {k}', ' ', n)} END FROM t"
    ),
    "SELECT list": lambda n: f"SELECT {_listed(lambda k: f'a + {k} AS c{k}', ', ', n)} FROM t",
    "WITH": lambda n: (
        f"WITH {_listed(lambda k: f'q{k} AS (SELECT a + {k} AS x FROM t)', ', ', n)} SELECT x FROM"
        f" q{n - 1}"
    ),
    "arguments": lambda n: "SELECT concat(" + _listed(lambda k: f"'{k}'", ", ", n) + ")",
}
"""Statements over tables of four columns, by the repeated part."""
_WIDE: Final[dict[str, Callable[[int], str]]] = {
    "columns of SET": lambda n: f"UPDATE t SET {_listed(lambda k: f'c{k} = c{k} + 1', ', ', n)}",
    "columns of INSERT": lambda n: (
        f"INSERT INTO t ({_listed(lambda k: f'c{k}', ', ', n)}) SELECT"
        f" {_listed(lambda k: f'c{k}', ', ', n)} FROM s"
    ),
    "columns of MERGE": lambda n: (
        "MERGE INTO t USING s ON t.c0 = s.c0 WHEN MATCHED THEN UPDATE SET"
        f" {_listed(lambda k: f'c{k} = s.c{k}', ', ', n)} WHEN NOT MATCHED THEN INSERT VALUES"
        f" ({_listed(lambda k: f's.c{k}', ', ', n)})"
    ),
}
"""Statements over tables of this number of columns."""
_CELLS: Final[dict[str, Callable[[int], str]]] = {
    "statements": lambda n: "SELECT 1;\n" * n,
    "comments": lambda n: "/* x */ -- y\n" * n,
    "comments never closed": lambda n: "/* " * n,
    "NUL characters": lambda n: "\0" * n,
    "quotes": lambda n: "'" * n,
    "double quotes": lambda n: '"" ' * n,
    "a string": lambda n: f"SELECT '{'x' * 20 * n}'",
    "newlines": lambda n: "SELECT" + "\n" * 20 * n + "1",
    "templates": lambda n: "SELECT {{ 1 }};\n" * n,
    "templates never closed": lambda n: "{{ ( }} \n" * n,
}
"""Cells that are only split into statements."""


def growth(size: int, runs: int) -> None:
    """Time every kind of statement and cell at a size and at ten times that size.

    Args:
        size: the number of terms, clauses, columns or statements of the smaller one.
        runs: the number of runs, of which the best counts.
    """
    for name, seconds in _measured(size, runs):
        small, large = seconds
        print(
            f"growth: {name:24} {size:6} {small * 1000:9.1f} ms   {size * 10:6} {large * 1000:9.1f}"
            f" ms   x {large / small:5.1f}"
        )


def _measured(size: int, runs: int) -> Iterator[tuple[str, tuple[float, float]]]:
    narrow = Tables([("a", "bigint"), ("b", "bigint"), ("d", "double"), ("s", "varchar")])
    for name, write in _TEXTS.items():
        yield name, _times(lambda _: narrow, write, _understand, size, runs)
    for name, write in _WIDE.items():
        yield name, _times(_columns, write, _understand, size, runs)
    for name, write in _CELLS.items():
        yield name, _times(lambda _: narrow, write, _split, size, runs)


def _columns(count: int) -> Tables:
    return Tables([(f"c{number}", "bigint") for number in range(count)])


def _times(
    tables: Callable[[int], Tables],
    write: Callable[[int], str],
    run: Callable[[str, Tables], None],
    size: int,
    runs: int,
) -> tuple[float, float]:
    small, large = (
        timed(partial(run, write(count), tables(count)), runs).best for count in (size, 10 * size)
    )
    return small, large


def _understand(text: str, tables: Tables) -> None:
    analyze(parse(text), tables)


def _split(text: str, _: Tables) -> None:
    try:
        rendered = render(text, {})
    except RowMergeError:
        return
    for statement, offset in split_statements(rendered.text):
        rendered.source_line(offset)
        rendered.inserted(offset, offset + len(statement))
