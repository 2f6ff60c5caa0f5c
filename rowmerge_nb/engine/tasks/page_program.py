"""Filter and projection of pages: DuckDB over Arrow, with Trino's error codes."""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import (
    MERGE_FLOW,
    ConnectorError,
    ExecutionError,
    SetupError,
    TextSpan,
)
from rowmerge_nb.base.names import quoted
from rowmerge_nb.base.next_steps import Refusal, step_of_message
from rowmerge_nb.engine.tasks.arrow import conform, together
from rowmerge_nb.engine.tasks.subquery_lookup import SubqueryLookup
from rowmerge_nb.spi.values import shown_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.join_keys import JoinKeys
    from rowmerge_nb.engine.tasks.joined_rows import JoinedRows
    from rowmerge_nb.spi.page import Page

FILTERED_ROWS: Final = 1 << 19
"""Rows to gather before a condition is computed: each DuckDB query has a fixed cost."""
INSTALL: Final = "Run: pip install 'duckdb>=1.4'"
_ROW: Final = "$row"
"""The column of row numbers; extended if a channel has that name."""
_SETTINGS: Final = (
    # Optimizations may drop failing terms (x + 1 = 5 becomes x = 4) or reorder them.
    "PRAGMA disable_optimizer",
    "SET threads = 1",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET TimeZone = 'UTC'",
)


