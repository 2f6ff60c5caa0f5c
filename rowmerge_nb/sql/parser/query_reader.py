"""Parses queries and relations."""

from __future__ import annotations

import math
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.sql.parser.expression_reader import ExpressionReader
from rowmerge_nb.sql.parser.literals import STRINGS
from rowmerge_nb.sql.parser.tokens import RESERVED, TokenKind
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.tree.statements import Identifier, Span

_MOST_SETS: Final = 2048
_BEHIND_A_KEY: Final = frozenset(
    [
        *("HAVING", "WINDOW", "ORDER", "OFFSET", "LIMIT", "FETCH", "UNION", "INTERSECT", "EXCEPT"),
        *("AND", "OR", "IN", "IS", "BETWEEN", "LIKE"),
    ]
)
"""Words that follow a key of GROUP BY, and begin none."""
_BEHIND_NAME: Final = frozenset({*_BEHIND_A_KEY, "AS", "AT", "DISTINCT", "FROM", "GROUP", "WHERE"})
"""Words that follow the name of a selected column."""
_PRIMARY: Final = ("(", "SELECT", "TABLE", "VALUES")
_OF_TABLE_ARGUMENTS: Final = ("PARTITION", "ORDER", "PRUNE", "KEEP")
_INSTEAD: Final = {
    "PIVOT": "Write one aggregate with FILTER (WHERE ...) per column.",
    "NEAREST": "Join by the condition, and take one row per group by max_by or row_number().",
}
_SAMPLES: Final = {
    "TABLESAMPLE": {"BERNOULLI", "SYSTEM"},
    "MATCH_RECOGNIZE": {"("},
    "PIVOT": {"("},
}


