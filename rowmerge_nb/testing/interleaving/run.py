"""Runs two statements through every order of their calls."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError, error_text, message_of
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.replays.origin import ReplayOrigin
from rowmerge_nb.replays.table import check_make_table
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, Row
from rowmerge_nb.testing.interleaving.interleaved_statement import (
    Asked,
    InterleavedSide,
    fixed,
    left_of,
)
from rowmerge_nb.testing.interleaving.judgment import judged
from rowmerge_nb.testing.interleaving.orders import changes_of_turn, orders, steps
from rowmerge_nb.testing.interleaving.result import Interleaving, Order, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from rowmerge_nb.spi.connector import Connector

COLUMNS: Final[Mapping[str, str]] = {"id": "bigint", "v": "varchar"}
ROWS: Final[Sequence[Row]] = ((1, "a"), (2, "b"), (3, "c"))
LONGEST: Final = 60.0
"""The maximum number of seconds to wait for a call when nothing else can run."""


def interleave(
    connector: Any,
    first: Any,
    second: Any,
    *,
    columns: Mapping[str, str] = COLUMNS,
    rows: Sequence[Row] = ROWS,
    properties: Mapping[str, Any] | None = None,
    make_table: Callable[[Connector, ConnectorTableMetadata, Sequence[Row]], object] | None = None,
    table: str | None = None,
    paradigm: str | None = None,
    patience: float = 0.5,
    most: int | None = None,
) -> Interleaving:
    """Run two statements through every order of their contract calls, and check the results.

    Every order has its own table. Orders that differ only in commuting calls count as one: reads,
    and stores that are invisible before the finish call. A failing statement is rolled back at
    once, as the engine does.

    Args:
        connector: a class or function that creates a connector over an empty store, or its name as
            ``module:name``. With one parameter, it gets an empty directory. Or a connector; a table
            in it is created for every order, and dropped.
        first: the changes of the first statement: `Changes`, or a function from the rows read to
            `Changes`, as `upsert` returns.
        second: those of the second one.
        columns: the table's columns with their types; the first one identifies rows.
        rows: the initial rows.
        properties: table properties, as ``{"primary_key": ("id",)}``.
        make_table: creates the table instead of CREATE TABLE and INSERT: a function of connector,
            metadata and rows.
        table: ``schema.table`` of a created connector with one fixed table.
        paradigm: the requested row change paradigm.
        most: the maximum number of orders, those with the fewest changes of turn first.
        patience: seconds after which a call is taken to wait for the other statement.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for other arguments; NOT_SUPPORTED if the table cannot be
            created.

    >>> from rowmerge_nb import MemoryConnector
    >>> from rowmerge_nb.testing.contract import Changes
    >>> result = interleave(MemoryConnector, Changes(updated=[(3, {"v": "x"})]), Changes(updated=[(3, {"v": "y"})]))
    >>> len(result.wrong), result.tried
    (0, 50)
    """
    setup = _Setup(
        ReplayOrigin.of(connector),
        _definition(columns, properties),
        _rows(rows, columns),
        make_table,
        paradigm,
        patience,
    )
    check_make_table(make_table)
    _check_limits(patience, most)
    if table is not None:
        setup = replace(setup, table_name=_existing_table(table, setup.origin))
    statements = (_statement(first, "first", columns), _statement(second, "second", columns))
    # Check the functions' results before creating anything.
    left_of(setup.rows, tuple(columns), *statements)
    with setup.origin.opened() as sample_connector:
        own = steps(commits_in_finish=sample_connector.commits_in_finish)
    possible = sorted(orders(own), key=changes_of_turn)
    selected = possible[:most]
    return Interleaving(
        setup.origin.name,
        tuple(columns),
        tuple(setup.rows),
        len(possible),
        len(selected),
        tuple(_distinct_orders(selected, setup, statements, [step.name for step in own])),
    )


def _distinct_orders(
    selected: Sequence[Sequence[int]],
    setup: _Setup,
    statements: tuple[Asked, Asked],
    names: Sequence[str],
) -> list[Order]:
    """Run the orders and check their results; an order that ran already as another is skipped."""
    columns = [column.name for column in setup.definition.columns]
    finished: list[Order] = []
    for turns in selected:
        if not any(_is_the_same(turns, order) for order in finished):
            order = _Run(setup, statements, turns, names).run()
            finished.append(judged(order, setup.rows, columns, statements))
    return finished


@dataclass(frozen=True)
class _Setup:
    origin: ReplayOrigin
    definition: ConnectorTableMetadata
    rows: list[Row]
    make_table: Callable[[Connector, ConnectorTableMetadata, Sequence[Row]], object] | None
    paradigm: str | None
    patience: float
    table_name: SchemaTableName | None = None

    @contextmanager
    def table(self) -> Iterator[tuple[Connector, SchemaTableName]]:
        with self.origin.opened() as connector:
            definition = replace(self.definition, name=self._name(connector))
            try:
                self._make(connector, definition)
            except Exception as error:
                message = message_of(error)
                raise RowMergeError.unsupported(
                    f"The table cannot be created: {message}",
                    hint=(
                        "Pass make_table=..., a function of connector, metadata and"
                        " rows, or other columns and properties."
                    ),
                ) from error
            try:
                yield connector, definition.name
            finally:
                if not self.origin.is_own:
                    _drop(connector, definition.name)

    def _name(self, connector: Connector) -> SchemaTableName:
        if self.table_name is not None:
            return self.table_name
        table = "interleaved" if self.origin.is_own else f"interleaved_{uuid.uuid4().hex[:10]}"
        statement = PageStatement(connector, SchemaTableName("default", table))
        try:
            metadata, session = statement.metadata, statement.session
            has_default = metadata.schema_exists(session, "default")
            return SchemaTableName(
                "default" if has_default else next(iter(metadata.list_schemas(session)), "default"),
                table,
            )
        finally:
            statement.rollback()

    def _make(self, connector: Connector, definition: ConnectorTableMetadata) -> None:
        if self.make_table is not None:
            self.make_table(connector, definition, self.rows)
            return
        for work in (
            lambda statement: statement.metadata.create_table(statement.session, definition),
            self._fill,
        ):
            statement = PageStatement(connector, definition.name)
            try:
                work(statement)
                statement.commit()
            except BaseException:
                statement.rollback()
                raise

    def _fill(self, statement: PageStatement) -> None:
        if not self.rows:
            return
        try:
            statement.insert(self.rows)
        except RowMergeError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            statement.merge(Changes(inserted=self.rows))


class _Run:
    def __init__(
        self,
        setup: _Setup,
        statements: tuple[Asked, Asked],
        turns: Sequence[int],
        names: Sequence[str],
    ) -> None:
        self.setup, self.statements = setup, statements
        numbers = [0, 0]
        self.todo: list[tuple[int, str]] = []
        for side in turns:
            self.todo.append((side, names[numbers[side]]))
            numbers[side] += 1
        self.made: list[Turn] = []
        self.waiting: dict[int, tuple[int, Future[None]]] = {}
        self.hung = False

    def run(self) -> Order:
        with self.setup.table() as (connector, name):
            self.sides = tuple(
                InterleavedSide(connector, name, statement, self.setup.paradigm)
                for statement in self.statements
            )
            try:
                while self.todo or self.waiting:
                    self._go_on()
                    if self.hung:
                        break
                rows, unread = self._left(connector, name)
            finally:
                for side in self.sides:
                    side.close()
        return Order(
            tuple(self.made),
            rows,
            tuple(side.committed for side in self.sides),
            tuple(f"{side.code}: {side.failure}" if side.code else "" for side in self.sides),
            tuple(side.ledger for side in self.sides),
            kind=(
                "call that never returned"
                if self.hung
                else "table that cannot be read"
                if unread
                else ""
            ),
            about=unread,
        )

    def _go_on(self) -> None:
        """Make the next call of a statement that does not wait; if both wait, wait for them."""
        free = next(
            (index for index, (side, _) in enumerate(self.todo) if side not in self.waiting), None
        )
        if free is None:
            self.hung = not self._came_back(LONGEST)
            return
        side, step = self.todo.pop(free)
        number = len(self.made)
        self.made.append(Turn(side, step))
        call = self.sides[side].start(step)
        # If the other statement has not begun or has ended, a slow call cannot be waiting for it.
        wait([call], self.setup.patience if self._is_under_way(1 - side) else LONGEST)
        if call.done():
            self._ended(side, number, call)
            # A call that waited for this one can now return.
            self._came_back(
                self.setup.patience
                if step in {"commit", "finish_merge"} or self.sides[side].code
                else 0.0
            )
        else:
            self.made[number] = replace(self.made[number], waited=True)
            self.waiting[side] = (number, call)

    def _is_under_way(self, side: int) -> bool:
        has_begun = any(turn.side == side for turn in self.made)
        return has_begun and (side in self.waiting or any(other == side for other, _ in self.todo))

    def _came_back(self, seconds: float) -> bool:
        if not self.waiting:
            return True
        calls = {call: (side, number) for side, (number, call) in self.waiting.items()}
        back, _ = wait(calls, seconds, return_when="FIRST_COMPLETED")
        for call in back:
            side, number = calls[call]
            del self.waiting[side]
            self._ended(side, number, call)
        return bool(back)

    def _ended(self, side: int, number: int, call: Future[None]) -> None:
        call.result()
        if self.sides[side].code:
            self.made[number] = replace(self.made[number], failed=True)
            self.todo = [turn for turn in self.todo if turn[0] != side]

    def _left(self, connector: Connector, name: SchemaTableName) -> tuple[tuple[Row, ...], str]:
        if self.hung:
            return (), ""
        started = time.monotonic()
        while True:
            try:
                statement = PageStatement(connector, name)
                try:
                    return tuple(sorted(statement.rows(), key=repr)), ""
                finally:
                    with suppress(Exception):
                        statement.rollback()
            except Exception as error:  # noqa: BLE001 - an unreadable table is a result
                if time.monotonic() - started > self.setup.patience:
                    return (), error_text(error)


def _is_the_same(turns: Sequence[int], order: Order) -> bool:
    if any(turn.waited for turn in order.turns):
        return False
    sides, counts = [turn.side for turn in order.turns], Counter(turn.side for turn in order.turns)
    failed_sides = {turn.side for turn in order.turns if turn.failed}
    if not failed_sides:
        return False
    relevant, counters = [], Counter[int]()
    for side in turns:
        counters[side] += 1
        if side not in failed_sides or counters[side] <= counts[side]:
            relevant.append(side)
    return relevant == sides


def _drop(connector: Connector, name: SchemaTableName) -> None:
    statement = PageStatement(connector, name)
    try:
        statement.metadata.drop_table(statement.session, statement.handle)
        statement.commit()
    except BaseException:
        statement.rollback()
        raise


def _check_limits(patience: Any, most: Any) -> None:
    checked(
        patience,
        "patience",
        lambda value: type(value) in {int, float} and 0 < value <= LONGEST,
        "seconds, up to 60",
    )
    checked(
        most,
        "most",
        lambda value: value is None or (type(value) is int and value > 0),
        "a whole number from 1, or None",
    )


def _existing_table(table: Any, origin: ReplayOrigin) -> SchemaTableName:
    table_name = checked(
        table,
        "table",
        lambda value: isinstance(value, str) and value.count(".") == 1,
        "schema.table",
    )
    if not origin.is_own:
        raise RowMergeError(
            "Existing tables are not changed: on a connector that you pass, only new"
            " tables are created",
            code="INVALID_ARGUMENTS",
            hint="Omit table, or pass a function that creates a connector.",
        )
    return SchemaTableName(*table_name.lower().split("."))


def _definition(columns: Any, properties: Any) -> ConnectorTableMetadata:
    checked(
        columns,
        "columns",
        lambda value: isinstance(value, Mapping) and len(value) > 1,
        "two or more names with their types",
    )
    checked(
        properties,
        "properties",
        lambda value: value is None or isinstance(value, Mapping),
        "table properties by name",
    )
    metadata_columns = [
        ColumnMetadata(name, parse_type(sql_type), nullable=n > 0)
        for n, (name, sql_type) in enumerate(columns.items())
    ]
    return ConnectorTableMetadata(
        SchemaTableName("default", "interleaved"), tuple(metadata_columns), dict(properties or {})
    )


def _rows(rows: Any, columns: Mapping[str, str]) -> list[Row]:
    form = f"rows of {len(columns)} values, each with a first value of its own"

    def fits(value: Any) -> bool:
        if isinstance(value, str) or not isinstance(value, Sequence):
            return False
        if not all(isinstance(row, tuple | list) and len(row) == len(columns) for row in value):
            return False
        return len({repr(row[0]) for row in value}) == len(value)

    return [tuple(row) for row in checked(rows, "rows", fits, form)]


def _statement(statement: Any, name: str, columns: Mapping[str, str]) -> Asked:
    if isinstance(statement, Changes):
        for _, new in statement.updated:
            for column in new:
                if column not in columns:
                    raise RowMergeError.invalid(
                        f"{name} updates the column {column!r}, which the table does not have",
                        hint=did_you_mean(str(column), columns)
                        or f"There are: {', '.join(columns)}.",
                    )
        return fixed(statement)
    function: Callable[[Sequence[Row]], Any] = checked(
        statement,
        name,
        callable,
        "Changes, or a function that returns them for the rows that were read",
    )

    def changes(rows: Sequence[Row]) -> Changes:
        result = function(rows)
        if not isinstance(result, Changes):
            raise RowMergeError.invalid(
                f"{name} returned {type(result).__name__} for the rows of the table;"
                " it must return Changes",
                hint="Import Changes from rowmerge_nb.testing.contract.",
            )
        return result

    return changes
