"""Completion in a statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from rowmerge_nb.base.names import quoted, quoted_where_needed
from rowmerge_nb.sql.functions.all_functions import FORMS, MOMENTS
from rowmerge_nb.sql.functions.overloads import known, overloads
from rowmerge_nb.sql.parser.places import Place, Slot, place
from rowmerge_nb.sql.parser.tokens import RESERVED
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.notebook.completion.cells import Sql
    from rowmerge_nb.notebook.completion.lookups import Lookups
    from rowmerge_nb.sql.tree import statements as st

Columns = list[tuple[str, str]]
"""Names and types."""

_TYPES: Final = [
    "array",
    "bigint",
    "boolean",
    "char",
    "date",
    "decimal",
    "double",
    "integer",
    "json",
    "map",
    "real",
    "row",
    "smallint",
    "time",
    "timestamp",
    "tinyint",
    "uuid",
    "varbinary",
    "varchar",
]


@dataclass(frozen=True)
class Candidate:
    """A replacement for the incomplete word, with a label: ``keyword``, ``table``, a type, or a
    signature.
    """

    text: str
    kind: str


class Names(Protocol):
    """The names that an engine knows, with labels."""

    def names(self, *parts: str) -> Sequence[tuple[str, str]]:
        """Return the names that may follow the first parts of a table's name."""

    def columns(self, *parts: str) -> Sequence[tuple[str, str]] | None:
        """Return a table's columns with types; None without such a table."""

    def procedures(self, *parts: str) -> Sequence[tuple[str, str]]:
        """Return the names that may follow the first parts of a procedure's name; finally its
        arguments.
        """

    def table_properties(self, *parts: str) -> Sequence[tuple[str, str]]:
        """Return the properties that the table may have, with descriptions."""


class Known:
    """The names of an engine, which may be None, and of the notebook's DataFrames."""

    def __init__(self, engine: Names | None, frames: dict[str, Any], lookups: Lookups) -> None:
        self._engine = engine
        self._frames = frames
        self._lookups = lookups

    def below(self, *parts: str) -> Sequence[tuple[str, str]]:
        return self._lookup("names", parts)

    def procedures(self, *parts: str) -> Sequence[tuple[str, str]]:
        return self._lookup("procedures", parts)

    def table_properties(self, *parts: str) -> Sequence[tuple[str, str]]:
        return self._lookup("table_properties", parts)

    def _lookup(self, method: str, parts: tuple[str, ...]) -> Sequence[tuple[str, str]]:
        if self._engine is None:
            return []
        return self._lookups.ask(
            (method, id(self._engine), parts), partial(getattr(self._engine, method), *parts), []
        )

    def frames(self) -> Iterable[str]:
        return self._frames

    def columns(self, parts: Sequence[str]) -> Columns:
        """Return the columns of a table, view or DataFrame; as in statements, tables take
        precedence.
        """
        columns: Sequence[tuple[str, str]] | None = None
        if self._engine is not None:
            key = ("columns", id(self._engine), *(part.lower() for part in parts))
            columns = self._lookups.ask(key, partial(self._engine.columns, *parts), None)
        if columns is None and len(parts) == 1:
            frame_name = next(
                (name for name in self._frames if name.lower() == parts[0].lower()), None
            )
            if frame_name is not None:
                frame = self._frames[frame_name]
                columns = self._lookups.ask(
                    ("frame", id(frame)), partial(_frame_columns, frame), None
                )
        return list(columns or ())


def _frame_columns(frame: Any) -> Columns:
    names = getattr(frame, "column_names", None)
    return [(str(name), "") for name in (frame.columns if names is None else names)]


def in_statement(at: Sql, names: Known, *, extended: bool = False) -> list[Candidate]:
    """Return the completions at the cursor, best first; ``extended`` includes Trino's missing forms
    of MERGE.
    """
    here = place(at.before, at.after, qualified=bool(at.qualifier), extended=extended)
    begin = at.word.removeprefix('"').replace('""', '"').lower()
    is_quoted = at.word.startswith('"')
    candidates: dict[str, Candidate] = {}
    for name, label in _Reader(here, names).named(at.qualifier):
        if name.lower().startswith(begin):
            text = (
                quoted(name).removesuffix('"' * at.is_closed)
                if is_quoted
                else quoted_where_needed(name, RESERVED)
            )
            candidates.setdefault(text, Candidate(text, label))
    if not is_quoted:
        # Keywords get the case of the incomplete word.
        in_case = str.lower if at.word.islower() else str.upper
        candidates |= {
            word: Candidate(in_case(word), "keyword")
            for word in sorted(here.words)
            if word.lower().startswith(begin)
        }
        if Slot.EXPRESSION in here.slots and not at.qualifier:
            candidates |= {
                name: Candidate(name, label)
                for name, label in _functions()
                if name.startswith(begin)
            }
        if Slot.TYPE in here.slots:
            candidates |= {
                name: Candidate(name, "type") for name in _TYPES if name.startswith(begin)
            }
    return list(candidates.values())