class QueryReader(ExpressionReader):
    def query(self) -> s.QueryNode:
        """Parse ``[WITH ...] body [ORDER BY] [OFFSET] [LIMIT]``."""
        start = self.index
        named_queries, recursive = self.accept_with()
        if not named_queries and self.token.word not in _PRIMARY:
            self.note("<query>")
            self.fail()
        return self.query_behind(start, named_queries, recursive=recursive)

    def accept_with(self, *, is_statement: bool = False) -> tuple[tuple[s.NamedQuery, ...], bool]:
        if self.token.word != "WITH":
            return (), False
        self.deeper()
        self.take()
        self.note("'FUNCTION'", *(("'SESSION'",) if is_statement else ()))
        recursive = self.accept("RECURSIVE") is not None
        named_queries = self._named_queries()
        self.restart()
        self.depth -= 1
        return named_queries, recursive

    def query_behind(
        self, start: int, named_queries: tuple[s.NamedQuery, ...] = (), *, recursive: bool = False
    ) -> s.QueryNode:
        self.deeper()
        query = self._without_with(start, named_queries, recursive=recursive)
        self.depth -= 1
        return query

    def _without_with(
        self, start: int, named_queries: tuple[s.NamedQuery, ...] = (), *, recursive: bool = False
    ) -> s.QueryNode:
        body = self._body()
        order_by = self.accept_order_by()
        offset, (limit, fetch, ties) = self._offset(), self._limit()
        return s.QueryNode(
            self.span_from(start),
            named_queries,
            body,
            order_by,
            offset,
            limit,
            recursive,
            fetch,
            ties,
        )

    def _named_queries(self) -> tuple[s.NamedQuery, ...]:
        queries = [self._named_query()]
        while self.accept(","):
            queries.append(self._named_query())
        return tuple(queries)

    def _named_query(self) -> s.NamedQuery:
        start = self.index
        name = self.identifier()
        columns = self.accept_columns()
        self.expect("AS")
        self.expect("(")
        query = self.query()
        self.close(")")
        return s.NamedQuery(self.span_from(start), name, columns, query)

    def _offset(self) -> int | None:
        if not self.accept("OFFSET"):
            return None
        count = self._row_count()
        self.accept("ROW", "ROWS")
        return count

    def _limit(self) -> tuple[int | None, Span | None, bool]:
        start = self.index
        if self.accept("LIMIT"):
            return (None if self.accept("ALL") else self._row_count()), None, False
        if not self.accept("FETCH"):
            return None, None, False
        self.expect("FIRST", "NEXT")
        self.note("'?'", "<integer>")
        count = (
            self._row_count()
            if self.token.kind is TokenKind.INTEGER or self.token.word == "?"
            else 1
        )
        self.expect("ROW", "ROWS")
        ties = self.expect("ONLY", "WITH").word == "WITH"
        if ties:
            self.expect("TIES")
        return count, self.span_from(start), ties

    def _row_count(self) -> int:
        if self.accept("?"):
            return 1
        if self.token.kind is not TokenKind.INTEGER:
            self.note("<integer>")
            self.fail()
        literal = self._literal(self.take())
        assert isinstance(literal, s.Literal)
        return int(literal.value)

    def _body(self) -> s.QueryBody:
        return self._set_operations(self._intersections, "UNION", "EXCEPT")

    def _intersections(self) -> s.QueryBody:
        return self._set_operations(self._query_primary, "INTERSECT")

    def _set_operations(self, operand: Callable[[], s.QueryBody], *words: str) -> s.QueryBody:
        start = self.index
        left = operand()
        while word := self.accept(*words):
            distinct = self._set_quantifier()
            right = operand()
            left = s.SetOperation(
                self.span_from(start), word.word, distinct, left, right, word.span
            )
        return left

    def _set_quantifier(self) -> bool:
        word = self.accept("ALL", "DISTINCT")
        self.note("'CORRESPONDING'")
        return word is None or word.word == "DISTINCT"

    def _query_primary(self) -> s.QueryBody:
        start = self.index
        word = self.expect(*_PRIMARY).word
        if word == "SELECT":
            return self._select(start)
        if word == "TABLE":
            return s.TableBody(self.span_from(start), self.table_name())
        if word == "VALUES":
            rows = self.values_rows()
            return s.Values(self.span_from(start), rows)
        self.deeper()
        query = self._without_with(start + 1)
        self.depth -= 1
        self.close(")")
        return query

    def _select(self, start: int) -> s.Select:
        # ALL is not reserved.
        quantifier = (
            None
            if self.token.word == "ALL" and self._behind_name()
            else self.accept("ALL", "DISTINCT")
        )
        items = self.select_items()
        relation = self._from() if self.accept("FROM") else None
        where = self.expression() if self.accept("WHERE") else None
        group_by, grouping = self._group_by()
        having = self.expression() if self.accept("HAVING") else None
        windows = self._windows() if self.accept("WINDOW") else ()
        distinct = quantifier is not None and quantifier.word == "DISTINCT"
        return s.Select(
            self.span_from(start),
            distinct,
            items,
            relation,
            where,
            group_by,
            having,
            windows,
            grouping,
        )

    def _behind_name(self) -> bool:
        following = self.ahead()
        if following.kind is TokenKind.SYMBOL:
            return following.text not in {"(", "+", "-", "*", "?"}
        if following.kind is not TokenKind.WORD:
            return following.kind is TokenKind.END
        # A word that is not reserved may be an alias.
        return following.word in _BEHIND_NAME and (
            following.word in RESERVED or self.ahead(2).text not in {"", ",", "FROM"}
        )

    def _windows(self) -> tuple[tuple[Identifier, s.Window], ...]:
        windows: list[tuple[Identifier, s.Window]] = []
        while not windows or self.accept(","):
            name = self.identifier()
            self.expect("AS")
            windows.append((name, self.window_specification(self.index)))
        return tuple(windows)

    def select_items(self) -> tuple[s.SelectItem | s.AllColumns, ...]:
        items = [self._select_item()]
        while self.accept(","):
            items.append(self._select_item())
        return tuple(items)

    def _select_item(self) -> s.SelectItem | s.AllColumns:
        start = self.index
        if self.token.word == "*":
            self.take()
            return s.AllColumns(self.span_from(start), None, ())
        self.note("'*'")
        starred = self._starred(start)
        if starred is not None:
            return starred
        self.undecided_primary = start  # it may be the beginning of x.*
        value = self.expression()
        if self.index == self.starred:
            self.take()
            self.take()
            return s.AllColumns(self.span_from(start), value, self._field_names())
        alias = self.identifier() if self.accept("AS") else self.accept_alias()
        return s.SelectItem(self.span_from(start), value, alias)

    def _starred(self, start: int) -> s.AllColumns | None:
        count = 0
        while self.at_identifier(self.ahead(count)) and self.ahead(count + 1).word == ".":
            count += 2
        following = self.ahead(count)
        if (
            count
            and following.word != "*"
            and following.kind not in {*STRINGS, TokenKind.WORD}
            and not self.at_identifier(following)
        ):
            self.index += count
            self.note("'*'", "<identifier>", "<string>")
            self.fail()
        if not count or self.ahead(count).word != "*":
            return None
        parts = []
        while self.token.word != "*":
            parts.append(self.identifier())
            self.take()
        target = s.Name(self.span_from(start), tuple(parts))
        self.take()
        return s.AllColumns(self.span_from(start), target, self._field_names())

    def _field_names(self) -> tuple[Identifier, ...]:
        if not self.accept("AS"):
            return ()
        self.restart()
        if not self.at("("):
            self.expect("(")
        return self.accept_columns()

    def _from(self) -> s.Relation:
        start = self.index
        relation = self.relation()
        while self.accept(","):
            right = self.relation()
            relation = s.JoinRelation(self.span_from(start), "CROSS", relation, right)
        return relation

    def _group_by(self) -> tuple[tuple[s.Expression, ...] | None, s.GroupingSets | None]:
        start = self.index
        if not self.accept_all("GROUP", "BY"):
            return None, None
        distinct = self.accept("DISTINCT") is not None
        if not distinct and self.at("ALL") and self._keys_follow():
            self.take()
        items: list[s.Expression] = []
        elements: list[list[tuple[int, ...]]] = []
        columns: set[int] = set()
        while not elements or self.accept(","):
            self.note("'('", "'AUTO'", "'CUBE'", "'GROUPING'", "'ROLLUP'")
            first = len(items)
            if self.token.word in {"ROLLUP", "CUBE"}:
                word = self.take().word
                sets = self._grouping_sets(items)
                count = len(sets) + 1 if word == "ROLLUP" else 2 ** len(sets)
                self._check_sets(start, count)
                elements.append(_rolled_up(sets) if word == "ROLLUP" else _cubed(sets, items))
                columns.update(range(first, len(items)))
            elif self.token.word == "GROUPING" and self.ahead().word == "SETS":
                self.take()
                self.take()
                elements.append(self._grouping_sets(items))
                columns.update(range(first, len(items)))
            elif auto := self.accept("AUTO"):
                items.append(s.AutoKeys(auto.span))
                elements.append([(first,)])
            else:
                if self.token.word == "GROUPING":
                    self.index += 1
                    self.note("'SETS'")
                    self.index -= 1
                elements.append([self._grouping_set(items)])
            self._check_sets(start, math.prod(map(len, elements)))
        sets = [tuple(chain.from_iterable(parts)) for parts in product(*elements)]
        several = columns or len(sets) > 1
        return tuple(items), (
            s.GroupingSets(tuple(sets), frozenset(columns), distinct) if several else None
        )

    def _keys_follow(self) -> bool:
        following = self.ahead()
        if following.kind in {TokenKind.SYMBOL, TokenKind.END}:
            return following.text in {"(", "+", "-", "?"}
        return following.word not in _BEHIND_A_KEY

    def _grouping_sets(self, items: list[s.Expression]) -> list[tuple[int, ...]]:
        self.expect("(")
        sets: list[tuple[int, ...]] = []
        if self.token.word != ")":
            self.note("'('")
            sets.append(self._grouping_set(items))
            self.restart()
            while self.accept(","):
                self.note("'('")
                sets.append(self._grouping_set(items))
                self.restart()
        self.expect(")")
        return sets

    def _grouping_set(self, items: list[s.Expression]) -> tuple[int, ...]:
        """Parse a set; its expressions are added to ``items``, and their indexes returned."""
        first = len(items)
        if self.token.word == "(" and self.ahead().word == ")":
            self.take()
            self.take()
        else:
            in_parentheses = self.token.word == "("
            item = self.expression()
            items.extend(
                item.items if in_parentheses and isinstance(item, s.RowConstructor) else [item]
            )
        return tuple(range(first, len(items)))

    def _check_sets(self, start: int, count: int) -> None:
        if count > _MOST_SETS:
            raise ParseError(
                f"GROUP BY has {count} grouping sets but can contain at most {_MOST_SETS}",
                code="TOO_MANY_GROUPING_SETS",
            ).at(self.span_from(start), 1)

    # -- relations

    def relation(self) -> s.Relation:
        """Parse a relation with its joins; a further ON belongs to MERGE."""
        start = self.index
        self.deeper()
        left = self._sampled()
        while (joined := self._join(start, left)) is not None:
            left = joined
        self.depth -= 1
        return left

    def _join(self, start: int, left: s.Relation) -> s.Relation | None:
        if self.accept("CROSS"):
            self.expect("JOIN")
            right = self._sampled()
            return s.JoinRelation(self.span_from(start), "CROSS", left, right)
        natural = self.accept("NATURAL") is not None
        join_kind = self._join_kind()
        if join_kind is None:
            return self.fail() if natural else None
        right = self._sampled() if natural else self.relation()
        if not natural:
            self.restart()
        if natural:
            return s.JoinRelation(self.span_from(start), join_kind, left, right, natural=True)
        if self.accept("ON"):
            condition = self.expression()
            return s.JoinRelation(self.span_from(start), join_kind, left, right, on=condition)
        self.expect("USING")
        self.expect("(")
        columns = self.identifiers()
        self.expect(")")
        return s.JoinRelation(self.span_from(start), join_kind, left, right, using=columns)

    def _join_kind(self) -> str | None:
        if self.accept("JOIN"):
            return "INNER"
        if self.accept("INNER"):
            self.expect("JOIN")
            return "INNER"
        side = self.accept("LEFT", "RIGHT", "FULL")
        if side is None:
            return None
        self.accept("OUTER")
        self.expect("JOIN")
        return side.word

    def _sampled(self) -> s.Relation:
        relation = self._aliased()
        if not self._sample_follows():
            self.note("'TABLESAMPLE'", "'MATCH_RECOGNIZE'", "'PIVOT'")
            return relation
        if self.token.word in {"MATCH_RECOGNIZE", "PIVOT"}:
            self._refuse(self.token.word)
        error = ParseError.unsupported(
            "TABLESAMPLE is not supported by this engine",
            hint="Choose rows by a condition in WHERE.",
        )
        self.refused(error.at(self.take().span))
        self.expect("BERNOULLI", "SYSTEM")
        self.expect("(")
        self.expression()
        self.expect(")")
        return relation

    def _sample_follows(self) -> bool:
        return self.ahead().word in _SAMPLES.get(self.token.word, ())

    def _refuse(self, what: str) -> NoReturn:
        raise ParseError.unsupported(
            f"{what} is not supported by this engine",
            hint=_INSTEAD.get(what),
        ).at(self.token.span, len(what))

    def _aliased(self) -> s.Relation:
        start = self.index
        relation = self._relation_primary()
        if self.accept("AS") or (self.at_alias() and not self._sample_follows()):
            alias = self.identifier()
        else:
            self.note("<identifier>")
            return relation
        columns = self.accept_columns()
        return s.Aliased(self.span_from(start), relation, alias, columns)

    def _relation_primary(self) -> s.Relation:
        start = self.index
        if self.token.word == "LATERAL" and self.ahead().word == "(":
            self.take()
            self.take()
            query = self.query()
            self.close(")")
            return s.Lateral(self.span_from(start), query)
        if self.accept("UNNEST"):
            return self._unnest(start)
        if self.token.word in {"JSON_TABLE", "NEAREST"} and self.ahead().word == "(":
            self._refuse(self.token.word)
        if self.token.word == "TABLE" and self.ahead().word == "(":
            return self._table_function(start)
        if self.token.word in {"TABLE", "JSON_TABLE"}:
            self.take()
            self.expect("(")
        if self.token.word == "(":
            return self._parenthesised_relation(start)
        if not self.at_identifier():
            self.note(
                "'('",
                "'JSON_TABLE'",
                "'LATERAL'",
                "'NEAREST'",
                "'TABLE'",
                "'UNNEST'",
                "<identifier>",
            )
            self.fail()
        name = self.table_name()
        period = self._accept_period()
        return s.Table(self.span_from(start), name, period)

    def _accept_period(self) -> s.QueryPeriod | None:
        start = self.index
        if not self.accept("FOR"):
            return None
        version_kind = self.expect("TIMESTAMP", "VERSION").word
        self.expect("AS")
        self.expect("OF")
        end = self.value()
        return s.QueryPeriod(self.span_from(start), version_kind, end)

    def _table_function(self, start: int) -> s.Relation:
        self.take()
        self.expect("(")
        name = self.table_name()
        self.expect("(")
        arguments: list[tuple[Identifier | None, s.Expression]] = []
        while not arguments or self.accept(","):
            if not arguments and self.token.word == ")":
                break
            parameter = None
            if self.at_identifier() and self.ahead().word == "=>":
                parameter = self.identifier()
                self.take()
            arguments.append((parameter, self._table_function_argument()))
            self.restart()
        self.note("'COPARTITION'")
        self.expect(")")
        self.expect(")")
        return s.TableFunction(self.span_from(start), name, tuple(arguments))

    def _table_function_argument(self) -> s.Expression:
        start = self.index
        if self.token.word == "TABLE" and self.ahead().word == "(":
            self.take()
            self.take()
            relation: s.Relation
            if self.query_follows():
                query = self.query()
                relation = s.SubqueryRelation(self.span_from(start), query)
            else:
                name = self.table_name()
                relation = s.Table(self.span_from(start), name, None)
            self.close(")")
            if self.at(*_OF_TABLE_ARGUMENTS):
                self._refuse(f"{self.token.word} of an argument of a table function")
            alias = self.identifier() if self.accept("AS") else self.accept_alias()
            if alias is not None:
                relation = s.Aliased(self.span_from(start), relation, alias, self.accept_columns())
            return s.TableArgument(self.span_from(start), relation)
        if self.token.word == "DESCRIPTOR" and self.ahead().word == "(":
            self.take()
            self.take()
            columns, typed = [self.identifier()], self._accept_type()
            while self.accept(","):
                columns.append(self.identifier())
                typed = self._accept_type() or typed
            self.close(")")
            return s.Descriptor(self.span_from(start), tuple(columns), typed)
        self.note("'CAST'", "'DESCRIPTOR'", "'TABLE'")
        return self.expression()

    def _accept_type(self) -> bool:
        if not self.at_identifier():
            return False
        self.type_name()
        return True

    def _unnest(self, start: int) -> s.Relation:
        self.expect("(")
        items = self.listed()
        self.expect(")")
        ordinality = self.token.word == "WITH" and self.ahead().word == "ORDINALITY"
        if self.token.word != "WITH":
            self.note("'WITH'")
        if ordinality:
            self.take()
            self.take()
        return s.Unnest(self.span_from(start), items, ordinality)

    def _parenthesised_relation(self, start: int) -> s.Relation:
        if self.query_follows():
            self.take()
            query = self.query()
            self.close(")")
            return s.SubqueryRelation(self.span_from(start), query)
        self.expect("(")
        self.note("<query>")
        relation = self.relation()
        self.close(")")
        return relation


def _rolled_up(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [tuple(chain.from_iterable(sets[:count])) for count in range(len(sets), -1, -1)]


def _cubed(sets: list[tuple[int, ...]], items: list[s.Expression]) -> list[tuple[int, ...]]:
    once = list(
        {
            frozenset(_called(items[index]) for index in some_set): some_set for some_set in sets
        }.values()
    )
    return [
        tuple(chain.from_iterable(combination))
        for count in range(len(once), -1, -1)
        for combination in combinations(once, count)
    ]


def _called(item: s.Expression) -> object:
    return tuple(part.value for part in item.parts) if isinstance(item, s.Name) else item
