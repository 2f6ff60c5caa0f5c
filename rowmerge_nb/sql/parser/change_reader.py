"""Parses UPDATE, DELETE and INSERT; some forms of the extended dialect are a MERGE."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.words import code
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.parser.merge_reader import MergeReader
from rowmerge_nb.sql.parser.target_in_from import TargetInFrom, target_in_from
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Identifier

_Named = tuple[tuple[s.NamedQuery, ...], bool]
_NONE: _Named = ((), False)


class ChangeReader(MergeReader):
    """Parses the other statements that change rows."""

    def update(self, queries: _Named = _NONE) -> st.Update | st.Delete | st.Merge:
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

    def delete(self, queries: _Named = _NONE) -> st.Update | st.Delete | st.Merge:
        start, forms = self.index, len(self.forms)
        self.take()
        self.word_before_name("FROM")
        clause = self.span_from(start)
        self.skip_word("ONLY")
        target = self.target()
        alias = self.accept_target_alias(target, "RETURNING")
        words = self.accept("USING", "FROM") if self.extended else None
        if words is not None:
            if words.word == "FROM":
                # The first FROM is optional in SQL Server.
                del self.forms[forms:]
            with self.before_returning():
                source = self._from()
            changed = st.MergeClause(0, True, Operation.DELETE, None, (), (), clause, clause)
            form = f"DELETE ... {words.word}"
            return self._as_merge(form, target, alias, source, changed, queries)
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
    ) -> st.Merge | st.Update | st.Delete:
        entry = target_in_from(source, target) if alias is None else None
        if entry is not None and entry.source is None:
            return self._without_source(form, entry, clause, queries)
        joins: tuple[s.Expression, ...] = ()
        if entry is not None and entry.source is not None:
            self._check_joins(form, entry)
            target, alias, source = entry.table.name, entry.alias, entry.source
            joins = entry.conditions
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
        terms = (*joins, self.expression()) if self.accept("WHERE") else joins
        on: s.Expression = s.Literal(clause.span, "boolean", "true")
        if terms:
            on = terms[0] if len(terms) == 1 else s.Logical(terms[0].span, "AND", terms)
        condition = " AND ".join(self._term(term, len(terms)) for term in terms) or "true"
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

    def _without_source(
        self, form: str, entry: TargetInFrom, clause: st.MergeClause, queries: _Named
    ) -> st.Update | st.Delete:
        target, alias = entry.table.name, entry.alias
        self.without_words()
        self.form(f"{form} of the target alone is that of its table.", target.span)
        where = self.expression() if self.accept("WHERE") else None
        returning = self.accept_returning()
        if clause.operation is Operation.DELETE:
            return st.Delete(*self.whole(), target, where, returning, alias, *queries)
        columns, values = clause.columns, clause.values
        return st.Update(*self.whole(), target, columns, values, where, returning, alias, *queries)

    def _check_joins(self, form: str, entry: TargetInFrom) -> None:
        join = entry.other_join
        if join is None:
            return
        name = entry.table.name.span.of(self.text)
        if join.kind == "INNER":
            self.error(
                f"The target of {form} is joined by ON in this engine, not by columns",
                join.span,
                "Write ON and the equalities.",
            )
        others = (
            f"DELETE FROM {name} WHERE NOT EXISTS (SELECT 1 FROM ... WHERE ...)"
            if form.startswith("DELETE")
            else "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET ... in a MERGE"
        )
        self.error(
            f"The target of {form} cannot be a side of a {join.kind} JOIN in this engine",
            join.span,
            f"Write JOIN for rows that the others match. For rows without a match, write {others}.",
        )

    def _term(self, term: s.Expression, count: int) -> str:
        text = term.span.of(self.text)
        is_or = isinstance(term, s.Logical) and term.operator == "OR"
        return f"({text})" if is_or and count > 1 else text

    def _joined(self, source: s.Relation) -> str:
        if isinstance(source, s.JoinRelation) and source.kind == "CROSS":
            right = self._joined(source.right)
            if isinstance(source.right, s.JoinRelation):
                right = f"({right})"
            return f"{self._joined(source.left)} CROSS JOIN {right}"
        return source.span.of(self.text)

    # -- INSERT

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
            if query.named_queries:
                self.mismatch(
                    "WITH",
                    "'SELECT', 'VALUES'",
                    query.span,
                    "Write one WITH, before INSERT or behind it.",
                )
            self.without_words()
            self.form(
                "Trino has the WITH before an INSERT behind INSERT INTO, before its query.",
                queries[0][0].span,
            )
            query = replace(query, named_queries=queries[0], recursive=queries[1])
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
