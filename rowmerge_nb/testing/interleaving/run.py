"""Two statements driven through every order of their calls, each on a table of its own, without Spark."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError, checked, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.replays.origin import Origin
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, Row
from rowmerge_nb.testing.interleaving.interleaved_statement import Asked, Side, fixed, left_of
from rowmerge_nb.testing.interleaving.orders import changes_of_turn, orders, steps
from rowmerge_nb.testing.interleaving.result import Interleaving, Order, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from rowmerge_nb.spi.connector import Connector

NAMES: Final = ("first", "second")
COLUMNS: Final[Mapping[str, str]] = {"id": "bigint", "v": "varchar"}
ROWS: Final[Sequence[Row]] = ((1, "a"), (2, "b"), (3, "c"))
LONGEST: Final = 60.0
"""So many seconds are waited for a call where nothing else is left to be done."""


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
    """Drive two statements through every order of their contract calls, and tell what each leaves.

    Every order has a table of its own. Orders that differ only in calls of which it is the same which comes first are one: calls that
    read, and calls that store what nobody sees before the finish call. A statement that fails is rolled back at once, as the engine does.

    Args:
        connector: a class or function that makes a connector over an empty store (with one argument it gets an empty directory), or its
            name as ``module:name``; or a connector, in which a table is made for every order, and dropped.
        first: what the first statement changes: `Changes`, with rows named by the value of the first column; or a function that gives them
            for the rows that the statement has read, as ``lambda rows: ...`` or what `upsert` gives.
        second: the same of the second one.
        columns: the table's columns with their types; the first one tells rows apart.
        rows: the rows that the table has before.
        properties: its properties, as ``{"primary_key": ("id",)}``.
        make_table: makes the table, where CREATE TABLE and INSERT are not the way: a function of connector, metadata and rows.
        table: the table, ``schema.table``, of a connector that is made and knows one table only; None for a name of its own.
        paradigm: the row change paradigm to ask for; None for the table's own.
        most: so many orders at most are tried, those first in which the turn changes least often; None for all.
        patience: a call that has not come back after so many seconds waits for the other statement, if that is under way, which goes on.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for what is none of that; NOT_SUPPORTED if the table cannot be made.

    >>> from rowmerge_nb import MemoryConnector
    >>> from rowmerge_nb.testing.contract import Changes
    >>> told = interleave(MemoryConnector, Changes(updated=[(3, {"v": "x"})]), Changes(updated=[(3, {"v": "y"})]))
    >>> len(told.wrong), told.tried
    (0, 50)
    """
    given = _Given(Origin.of(connector), _definition(columns, properties), _rows(rows, columns), make_table, paradigm, patience)
    checked(
        make_table, "make_table", lambda value: value is None or callable(value), "a function of connector, metadata and rows"
    )
    checked(patience, "patience", lambda value: type(value) in {int, float} and 0 < value <= LONGEST, "seconds, up to 60")
    checked(most, "most", lambda value: value is None or (type(value) is int and value > 0), "a whole number from 1, or None")
    if table is not None:
        named = checked(table, "table", lambda value: isinstance(value, str) and value.count(".") == 1, "schema.table")
        if not given.origin.is_own:
            raise RowMergeError(
                "A table that is there already is not changed: of a connector that was given only tables of its own are made",
                code="INVALID_ARGUMENTS",
                hint="Leave table out, or give what makes a connector.",
            )
        given = replace(given, known=SchemaTableName(*named.lower().split(".")))
    asked = (_statement(first, "first", columns), _statement(second, "second", columns))
    # What a function gives is looked at before anything is made.
    left_of(given.rows, tuple(columns), *asked)
    with given.origin.opened() as opened:
        own = steps(commits_in_finish=opened.commits_in_finish)
    done: list[Order] = []
    possible = sorted(orders(own), key=changes_of_turn)
    tried = possible[:most]
    for turns in tried:
        if not any(_is_the_same(turns, order) for order in done):
            done.append(_judged(_Run(given, asked, turns, [step.name for step in own]).done(), given, asked))
    return Interleaving(given.origin.name, tuple(columns), tuple(given.rows), len(possible), len(tried), tuple(done))


@dataclass(frozen=True)
class _Given:
    """What every order has."""

    origin: Origin
    definition: ConnectorTableMetadata
    rows: list[Row]
    make_table: Callable[[Connector, ConnectorTableMetadata, Sequence[Row]], object] | None
    paradigm: str | None
    patience: float
    known: SchemaTableName | None = None

    @contextmanager
    def table(self) -> Iterator[tuple[Connector, SchemaTableName]]:
        """Yield a connector with a table of the rows; it is removed afterwards."""
        with self.origin.opened() as connector:
            definition = replace(self.definition, name=self._name(connector))
            try:
                self._make(connector, definition)
            except Exception as error:
                told = error.message if isinstance(error, RowMergeError) else error_text(error)
                raise RowMergeError(
                    f"The table cannot be made: {told}",
                    code="NOT_SUPPORTED",
                    hint="Give make_table=..., a function of connector, metadata and rows, or other columns and properties.",
                ) from error
            try:
                yield connector, definition.name
            finally:
                if not self.origin.is_own:
                    _drop(connector, definition.name)

    def _name(self, connector: Connector) -> SchemaTableName:
        if self.known is not None:
            return self.known
        table = "interleaved" if self.origin.is_own else f"interleaved_{uuid.uuid4().hex[:10]}"
        statement = PageStatement(connector, SchemaTableName("default", table))
        try:
            metadata, session = statement.metadata, statement.session
            known = metadata.schema_exists(session, "default")
            return SchemaTableName("default" if known else next(iter(metadata.list_schemas(session)), "default"), table)
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
    """One order on its way."""

    def __init__(self, given: _Given, asked: tuple[Asked, Asked], turns: Sequence[int], names: Sequence[str]) -> None:
        self.given, self.asked = given, asked
        numbers = [0, 0]
        self.todo: list[tuple[int, str]] = []
        for side in turns:
            self.todo.append((side, names[numbers[side]]))
            numbers[side] += 1
        self.made: list[Turn] = []
        self.waiting: dict[int, tuple[int, Future[None]]] = {}
        self.hung = False

    def done(self) -> Order:
        """Make the calls, and read what is left."""
        with self.given.table() as (connector, name):
            self.sides = tuple(Side(connector, name, asked, self.given.paradigm) for asked in self.asked)
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
            tuple(f"{side.code}: {side.failed}" if side.code else "" for side in self.sides),
            tuple(side.ledger for side in self.sides),
            kind="call that never came back" if self.hung else "table that cannot be read" if unread else "",
            about=unread,
        )

    def _go_on(self) -> None:
        """Make the next call of a statement that does not wait; where both wait, wait with them."""
        free = next((place for place, (side, _) in enumerate(self.todo) if side not in self.waiting), None)
        if free is None:
            self.hung = not self._came_back(LONGEST)
            return
        side, step = self.todo.pop(free)
        number = len(self.made)
        self.made.append(Turn(side, step))
        call = self.sides[side].start(step)
        # A call has nobody to wait for while the other statement has not begun, or has ended: then it is slow, and no more.
        wait([call], self.given.patience if self._is_under_way(1 - side) else LONGEST)
        if call.done():
            self._ended(side, number, call)
            # What has waited for that call goes on by itself; it is given the time to do so.
            self._came_back(self.given.patience if step in {"commit", "finish_merge"} or self.sides[side].code else 0.0)
        else:
            self.made[number] = replace(self.made[number], waited=True)
            self.waiting[side] = (number, call)

    def _is_under_way(self, side: int) -> bool:
        """Return whether a statement has made a call, and has calls left."""
        begun = any(turn.side == side for turn in self.made)
        return begun and (side in self.waiting or any(left == side for left, _ in self.todo))

    def _came_back(self, seconds: float) -> bool:
        """Return calls that wait some time; tells whether one came back."""
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
        """Read the rows that are left, as a statement sees them that begins now."""
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
            except Exception as error:  # noqa: BLE001 - a table that cannot be read is what is told
                if time.monotonic() - started > self.given.patience:
                    return (), error_text(error)


def _judged(order: Order, given: _Given, asked: tuple[Asked, Asked]) -> Order:
    """Return which serial order leaves the same rows, or what is wrong."""
    if order.kind:
        return order
    columns = [column.name for column in given.definition.columns]

    def left(which: Sequence[int]) -> tuple[Row, ...]:
        return tuple(sorted(left_of(given.rows, columns, *(asked[side] for side in which)), key=repr))

    committed = [side for side in (0, 1) if order.committed[side]]
    serial = {which: left(which) for which in permutations(committed)}
    same = [which for which, rows in serial.items() if rows == order.rows]
    if same:
        return replace(order, serial=tuple(tuple(NAMES[side] for side in which) for which in same), expected=order.rows)
    expected = next(iter(serial.values()))
    most = Counter({key: max(_keys(rows)[key] for rows in serial.values()) for rows in serial.values() for key in _keys(rows)})
    doubled = [key for key, count in _keys(order.rows).items() if count > max(1, most[key])]
    if doubled:
        kind, about = "doubled row", f"key {doubled[0]!r} is there {_keys(order.rows)[doubled[0]]} times"
    elif len(committed) == 2 and (lost := [side for side in (0, 1) if left([side]) == order.rows]):
        kind, about = "lost update", f"both were committed, and what {NAMES[1 - lost[0]]} has changed is lost"
    elif len(committed) < 2 and any(left(which) == order.rows for which in ((0,), (1,), (0, 1), (1, 0))):
        kind, about = "change of a statement that failed", "what a statement has changed is there, and that statement failed"
    else:
        missing, extra = Counter(expected) - Counter(order.rows), Counter(order.rows) - Counter(expected)
        lost_row, kept_row = next(iter(missing), None), next(iter(extra), None)
        about = "; ".join(
            text
            for row, text in ((lost_row, f"row {lost_row} is missing"), (kept_row, f"row {kept_row} must not be there"))
            if row is not None
        )
        kind = "lost update" if missing and len(committed) == 2 else "rows that no serial order leaves"
    return replace(order, kind=kind, about=about, expected=expected)


def _keys(rows: Sequence[Row]) -> Counter[Any]:
    return Counter(row[0] for row in rows)


def _is_the_same(turns: Sequence[int], order: Order) -> bool:
    """Return whether an order that was made is this one, since a statement of it has failed, and its further calls are not made."""
    if any(turn.waited for turn in order.turns):
        return False
    made, counts = [turn.side for turn in order.turns], Counter(turn.side for turn in order.turns)
    failed = {turn.side for turn in order.turns if turn.failed}
    if not failed:
        return False
    kept, seen = [], Counter[int]()
    for side in turns:
        seen[side] += 1
        if side not in failed or seen[side] <= counts[side]:
            kept.append(side)
    return kept == made


def _drop(connector: Connector, name: SchemaTableName) -> None:
    statement = PageStatement(connector, name)
    try:
        statement.metadata.drop_table(statement.session, statement.handle)
        statement.commit()
    except BaseException:
        statement.rollback()
        raise


def _definition(columns: Any, properties: Any) -> ConnectorTableMetadata:
    checked(columns, "columns", lambda given: isinstance(given, Mapping) and len(given) > 1, "two or more names with their types")
    checked(properties, "properties", lambda given: given is None or isinstance(given, Mapping), "table properties by name")
    found = [ColumnMetadata(name, parse_type(kind), nullable=n > 0) for n, (name, kind) in enumerate(columns.items())]
    return ConnectorTableMetadata(SchemaTableName("default", "interleaved"), tuple(found), dict(properties or {}))


def _rows(rows: Any, columns: Mapping[str, str]) -> list[Row]:
    form = f"rows of {len(columns)} values, each with a first value of its own"

    def fits(given: Any) -> bool:
        if isinstance(given, str) or not isinstance(given, Sequence):
            return False
        if not all(isinstance(row, tuple | list) and len(row) == len(columns) for row in given):
            return False
        return len({repr(row[0]) for row in given}) == len(given)

    return [tuple(row) for row in checked(rows, "rows", fits, form)]


def _statement(given: Any, name: str, columns: Mapping[str, str]) -> Asked:
    if isinstance(given, Changes):
        for _, new in given.updated:
            for column in new:
                if column not in columns:
                    raise RowMergeError(
                        f"{name} updates the column {column!r}, which the table has not",
                        code="INVALID_ARGUMENTS",
                        hint=did_you_mean(str(column), columns) or f"There are: {', '.join(columns)}.",
                    )
        return fixed(given)
    asked: Callable[[Sequence[Row]], Any] = checked(
        given, name, callable, "Changes, or a function that gives them for the rows that were read"
    )

    def changes(rows: Sequence[Row]) -> Changes:
        told = asked(rows)
        if not isinstance(told, Changes):
            raise RowMergeError(
                f"{name} gave {type(told).__name__} for the rows of the table; it gives Changes",
                code="INVALID_ARGUMENTS",
                hint="Import Changes from rowmerge_nb.testing.contract.",
            )
        return told

    return changes