def require_duckdb() -> Any:
    """Import DuckDB; SetupError if it is missing or too old."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise SetupError(
            "DuckDB, which computes conditions and values on pages, is not installed", hint=INSTALL
        ) from error
    if tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < (1, 4):
        raise SetupError(
            f"DuckDB {duckdb.__version__} is too old to compute on pages", hint=INSTALL
        )
    return duckdb


@dataclass(frozen=True)
class PageExpression:
    """An expression over a page.

    Args:
        span: its position in the statement; None for generated expressions, which cannot fail.
        is_plain: it is a single channel or NULL; DuckDB is not needed.
        names: display names of the channels that identify a failing row; if empty, no row is
            searched for.
        lists: long lists for lookups, by their table names in the text.
        lookups: symbols of the subqueries that it reads as columns, looked up for each row.
    """

    text: str
    span: TextSpan | None
    words: str
    reads: frozenset[str] = field(kw_only=True)
    is_plain: bool = False
    names: Mapping[str, str] = field(default_factory=dict, compare=False)
    lists: Mapping[str, pa.Array] = field(default_factory=dict, compare=False)
    lookups: frozenset[str] = frozenset()

    @property
    def is_null(self) -> bool:
        return self.is_plain and not self.reads


@dataclass(frozen=True)
class AssignedColumn:
    """An assignment to a column.

    `refusal` is the error that rejects NULL.
    """

    name: str
    type: pa.DataType
    expression: PageExpression
    refusal: Refusal | None = None


@dataclass(frozen=True)
class PageQuery:
    """A subquery of expressions over a page.

    Args:
        kind: ``scalar``, ``exists`` or ``in``.
        type: the type of its value, or of the values of a list.
        default: the value of a correlated subquery for keys that do not occur; None for NULL.
        rest: a condition on a row and the columns beside equal keys.
    """

    symbol: str
    kind: str
    type: pa.DataType
    keys: JoinKeys | None = None
    default: AssignedColumn | None = None
    rest: PageExpression | None = None

    @property
    def no_answer(self) -> pa.Array:
        """An answer to try expressions with, on an empty page."""
        if self.keys is None:
            return pa.nulls(1, self.type)
        fields = [pa.field("key", column.type) for column in self.keys.columns]
        return pa.array([], pa.struct([*fields, pa.field("value", self.type)]))

    def answer(self, column: pa.Array) -> pa.Array:
        """Extract the result from a column that repeats it in every row: a value, a list, or rows
        of keys and values.
        """
        first = column.slice(0, 1)
        if self.keys is not None:
            return first.flatten()
        return conform(first.flatten().field(0) if self.kind == "in" else first, self.type)


@dataclass(frozen=True)
class PageProgram:
    """The operations on a page of an updatable page source."""

    where: PageExpression | None = None
    assigned: tuple[AssignedColumn, ...] = ()
    checks: tuple[AssignedColumn, ...] = field(default=(), kw_only=True)
    queries: tuple[PageQuery, ...] = ()

    def evaluator(self, row: pa.RecordBatch | None) -> PageEvaluator:
        """Build the evaluator; the first row of `row` has the results of queries, named by their
        symbols.
        """
        return PageEvaluator(
            self,
            (
                ()
                if row is None
                else [query.answer(row.column(query.symbol)) for query in self.queries]
            ),
        )


@dataclass
class PageEvaluator:
    program: PageProgram
    answers: Sequence[pa.Array] = ()
    _lookups: dict[str, SubqueryLookup] = field(default_factory=dict, repr=False)
    _registered: list[str] = field(default_factory=list, repr=False)

    def filter(self, page: Page) -> Page:
        """Return the rows that satisfy the condition; ExecutionError with Trino's code and its
        position.
        """
        where = self.program.where
        if where is None or not page.num_rows:
            return page
        rows = self.rows_where(where, page)
        return page if len(rows) == page.num_rows else page.take(pa.array(rows))

    def filtered(self, pages: Iterable[Page]) -> Iterator[Page]:
        """Filter many pages, several per query; empty pages are dropped."""
        where = self.program.where
        if where is None:
            yield from pages
            return
        for several in together(pages, FILTERED_ROWS):
            read = [
                name
                for name in several[0].schema.names
                if name in where.reads or name in where.names
            ]
            positions = self.rows_where(
                where, pa.Table.from_batches([page.select(read) for page in several])
            )
            ends = np.cumsum([page.num_rows for page in several])
            parts = np.split(positions, np.searchsorted(positions, ends[:-1]))
            for page, end, rows in zip(several, ends, parts, strict=True):
                yield (
                    page
                    if rows.size == page.num_rows
                    else page.take(pa.array(rows - (end - page.num_rows)))
                )

    def rows_where(
        self, where: PageExpression, page: Page | pa.Table, rows: JoinedRows | None = None
    ) -> npt.NDArray[np.int64]:
        """Return the ascending positions of rows that satisfy a condition."""
        if where.is_null:
            return np.zeros(0, np.int64)
        return np.sort(self._run(page, where=where, rows=rows).column(0).to_numpy())

    def project(self, page: Page) -> list[pa.Array]:
        return self.values_of(self.program.assigned, page)

    def values_of(
        self, assigned: Sequence[AssignedColumn], page: Page, rows: JoinedRows | None = None
    ) -> list[pa.Array]:
        """Compute columns for all rows of a page.

        Args:
            rows: the rows with all channels, for error messages.
        """
        plain = _plain(assigned, page)
        values = iter(
            self._computed(
                [
                    column
                    for column, plain_values in zip(assigned, plain, strict=True)
                    if plain_values is None
                ],
                page,
                rows,
            )
        )
        arrays = [
            plain_values if plain_values is not None else next(values) for plain_values in plain
        ]
        for column, array in zip(assigned, arrays, strict=True):
            if column.refusal is not None and array.null_count:
                position = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
                error = column.refusal.error("Project")
                raise _placed(
                    error, column.expression, _row(column.expression, position, page, rows)
                )
        return arrays

    def check(self, page: Page) -> None:
        """Check on an empty page that DuckDB can parse all expressions, or raise NOT_SUPPORTED."""
        where = self.program.where
        try:
            if where is not None and not where.is_null:
                self._run(page, where=where)
            for columns in (self.program.assigned, self.program.checks):
                plain = _plain(columns, page)
                self._computed(
                    [
                        column
                        for column, plain_values in zip(columns, plain, strict=True)
                        if plain_values is None
                    ],
                    page,
                )
        except ExecutionError as error:
            unsupported = ConnectorError.unsupported(
                f"The flow 'updatable' cannot compute this: {error.message}",
                hint=MERGE_FLOW,
            )
            unsupported.line = error.line
            unsupported.column = error.column
            unsupported.length = error.length
            raise unsupported from error

    def close(self) -> None:
        """Unregister the results of queries from the connection, which is reused."""
        while self._registered:
            _connection().unregister(self._registered.pop())

    def _computed(
        self, columns: Sequence[AssignedColumn], page: Page, rows: JoinedRows | None = None
    ) -> list[pa.Array]:
        if not columns:
            return []
        try:
            table = self._run(page, [column.expression for column in columns], rows=rows)
        except ExecutionError:
            if len(columns) > 1:
                # One by one, to find the failing expression.
                for column in columns:
                    self._computed([column], page, rows)
            raise
        order = table.column(0).to_numpy()
        if (np.diff(order) < 0).any():
            table = table.take(pa.array(np.argsort(order)))
        arrays = [table.column(index).combine_chunks() for index in range(1, table.num_columns)]
        return [
            conform(_whole(array), column.type)
            for array, column in zip(arrays, columns, strict=True)
        ]

    def _run(
        self,
        page: Page | pa.Table,
        values: Sequence[PageExpression] = (),
        where: PageExpression | None = None,
        rows: JoinedRows | None = None,
    ) -> pa.Table:
        connection = self._connected()
        number = _ROW
        while number in page.schema.names:
            number += "$"
        expressions = [*values, *([where] if where is not None else [])]
        texts = "".join(f", {value.text} AS v{index}" for index, value in enumerate(values))
        sql = (
            f"SELECT {quoted(number)}{texts} FROM page WHERE"
            f" {'true' if where is None else where.text}"
        )
        channel_names = {name for expression in expressions for name in expression.reads}
        read = [index for index, name in enumerate(page.schema.names) if name in channel_names]
        arrays = [page.column(channel) for channel in read] + [pa.array(np.arange(page.num_rows))]
        names = [page.schema.names[channel] for channel in read] + [number]
        for query, answer in zip(self.program.queries, self.answers, strict=True):
            if query.keys is not None:
                reading = [
                    expression for expression in expressions if query.symbol in expression.lookups
                ]
                if reading:
                    arrays.append(self._looked_up(query, answer, page, reading[0]))
                    names.append(query.symbol)
            elif query.kind != "in":
                arrays.append(pa.repeat(answer[0], page.num_rows))
                names.append(query.symbol)
        table, duckdb = pa.table(arrays, names=names), require_duckdb()
        lists = {
            name: values for expression in expressions for name, values in expression.lists.items()
        }
        try:
            with _with_lists(connection, lists):
                return _answer(connection, sql, table)
        except duckdb.Error as error:
            # With several expressions the failing one is unknown: the caller then computes them one
            # by one.
            row = None
            if len(expressions) == 1 and expressions[0].names:
                with _with_lists(connection, lists):
                    row = _row(expressions[0], _failing_row(connection, sql, table), page, rows)
            raise _placed(translated(str(error)), expressions[0], row) from error

    def _looked_up(
        self, query: PageQuery, answer: pa.Array, page: Page | pa.Table, expression: PageExpression
    ) -> pa.Array:
        if query.symbol not in self._lookups:
            self._lookups[query.symbol] = SubqueryLookup(query, answer)
        try:
            return self._lookups[query.symbol].values(page, self)
        except ExecutionError as error:
            raise _placed(error, expression) from None

    def _connected(self) -> Any:
        connection = _connection()
        if not self._registered:
            for query, answer in zip(self.program.queries, self.answers, strict=True):
                if query.kind == "in" and query.keys is None:
                    self._registered.append(query.symbol)
                    connection.register(query.symbol, pa.table([answer], names=["v"]))
        return connection


@contextmanager
def _with_lists(connection: Any, lists: Mapping[str, pa.Array]) -> Iterator[None]:
    for name, values in lists.items():
        connection.register(name, pa.table([values], names=["v"]))
    try:
        yield
    finally:
        for name in lists:
            connection.unregister(name)


def _answer(connection: Any, sql: str, table: pa.Table) -> pa.Table:
    connection.register("page", table)
    try:
        return connection.sql(sql).to_arrow_table()
    finally:
        connection.unregister("page")


def _failing_row(connection: Any, sql: str, table: pa.Table) -> int:
    """Find the first failing row by bisection; this computes at most twice the page."""
    low, high = 0, table.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _answer(connection, sql, table.slice(low, middle - low))
            low = middle
        except require_duckdb().Error:
            high = middle
    return low


_connections: Final[dict[tuple[int, int], Any]] = {}
"""By process and thread.

