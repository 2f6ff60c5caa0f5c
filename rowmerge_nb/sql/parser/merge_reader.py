"""Parses MERGE; the extended dialect has forms of PostgreSQL, Spark and others."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rowmerge_nb.base.words import code
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.parser.extended_reader import ExtendedReader
from rowmerge_nb.sql.parser.literals import STRINGS
from rowmerge_nb.sql.parser.tokens import TokenKind
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s


@dataclass(frozen=True)
class _Action:
    operation: Operation
    head: st.Span
    columns: tuple[st.Identifier, ...] = ()
    values: tuple[s.Expression, ...] = ()
    star: st.Span | None = None
    matching: st.StarMatching = st.StarMatching.NAMES
    error: str | None = None
    defaults: bool = False


class MergeReader(ExtendedReader):
    _assigns_to: tuple[st.TableName, st.Identifier | None]

    def whole(self) -> tuple[str, st.Span]:
        return self.text, st.Span.within(self.text, 0, len(self.text))

    def merge(self, queries: tuple[tuple[s.NamedQuery, ...], bool] = ((), False)) -> st.Merge:
        self.take()
        evolution = self._accept_evolution()
        self.word_before_name("INTO")
        self.skip_word("ONLY")
        target, alias = self._aliased_target()
        self._assigns_to = target, alias
        self.expect("USING")
        source = self.relation()
        on = self._joined_by_columns(target, alias, source) if self.extended else None
        if on is None:
            self.close("ON")
            on = self.expression()
        self.restart()
        clauses = [self._clause(0)]
        while self.token.word == "WHEN":
            clauses.append(self._clause(len(clauses)))
        self.note("'WHEN'")
        returning = self.accept_returning()
        return st.Merge(
            *self.whole(),
            target,
            alias,
            source,
            on,
            tuple(clauses),
            returning,
            queries[0],
            evolution,
            queries[1],
        )

    def _joined_by_columns(
        self, target: st.TableName, alias: st.Identifier | None, source: s.Relation
    ) -> s.Expression | None:
        start = self.index
        if not self.accept("USING"):
            return None
        self.expect("(")
        columns = self.identifiers()
        self.expect(")")
        span = self.span_from(start)
        sides: list[tuple[st.Identifier, ...]] = [
            (alias,) if alias is not None else target.parts,
            (),
        ]
        if isinstance(source, s.Aliased):
            sides[1] = (source.alias,)
        elif isinstance(source, s.Table):
            sides[1] = source.name.parts
        else:
            self.error("USING (...) needs a name of the source", span, "Give the source an alias.")
        own, other = sides
        terms = tuple(
            s.Binary(span, "=", s.Name(span, (*own, column)), s.Name(span, (*other, column)), span)
            for column in columns
        )
        text = " AND ".join(
            " = ".join(".".join(part.text for part in (*side, column)) for side in sides)
            for column in columns
        )
        self.form(
            f"USING of columns is {code(f'ON {text}')}.", span, (span.start, span.end, f"ON {text}")
        )
        return terms[0] if len(terms) == 1 else s.Logical(span, "AND", terms)

    def _accept_evolution(self) -> st.Span | None:
        start = self.index
        if not self.extended or not self.accept_all("WITH", "SCHEMA", "EVOLUTION"):
            return None
        self.without_words()
        return self.span_from(start)

    def target(self) -> st.TableName:
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

    def _clause(self, number: int) -> st.MergeClause:
        start = self.index
        self.expect("WHEN")
        matched = self.accept("NOT") is None
        self.expect("MATCHED")
        by_source = self.extended and not matched and self._accept_by_source()
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
            self.mismatch(
                "*",
                "<identifier>",
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
            matching=action.matching,
            error=action.error,
            defaults=action.defaults,
        )

    def _accept_by_source(self) -> bool:
        """Accept BY SOURCE, or BY TARGET, which is without words in Trino."""
        by = self.accept("BY")
        if by is None:
            return False
        side = self.expect("SOURCE", "TARGET")
        if side.word == "SOURCE":
            self.without_words()
            return True
        self.form(
            "NOT MATCHED BY TARGET is NOT MATCHED.", by.span, (by.span.start - 1, side.span.end, "")
        )
        return False

    def _change_action(self, start: int) -> _Action:
        if (inactive := self._accept_inactive(start)) is not None:
            return inactive
        goes_on = self.token.word == "DELETE" and self.is_behind_closed
        word = (self.close("DELETE") if goes_on else self.expect("DELETE", "UPDATE")).word
        head = self.span_from(start)
        if word == "DELETE":
            return _Action(Operation.DELETE, head)
        starred = self._accept_star(Operation.UPDATE, head) or self._accept_unlisted(
            Operation.UPDATE, head, "SET"
        )
        if starred is not None:
            return starred
        self.expect("SET")
        return self._accept_star(Operation.UPDATE, head) or _Action(
            Operation.UPDATE, head, *self.assignments(*self._assigns_to)
        )

    def _insert_action(self, start: int) -> _Action:
        if (inactive := self._accept_inactive(start)) is not None:
            return inactive
        self.expect("INSERT")
        head = self.span_from(start)
        starred = self._accept_star(Operation.INSERT, head) or self._accept_unlisted(
            Operation.INSERT, head, "VALUES"
        )
        if starred is not None:
            return starred
        columns = self.assigned_columns(*self._assigns_to)
        self.expect("VALUES")
        self.expect("(")
        values = tuple(map(self.with_default, self.listed()))
        self.expect(")")
        self.restart()
        return _Action(Operation.INSERT, head, columns, values)

    def _accept_inactive(self, start: int) -> _Action | None:
        if not self.extended:
            return None
        if self.accept_all("DO", "NOTHING"):
            self.without_words()
            return _Action(Operation.NONE, self.span_from(start))
        if self.token.word != "ERROR":
            return None
        word = self.take()
        self.without_words()
        head = self.span_from(start)
        self.form(
            "THEN ERROR ends the statement with the first row that the clause takes; nothing is"
            " changed.",
            word.span,
        )
        message = self.string() if self.token.kind in STRINGS else ""
        return _Action(Operation.NONE, head, error=message)

    def _accept_star(self, operation: Operation, head: st.Span) -> _Action | None:
        star = self.accept("*") if self.extended else None
        if star is None:
            return None
        self.without_words()
        return _Action(operation, head, star=star.span)

    def _accept_unlisted(
        self, operation: Operation, head: st.Span, list_word: str
    ) -> _Action | None:
        start, word = self.index, self.token.word
        if not self.extended or word in {list_word, "("}:
            return None
        inserts = operation is Operation.INSERT
        if inserts and word == "DEFAULT":
            self.take()
            self.expect("VALUES")
            self.without_words()
            span = self.span_from(start)
            self.form("DEFAULT VALUES is one row of the columns' defaults, or NULLs.", span)
            return _Action(operation, head, defaults=True)
        matching = st.StarMatching.POSITIONS
        if self.accept("BY"):
            if self.expect("NAME", "POSITION").word == "NAME":
                matching = st.StarMatching.EXISTING
        elif inserts and word == "ROW":
            self.take()
        elif self.token.kind is not TokenKind.END and word not in {"WHEN", "RETURNING"}:
            return None
        self.accept("*")
        self.without_words()
        span = self.span_from(start) if self.index > start else head
        by_name = matching is st.StarMatching.EXISTING
        self.form(
            "Columns of the source are taken by their names."
            if by_name
            else "Columns of the source are taken in their order, not by their names.",
            span,
        )
        return _Action(operation, head, star=span, matching=matching)
