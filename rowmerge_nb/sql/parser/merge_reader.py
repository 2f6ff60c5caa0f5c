"""Parses MERGE; the extended dialect has forms of PostgreSQL, Spark and others."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.parser.functions import FunctionReader
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s


@dataclass(frozen=True)
class _Action:
    """The part after THEN: its operation, and the ``*`` of SET * and INSERT *."""

    operation: Operation
    head: st.Span
    columns: tuple[st.Identifier, ...] = ()
    values: tuple[s.Expression, ...] = ()
    star: st.Span | None = None


class MergeReader(FunctionReader):
    """Parses MERGE and the SET list of UPDATE."""

    def whole(self) -> tuple[str, st.Span]:
        """Return the whole statement's text and span."""
        return self.text, st.Span.within(self.text, 0, len(self.text))

    def merge(self, named: tuple[s.NamedQuery, ...] = ()) -> st.Merge:
        """Parse a MERGE behind the queries of a WITH."""
        self.take()
        evolution = self._accept_evolution()
        self.expect("INTO")
        target, alias = self._aliased_target()
        self.expect("USING")
        source = self.relation()
        self.close("ON")
        on = self.expression()
        self.restart()
        clauses = [self._clause(0)]
        while self.token.word == "WHEN":
            clauses.append(self._clause(len(clauses)))
        self.note("'WHEN'")
        returning = self.accept_returning()
        return st.Merge(
            *self.whole(), target, alias, source, on, tuple(clauses), returning, named, evolution
        )

    def _accept_evolution(self) -> st.Span | None:
        start = self.index
        return (
            self.span_from(start)
            if self.extended and self.accept_all("WITH", "SCHEMA", "EVOLUTION")
            else None
        )

    def accept_returning(self) -> tuple[s.SelectItem | s.AllColumns, ...]:
        """Accept RETURNING (extended dialect)."""
        return self.select_items() if self.extended and self.accept("RETURNING") else ()

    def target(self) -> st.TableName:
        """Parse the target's name and its branch."""
        name = self.table_name()
        return replace(name, branch=self.identifier()) if self.accept("@") else name

    def _aliased_target(self) -> tuple[st.TableName, st.Identifier | None]:
        target = self.target()
        self.choose_behind(target)
        return target, self.identifier() if self.accept("AS") else self.accept_alias()

    def choose_behind(self, target: st.TableName) -> None:
        """Start a mandatory choice, to which the target's branch belongs."""
        self.restart()
        if target.branch is None:
            self.note("'@'")

    def assignments(self) -> tuple[tuple[st.Identifier, ...], tuple[s.Expression, ...]]:
        """Parse ``column = value, ...``."""
        columns, values = [], []
        while True:
            columns.append(self.identifier())
            self.expect("=")
            values.append(self.expression())
            if not self.accept(","):
                return tuple(columns), tuple(values)

    def _clause(self, number: int) -> st.MergeClause:
        start = self.index
        self.expect("WHEN")
        matched = self.accept("NOT") is None
        self.expect("MATCHED")
        by_source = (
            self.extended
            and not matched
            and self.accept("BY") is not None
            and self.expect("SOURCE", "TARGET").word == "SOURCE"
        )
        self.undecided += matched  # UPDATE or DELETE: only what follows the condition decides
        condition = None
        if self.accept("AND"):
            condition = self.expression()
            self.close("THEN", is_decided=False)
        else:
            self.expect("THEN")
        self.undecided -= matched
        action = self._change_action(start) if matched or by_source else self._insert_action(start)
        if by_source and action.star is not None:
            self.error(
                "mismatched input '*'. Expecting: <identifier>",
                action.star,
                "A row that is not matched by the source has no source row to take the columns"
                " from; write the columns.",
            )
        return st.MergeClause(
            number,
            matched,
            action.operation,
            condition,
            action.columns,
            action.values,
            self.span_from(start),
            action.head,
            by_source=by_source,
            star=action.star,
        )

    def _change_action(self, start: int) -> _Action:
        if self._accept_nothing():
            return _Action(Operation.NONE, self.span_from(start))
        goes_on = self.token.word == "DELETE" and self.is_behind_closed
        word = (self.close("DELETE") if goes_on else self.expect("DELETE", "UPDATE")).word
        head = self.span_from(start)
        if word == "DELETE":
            return _Action(Operation.DELETE, head)
        starred = self._accept_star(Operation.UPDATE, head)
        if starred is not None:
            return starred
        self.expect("SET")
        return self._accept_star(Operation.UPDATE, head) or _Action(
            Operation.UPDATE, head, *self.assignments()
        )

    def _insert_action(self, start: int) -> _Action:
        if self._accept_nothing():
            return _Action(Operation.NONE, self.span_from(start))
        self.expect("INSERT")
        head = self.span_from(start)
        starred = self._accept_star(Operation.INSERT, head)
        if starred is not None:
            return starred
        columns = self.accept_columns()
        self.expect("VALUES")
        self.expect("(")
        values = self.listed()
        self.expect(")")
        self.restart()
        return _Action(Operation.INSERT, head, columns, values)

    def _accept_nothing(self) -> bool:
        return self.extended and self.accept_all("DO", "NOTHING")

    def _accept_star(self, operation: Operation, head: st.Span) -> _Action | None:
        star = self.accept("*") if self.extended else None
        return None if star is None else _Action(operation, head, star=star.span)