def _functions() -> Iterator[tuple[str, str]]:
    special = {**FORMS, **MOMENTS}
    for name in sorted({*known(), *special}):
        if name in special:
            yield name, special[name]
            continue
        visible_overloads = [
            overload
            for overload in overloads(name)
            if not overload.special and not overload.refusal
        ]
        if visible_overloads:
            more = f", {len(visible_overloads) - 1} more" if len(visible_overloads) > 1 else ""
            yield name, f"{visible_overloads[0]} -> {visible_overloads[0].result}{more}"


class _Reader:
    def __init__(self, here: Place, names: Known) -> None:
        self._here = here
        self._names = names
        self._with = {query.name.value: query for query in here.named_queries}

    def named(self, qualifier: Sequence[str]) -> Iterator[tuple[str, str]]:
        slots = self._here.slots
        if slots & {Slot.TARGET, Slot.TABLE, Slot.RELATION}:
            if Slot.RELATION in slots and not qualifier:
                yield from (
                    (query.name.text, "query of WITH") for query in self._here.named_queries
                )
                yield from ((name, "DataFrame") for name in self._names.frames())
            yield from self._names.below(*qualifier)
        if Slot.PROCEDURE in slots:
            yield from self._names.procedures(*qualifier)
        changed = self._here.target
        if changed is not None and not qualifier:
            parts = [part.text for part in changed.parts]
            if Slot.ARGUMENT in slots:
                yield from self._names.procedures(*parts)
            if Slot.PROPERTY in slots:
                yield from self._names.table_properties(*parts)
        if Slot.TARGET_COLUMN in slots and not qualifier and self._here.target is not None:
            yield from self._typed(self._table(self._here.target.parts))
        if Slot.COLUMN in slots or (Slot.EXPRESSION in slots and not qualifier):
            for relation in self._here.relations:
                yield from self._typed(self._columns(relation))
            yield from (
                (self._called(relation)[-1], "table")
                for relation in self._here.relations
                if self._called(relation)
            )
        if Slot.EXPRESSION in slots and qualifier:
            requested = tuple(part.lower() for part in qualifier)
            for relation in self._here.relations:
                relation_name = tuple(part.lower() for part in self._called(relation))
                if relation_name and relation_name[-len(requested) :] == requested:
                    yield from self._typed(self._columns(relation))

    @staticmethod
    def _typed(columns: Columns) -> Iterator[tuple[str, str]]:
        yield from ((name, sql_type or "column") for name, sql_type in columns)

    def _called(self, relation: s.Relation) -> tuple[str, ...]:
        if isinstance(relation, s.Aliased):
            return (relation.alias.text,)
        return (
            tuple(part.text for part in relation.name.parts)
            if isinstance(relation, s.Table)
            else ()
        )

    def _table(self, parts: Sequence[st.Identifier]) -> Columns:
        return self._names.columns([part.text for part in parts])

    def _is_named(self, parts: Sequence[st.Identifier]) -> bool:
        return len(parts) == 1 and parts[0].value in self._with

    def _named_query(self, name: str) -> Columns:
        # Hidden meanwhile: a recursive query refers to itself.
        query = self._with.pop(name)
        try:
            return [(column.text, "") for column in query.columns] or self._output(query.query)
        finally:
            self._with[name] = query

    def _columns(self, relation: s.Relation) -> Columns:
        match relation:
            case s.Aliased(columns=columns) if columns:
                return [(column.text, "") for column in columns]
            case s.Aliased(relation=inner):
                return self._columns(inner)
            case s.Table(name=name):
                return (
                    self._named_query(name.parts[0].value)
                    if self._is_named(name.parts)
                    else self._table(name.parts)
                )
            case s.SubqueryRelation(query=query) | s.Lateral(query=query):
                return self._output(query)
            case s.JoinRelation(left=left, right=right):
                return [*self._columns(left), *self._columns(right)]
        return []

    def _output(self, body: s.QueryBody) -> Columns:
        match body:
            case s.QueryNode(body=inner):
                return self._output(inner)
            case s.SetOperation(left=left):
                return self._output(left)
            case s.TableBody(name=name):
                return self._columns(s.Table(name.span, name))
            case s.Select(items=items, relation=relation):
                return [column for item in items for column in self._item(item, relation)]
        return []

    def _item(self, item: s.SelectItem | s.AllColumns, relation: s.Relation | None) -> Columns:
        if isinstance(item, s.SelectItem):
            if item.alias is not None:
                return [(item.alias.text, "")]
            return [(item.value.parts[-1].text, "")] if isinstance(item.value, s.Name) else []
        if relation is None:
            return []
        if item.target is None:
            return self._columns(relation)
        requested = (
            tuple(part.value for part in item.target.parts)
            if isinstance(item.target, s.Name)
            else ()
        )
        return next(
            (self._columns(leaf) for leaf in _leaves(relation) if self._is_called(leaf, requested)),
            [],
        )

    def _is_called(self, relation: s.Relation, requested: tuple[str, ...]) -> bool:
        return (
            tuple(part.lower() for part in self._called(relation))[-len(requested) :] == requested
        )


def _leaves(relation: s.Relation) -> Iterator[s.Relation]:
    if isinstance(relation, s.JoinRelation):
        yield from _leaves(relation.left)
        yield from _leaves(relation.right)
    else:
        yield relation
