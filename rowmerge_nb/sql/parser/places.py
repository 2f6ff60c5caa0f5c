"""What the grammar allows at a place of an unfinished statement."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ParseError, RowMergeError
from rowmerge_nb.sql.parser.primaries import SPECIAL
from rowmerge_nb.sql.parser.statement_reader import READERS, StatementReader
from rowmerge_nb.sql.parser.tokens import Runs
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.depth import room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.sql.parser.tokens import Token
    from rowmerge_nb.sql.tree import statements as st

_DUMMY: Final = " x "
_REFUSED: Final = frozenset(
    {
        "JSON_TABLE",
        "MATCH_RECOGNIZE",
        "NEAREST",
        "PIVOT",
        "TABLESAMPLE",
        "MATERIALIZED",
        "AUTHORIZATION",
    }
)
"""Words that the grammar parses only to refuse them, and parts of such clauses."""
_BEGINS_REFUSED: Final = frozenset({"ANALYZE"})
"""First words of statements that are refused later."""
_SAYING_WHAT: Final = 3
"""The number of words that identify a statement's kind."""
_EXPRESSIONS: Final = frozenset(word for word in SPECIAL if word.isidentifier()) - {"CURRENT_PATH"}
_TYPED: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "DECIMAL"})
"""Types with literals: ``DATE '...'``."""
_MORE: Final = {
    "<query>": ("SELECT", "TABLE", "VALUES", "WITH"),
    "<predicate>": ("BETWEEN", "IN", "IS", "LIKE", "NOT"),
    "<expression>": (*_EXPRESSIONS, *_TYPED),
}
"""Labels of expected tokens that stand for several words."""


class Slot(Enum):
    """The kind of name at a place."""

    TARGET = "a table that can be changed"
    TABLE = "a table, a view or a schema"
    RELATION = "what a query can read"
    TARGET_COLUMN = "a column of the table that is changed"
    COLUMN = "a column without its table"
    EXPRESSION = "a column or a function"
    TYPE = "a type"
    PROCEDURE = "a procedure, or what stands before its name"
    ARGUMENT = "an argument of a procedure, by its name"
    PROPERTY = "a property of a table"


@dataclass(frozen=True)
class Place:
    """A place in a statement.

    Args:
        relations: the visible relations, innermost query first.
        target: the table that the statement changes, or the procedure that it calls.
    """

    words: frozenset[str]
    slots: frozenset[Slot]
    relations: tuple[s.Relation, ...] = ()
    target: st.TableName | None = None
    named_queries: tuple[s.NamedQuery, ...] = ()


def place(
    before: str, after: str = "", *, qualified: bool = False, extended: bool = False
) -> Place:
    """Return what the grammar allows between two parts of a text."""
    prefix_reader = _read(before, len(before), extended=extended)
    # What follows can be parsed only with a name at the place.
    whole = _read(f"{before}{_DUMMY}{after}", len(before), extended=extended)
    words = frozenset() if qualified else prefix_reader.words - _REFUSED
    if not before.strip():
        words -= _BEGINS_REFUSED
    if len(before.split()) < _SAYING_WHAT:
        words = frozenset(
            word for word in words if not _is_refused(f"{before}{word}{_DUMMY}", extended=extended)
        )
    frames = whole.seen or prefix_reader.seen or []
    relations: list[s.Relation] = []
    for frame in frames:
        relations.extend(relation for relation in frame.relations if relation not in relations)
    return Place(
        words,
        frozenset(prefix_reader.slots),
        tuple(relations),
        prefix_reader.changed,
        tuple(whole.named or prefix_reader.named),
    )


def _is_refused(text: str, *, extended: bool) -> bool:
    reader = StatementReader(text, extended=extended)
    try:
        with room():
            reader.statement()
    except RowMergeError as error:
        return reader.refuses or error.code == "NOT_SUPPORTED"
    return reader.refuses


def _read(text: str, cursor: int, *, extended: bool) -> _Watching:
    reader = _Watching(text, cursor, extended=extended)
    try:
        with room():
            reader.statement()
            reader.expect_end()
    except ParseError:
        # The unfinished text is parsed up to the place.
        pass
    return reader


@dataclass
class _Frame:
    """A query and its visible relations; a ``closed`` one does not see outer queries."""

    closed: bool = False
    relations: list[s.Relation] = field(default_factory=list)