Not a `threading.local`: after a fork, those of missing threads would be freed, and their
connections closed.
"""


def _connection() -> Any:
    """Return this thread's DuckDB connection.

    Connections of a parent process or an ended thread are not closed: closing would wait for
    threads that a fork lacks.
    """
    me = (os.getpid(), threading.get_ident())
    if me not in _connections:
        connection = require_duckdb().connect()
        for setting in _SETTINGS:
            connection.execute(setting)
        _connections[me] = connection
    return _connections[me]


def _plain(assigned: Sequence[AssignedColumn], page: Page) -> list[pa.Array | None]:
    """Return per assigned column the values that need no computation (NULL or another column),
    otherwise None.
    """
    return [
        _copied_values(column, page) if column.expression.is_plain else None for column in assigned
    ]


def _copied_values(column: AssignedColumn, page: Page) -> pa.Array:
    for name in column.expression.reads:
        return conform(page.column(page.schema.names.index(name)), column.type)
    return pa.nulls(page.num_rows, column.type)


def _whole(array: Any) -> pa.Array:
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _row(
    expression: PageExpression, position: int, page: Page | pa.Table, rows: JoinedRows | None
) -> pa.Table | pa.RecordBatch:
    return page.slice(position, 1) if rows is None else rows.row(position, expression.names)


def _placed(
    error: ExecutionError, expression: PageExpression, row: pa.Table | pa.RecordBatch | None = None
) -> ExecutionError:
    if expression.span is not None:
        values = (
            {}
            if row is None
            else {
                expression.names[c]: shown_value(row.column(c)[0])
                for c in row.schema.names
                if c in expression.names
            }
        )
        if values:
            error.row = (
                "The first such row has"
                f" {', '.join(f'{name} = {value}' for name, value in sorted(values.items()))}."
            )
        sentences = (
            f"It happened {expression.words}." if expression.words else "",
            error.row,
            error.hint,
        )
        error.at(expression.span).hint = " ".join(filter(None, sentences))
    return error


# -- errors

_MARKED: Final = re.compile(r"\[\[([A-Z_]+)\]\] (.*)", re.DOTALL)
_OVERFLOW: Final = re.compile(
    r"Overflow in (addition|subtraction|multiplication) of INT(8|16|32|64) \((.*?)\)[!;]"
)
_QUOTIENT: Final = re.compile(r"Overflow in division of (-\d+) / -1")
_BITS: Final = {"8": "tinyint", "16": "smallint", "32": "integer", "64": "bigint"}
_RANGE: Final = "NUMERIC_VALUE_OUT_OF_RANGE"


def translated(message: str) -> ExecutionError:
    text = message.split("\n\nLINE ", 1)[0].rstrip()
    if marked := _MARKED.search(text):
        return Refusal(marked[1], marked[2], step_of_message(marked[2])).error("Project")
    if overflow := _OVERFLOW.search(text):
        word, bits, operands = overflow.groups()
        return ExecutionError(
            f"{_BITS[bits]} {word} overflow: {operands}", code=_RANGE, step="Project"
        )
    if quotient := _QUOTIENT.search(text):
        sql_type = next(
            sql_type
            for bits, sql_type in _BITS.items()
            if int(quotient[1]) >= -(2 ** (int(bits) - 1))
        )
        return ExecutionError(
            f"{sql_type} division overflow: {quotient[1]} / -1", code=_RANGE, step="Project"
        )
    if "DECIMAL" in text and re.search("Overflow|out of range|Could not c(ast|onvert)", text):
        return ExecutionError("Decimal overflow", code=_RANGE, step="Project")
    if re.search(
        r"(?i)(date|timestamp).*out of range|out of range.*(date|timestamp)|not in timestamp range",
        text,
    ):
        return ExecutionError("Timestamp out of range", code=_RANGE, step="Project")
    if "out of range" in text.lower() or "Overflow in" in text:
        return ExecutionError(
            "A number is out of the range of its type", code=_RANGE, step="Project"
        )
    first_line = text.partition("\n")[0]
    return ExecutionError(
        f"The page could not be computed: {first_line}", step="Project", hint=MERGE_FLOW
    )
