"""Parses UPDATE, DELETE and INSERT; some forms of the extended dialect are a MERGE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.words import code
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.parser.merge_reader import MergeReader
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Identifier

_Named = tuple[tuple[s.NamedQuery, ...], bool]
_NONE: _Named = ((), False)


class ChangeReader(MergeReader):
    """Parses the other statements that change rows."""

    def update(self, queries: _Named = _NONE) -> st.Update | st.Merge:
        self.take()
        self.skip_word("ONLY")
        target = self.target()
        self.choose_behind(target)
        alias = self.accept_target_alias(target, "SET")
        start = self.index
        self.expect("SET")
        columns, values = self.assignments(target, alias)
        clause = self.span_from(start)
        if self.extended and self.accept("FROM"):
            with self.before_returning():
                source = self._from()
            changed = st.MergeClause(
                0, True, Operation.UPDATE, None, columns, values, clause, clause
            )
            return self._as_merge("UPDATE ... FROM", target, alias, source, changed, queries)
        where = self.expression() if self.accept("WHERE") else None
        returning = self.accept_returning()
        return st.Update(*self.whole(), target, columns, values, where, returning, alias, *queries)

    def delete(self, queries: _Named = _NONE) -> st.Delete | st.Merge:
        start = self.index
        self.take()
        self.word_before_name("FROM")
        clause = self.span_from(start)
        self.skip_word("ONLY")
        target = self.target()
        alias = self.accept_target_alias(target, "RETURNING")
        if self.extended and self.accept("USING"):
            with self.before_returning():
                source = self._from()
            changed = st.MergeClause(0, True, Operation.DELETE, None, (), (), clause, clause)
            return self._as_merge("DELETE ... USING", target, alias, source, changed, queries)
        where = self.expression() if self.accept("WHERE") else None
        return st.Delete(*self.whole(), target, where, self.accept_returning(), alias, *queries)

    def _as_merge(
        self,
        form: str,
        target: st.TableName,
        alias: Identifier | None,
        source: s.Relation,
        clause: st.MergeClause,
        queries: _Named,
    ) -> st.Merge:
        named_again = any(
            isinstance(part, s.Aliased)
            and (part.alias.value,) == tuple(p.value for p in target.parts)
            for part in s.walk(source)
        )
        if named_again:
            self.error(
                f"'{target.parts[0].text}' is an alias behind {form.rsplit(maxsplit=1)[-1]}, not a table",
                target.span,
                f"Name the table behind {form.split(maxsplit=1)[0]}, and leave it out behind"
                f" {form.rsplit(maxsplit=1)[-1]}.",
            )
        self.drop_alias_edits()
        on: s.Expression = s.Literal(clause.span, "boolean", "true")
        condition = "true"
        if self.accept("WHERE"):
            on = self.expression()
            condition = on.span.of(self.text)
        action = "DELETE"
        if clause.operation is Operation.UPDATE:
            action = f"UPDATE {self.in_trino(clause.span) or clause.span.of(self.text)}"
        name = self.text[target.span.start : target.span.end]
        target_text = name if alias is None else f"{name} {alias.text}"
        text = f"MERGE INTO {target_text} USING {self._joined(source)} ON {condition} WHEN MATCHED THEN {action}"
        self.form(
            f"{form} runs as the MERGE that it is, and refuses a row of the target that several rows"
            f" of the source match: {code(text)}.",
            clause.span,
        )
        self.whole_in_trino = text
        returning = self.accept_returning()
        return st.Merge(
            *self.whole(),
            target,
            alias,
            source,
            on,
            (clause,),
            returning,
            queries[0],
            None,
            queries[1],
        )

    def _joined(self, source: s.Relation) -> str:
        if isinstance(source, s.JoinRelation) and source.kind == "CROSS":
            return f"{self._joined(source.left)} CROSS JOIN {self._joined(source.right)}"
        return source.span.of(self.text)

    # -- INSERT ---------------------------------------------------------------------------------------------------

    def insert(self, queries: _Named = _NONE) -> st.Insert:
        conflict = self._accept_alternative()
        self.word_before_name("INTO")
        self.skip_word("TABLE")
        target = self.target()
        alias = self.identifier() if self.extended and self.accept("AS") else None
        columns: tuple[Identifier, ...] | None = None
        by_name = self._accept_matching()
        if by_name is not None:
            self.choose_behind(target)
        elif self.token.word == "(" and self.ahead().word != "(" and not self.query_follows():
            columns = self._inserted_columns(target, alias)
        else:
            self.choose_behind(target)
            self.note("'('")
        if self.extended and columns is None and self.token.word == "DEFAULT":
            return self._insert_defaults(target, alias)
        self.note("'WITH'")
        with self.before_returning():
            query = self._with_defaults(self.query_of_statement())
        if queries[0]:
            if query.named:
                self.error(
                    "mismatched input 'WITH'. Expecting: 'SELECT', 'VALUES'",
                    query.span,
                    "Write one WITH, before INSERT or behind it.",
                )
            self.without_words()
            self.form(
                "Trino has the WITH before an INSERT behind INSERT INTO, before its query.",
                queries[0][0].span,
            )
            query = replace(query, named=queries[0], recursive=queries[1])
        inserted = st.Query(*self.whole(), query)
        if self.extended:
            conflict = self._accept_conflict(target, alias, conflict)
        return st.Insert(
            *self.whole(),
            target,
            columns,
            inserted,
            self.accept_returning(),
            alias,
            conflict,
            by_name,
        )

    def _accept_alternative(self) -> st.Conflict | None:
        """Take INSERT, or SQLite's INSERT OR REPLACE, REPLACE, INSERT OR IGNORE and the like."""
        start = self.index
        word = self.take().word
        if not self.extended:
            return None
        if word == "INSERT" and self.token.word == "IGNORE" and self.ahead().word == "INTO":
            word = self.take().word
        elif word == "INSERT":
            if not self.accept("OR"):
                return None
            word = self.expect("ABORT", "FAIL", "IGNORE", "REPLACE", "ROLLBACK").word
        span = self.span_from(start)
        if word in {"REPLACE", "IGNORE"}:
            self.without_words()
            form = " ".join(span.of(self.text).upper().split())
            return st.Conflict(form, span, replaces=word == "REPLACE")
        self.form(
            f"OR {word} is left out: an error undoes the whole INSERT.",
            span,
            (span.start + len("INSERT"), span.end, ""),
        )
        return None

    def _accept_matching(self) -> st.Span | None:
        start = self.index
        if not self.extended or self.token.word != "BY":
            return None
        self.take()
        word = self.expect("NAME", "POSITION").word
        span = self.span_from(start)
        if word == "NAME":
            self.without_words()
            self.form("Columns of the query are inserted by their names.", span)
            return span
        self.form("BY POSITION is left out.", span, (span.start, span.end + 1, ""))
        return None

    def _inserted_columns(
        self, target: st.TableName, alias: Identifier | None
    ) -> tuple[Identifier, ...]:
        self.index += 1
        self.note("'('", "'SELECT'", "'TABLE'", "'VALUES'")
        self.index -= 1
        return self.assigned_columns(target, alias)

    def _insert_defaults(self, target: st.TableName, alias: Identifier | None) -> st.Insert:
        start = self.index
        self.take()
        self.expect("VALUES")
        span = self.span_from(start)
        self.without_words()
        self.form("DEFAULT VALUES is one row of the columns' defaults, or NULLs.", span)
        body = s.Values(span, (s.Default(span),))
        query = s.QueryNode(span, (), body, (), None, None)
        inserted = st.Query(*self.whole(), query)
        return st.Insert(*self.whole(), target, (), inserted, self.accept_returning(), alias)

    def _with_defaults(self, query: s.QueryNode) -> s.QueryNode:
        if not self.extended or not isinstance(query.body, s.Values):
            return query
        rows = tuple(
            (
                replace(row, items=tuple(map(self.with_default, row.items)))
                if isinstance(row, s.RowConstructor)
                else self.with_default(row)
            )
            for row in query.body.rows
        )
        return replace(query, body=replace(query.body, rows=rows))

    def _accept_conflict(
        self, target: st.TableName, alias: Identifier | None, before: st.Conflict | None
    ) -> st.Conflict | None:
        start = self.index
        if self.ahead().word == "DUPLICATE" or not self.accept_all("ON", "CONFLICT"):
            return before
        if before is not None:
            self.error(
                f"{before.form} and ON CONFLICT cannot be in one statement",
                self.span_from(start),
                "Write one of them.",
            )
        keys = self._conflict_keys()
        self.expect("DO")
        self.without_words()
        changes = where = None
        if self.expect("NOTHING", "UPDATE").word == "UPDATE":
            self.expect("SET")
            first = self.index
            self.assignments(target, alias)
            changes = self.span_from(first)
            where = self.expression() if self.accept("WHERE") else None
        conflict = st.Conflict("ON CONFLICT", self.span_from(start), keys, changes, where)
        if self.token.word == "ON":
            self.error(
                "Several ON CONFLICT clauses are not supported by this engine",
                self.token.span,
                "Write one; a MERGE has several WHEN clauses.",
            )
        return conflict

    def _conflict_keys(self) -> tuple[Identifier, ...]:
        start = self.index
        if self.accept("ON"):
            self.error(
                "ON CONSTRAINT is not supported by this engine, which has no names of constraints",
                self.span_from(start),
                "Write ON CONFLICT (columns), or ON CONFLICT DO for the primary key.",
            )
        if not self.accept("("):
            return ()
        keys = self.identifiers()
        self.expect(")")
        if self.token.word == "WHERE":
            self.error(
                "ON CONFLICT (columns) WHERE is not supported by this engine, which has no partial"
                " indexes",
                self.token.span,
                "Leave the condition out, or write a MERGE with the condition in its ON.",
            )
        return keys