class _Watching(StatementReader):
    """Records what the grammar allows at one token."""

    def __init__(self, text: str, cursor: int, *, extended: bool) -> None:
        super().__init__(text, extended=extended, runs=Runs.ENDS)
        self._watched = next(
            index
            for index, token in enumerate(self.tokens)
            if token.span.start >= cursor or not token.text
        )
        self._frames = [_Frame()]
        self._slots: list[Slot | None] = [None]
        self._lists: Slot | None = None
        self._inserting = self._calling = self._defining = False
        self.words: frozenset[str] = frozenset()
        self.slots: set[Slot] = set()
        self.seen: list[_Frame] | None = None
        self.changed: st.TableName | None = None
        self.named: list[s.NamedQuery] = []

    def _is_here(self) -> bool:
        return self.index == self._watched

    def _see(self) -> None:
        if self.seen is None:
            self.seen = []
            for frame in reversed(self._frames):
                self.seen.append(frame)
                if frame.closed:
                    break

    @contextmanager
    def _query_scope(self, *, closed: bool = False) -> Iterator[_Frame]:
        self._frames.append(_Frame(closed))
        try:
            yield self._frames[-1]
        finally:
            self._frames.pop()

    @contextmanager
    def _names(self, slot: Slot | None) -> Iterator[None]:
        self._slots.append(slot)
        try:
            yield
        finally:
            self._slots.pop()

    # -- what is asked for

    def note(self, *labels: str) -> None:
        super().note(*labels)
        if self._is_here():
            self._see()
            words = {word for label in labels for word in _MORE.get(label, (label.strip("'"),))}
            self.words |= {word for word in words if word.isidentifier()}

    def take(self) -> Token:
        if self._is_here():
            self._see()
        return super().take()

    def statement(self) -> st.Statement:
        if self._is_here():
            self.note("<query>", *READERS)
            self.fail()
        if self.token.word == "INSERT":
            self._inserting, self._lists = True, Slot.TARGET_COLUMN
        self._calling = self.token.word == "CALL"
        self._defining = self.token.word in {
            "ALTER",
            "CREATE",
        }
        return super().statement()

    def table_name(self) -> st.TableName:
        if self._is_here() and not self.slots:
            self._see()
            self.slots.add(Slot.TABLE if not self._calling else Slot.PROCEDURE)
        name = super().table_name()
        if self._calling or self._defining:
            self.changed = self.changed or name
        return name

    # -- procedures and properties

    def _call_argument(self) -> st.CallArgument:
        if self._is_here():
            self.slots.add(Slot.ARGUMENT)
        return super()._call_argument()

    def _assigned_properties(
        self, kind: str = "table"
    ) -> tuple[dict[str, Any], dict[str, st.Span]]:
        with self._names(Slot.PROPERTY):
            return super()._assigned_properties(kind)

    def _relation_primary(self) -> s.Relation:
        if self._is_here():
            self.slots.add(Slot.RELATION)
        return super()._relation_primary()

    def primary(self) -> s.Expression:
        if self._is_here():
            self.slots.add(Slot.EXPRESSION)
        return super().primary()

    def _negation(self) -> s.Expression:
        if self._is_here():
            self.words |= {"NOT"}
        return super()._negation()

    def type_name(self) -> s.TypeName:
        if self._is_here():
            self.slots.add(Slot.TYPE)
        return super().type_name()

    def identifier(self) -> st.Identifier:
        slot = self._slots[-1]
        if self._is_here() and slot is not None:
            self._see()
            self.slots.add(slot)
        return super().identifier()

    # -- what plain names are

    def expression(self) -> s.Expression:
        with self._names(None):
            return super().expression()

    def assignments(
        self, target: st.TableName, alias: st.Identifier | None
    ) -> tuple[tuple[st.Identifier, ...], tuple[s.Expression, ...]]:
        with self._names(Slot.TARGET_COLUMN):
            return super().assignments(target, alias)

    def assigned_columns(
        self, target: st.TableName, alias: st.Identifier | None
    ) -> tuple[st.Identifier, ...]:
        with self._names(Slot.TARGET_COLUMN):
            return super().assigned_columns(target, alias)

    def accept_columns(self) -> tuple[st.Identifier, ...]:
        # Outside of INSERT, such a list names columns.
        with self._names(self._lists):
            self._lists = None
            return super().accept_columns()

    def _insert_action(self, start: int) -> Any:
        self._lists = Slot.TARGET_COLUMN
        return super()._insert_action(start)

    def query(self) -> s.QueryNode:
        self._lists = None
        return super().query()

    def _join(self, start: int, left: s.Relation) -> s.Relation | None:
        # Behind USING.
        with self._names(Slot.COLUMN):
            return super()._join(start, left)

    # -- which tables can be named

    def target(self) -> st.TableName:
        if self._is_here():
            self._see()
            self.slots.add(Slot.TARGET)
        self.changed = super().target()
        if not self._inserting:
            self._frames[0].relations.append(s.Table(self.changed.span, self.changed))
        return self.changed

    def accept_returning(self) -> tuple[s.SelectItem | s.AllColumns, ...]:
        if self._inserting and self.changed is not None:
            # RETURNING of an INSERT sees its target, not its query.
            self._frames[0].relations.append(s.Table(self.changed.span, self.changed))
        return super().accept_returning()

    def _aliased_target(self) -> tuple[st.TableName, st.Identifier | None]:
        name, alias = super()._aliased_target()
        if alias is not None:
            table = self._frames[0].relations[0]
            self._frames[0].relations[0] = s.Aliased(name.span, table, alias, ())
        return name, alias

    def _aliased(self) -> s.Relation:
        is_alias_here = self._is_here()
        with self._names(None):
            relation = super()._aliased()
        if not is_alias_here and not isinstance(relation, s.JoinRelation):
            self._frames[-1].relations.append(relation)
        return relation

    def _parenthesised_relation(self, start: int) -> s.Relation:
        if not self.query_follows():
            return super()._parenthesised_relation(start)
        with self._query_scope(closed=True):
            return super()._parenthesised_relation(start)

    def _named_query(self) -> s.NamedQuery:
        with self._names(None):
            entry = super()._named_query()
        self.named.append(entry)
        return entry

    def _without_with(
        self, start: int, named_queries: tuple[s.NamedQuery, ...] = (), *, recursive: bool = False
    ) -> s.QueryNode:
        # ORDER BY is outside of the SELECT, but sees its tables.
        with self._query_scope(), self._names(None):
            return super()._without_with(start, named_queries, recursive=recursive)

    def _select(self, start: int) -> s.Select:
        around = self._frames[-1]
        with self._query_scope() as frame:
            select = super()._select(start)
        around.relations.extend(frame.relations)
        return select

    def _clause(self, number: int) -> st.MergeClause:
        if self.ahead().word != "NOT":
            return super()._clause(number)
        # An unmatched row has columns of one side only.
        by_source = (self.ahead(3).word, self.ahead(4).word) == ("BY", "SOURCE")
        both = self._frames[0].relations
        with self._query_scope(closed=True) as frame:
            frame.relations.extend(both[:1] if by_source else both[1:])
            return super()._clause(number)
