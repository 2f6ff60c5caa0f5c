"""Analyzes queries and prints them as Spark SQL whose output columns are symbols."""

# An analyzer calls the private methods of another one of its class.
# ruff: noqa: SLF001

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.errors import AnalysisError
from rowmerge_nb.names import backquoted
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, UNKNOWN
from rowmerge_nb.sql.analyzer.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.computed_rows import FEW_ROWS, computed_rows
from rowmerge_nb.sql.analyzer.group_by import check_groups, grouped_by, grouping_operations, with_keys, with_sets_once
from rowmerge_nb.sql.analyzer.inline_functions import define_functions
from rowmerge_nb.sql.analyzer.known_rows import known, select_size, set_size, tail_size, written_size
from rowmerge_nb.sql.analyzer.named_queries import NamedQueries, check_columns
from rowmerge_nb.sql.analyzer.recursion import AnalyzedQuery, analyzed, recursion_of, recursive_rows
from rowmerge_nb.sql.analyzer.relations import QueryResult, RelationAnalyzer, RelationResult
from rowmerge_nb.sql.analyzer.scope import ScopeField
from rowmerge_nb.sql.analyzer.select_list import Output, numbered_output, outputs_by_name, select_list
from rowmerge_nb.sql.analyzer.values import WrittenRow, common_row, constant_rows, values_rows
from rowmerge_nb.sql.analyzer.windows import named_windows
from rowmerge_nb.sql.functions.overloads import overloads
from rowmerge_nb.sql.spark.printer import print_spark, sort_keys
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.types import (
    common_type,
    entries_type,
    has_map,
    instant,
    is_orderable,
    parts_of,
    spark_type,
    without_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer

_MOST_COUNTED: Final = 2**31 - 1

_SELECT = ExpressionSite("SELECT clause", aggregates=True, windows=True)
_DENSE_RANK = (e.Apply(BIGINT, "function", (), overloads("dense_rank")[0]),)
_UNMARKED = e.Constant(BOOLEAN, "true")
_ONE_ROW: Final = RelationResult((), "(SELECT 1)")
"""What a SELECT without FROM reads."""
_SHOWN = 10
"""So many rows of VALUES are kept for EXPLAIN."""
_HAVING = ExpressionSite("HAVING clause", aggregates=True)


@dataclass(frozen=True)
class _Total:
    """How a grand total of no rows comes to its row: the mark of rows that are there, what is read, which groups are kept."""

    mark: e.Typed
    source: str
    kept: str


@dataclass(frozen=True)
class _Above:
    """What a SELECT makes of its rows or groups: the columns, which groups are kept, and by what they are sorted."""

    outputs: tuple[Output, ...]
    having: e.Typed | None
    order_by: tuple[e.Sort, ...]

    @property
    def values(self) -> list[e.Typed]:
        """All of its expressions."""
        found = [*(output.value for output in self.outputs), *(key.value for key in self.order_by)]
        return [*found, self.having] if self.having is not None else found

    def changed(self, change: Callable[[e.Typed], e.Typed]) -> _Above:
        """Return it with other expressions."""
        return _Above(
            tuple(replace(output, value=change(output.value)) for output in self.outputs),
            None if self.having is None else change(self.having),
            tuple(replace(key, value=change(key.value)) for key in self.order_by),
        )

    def replaced(self, pairs: Sequence[tuple[e.Typed, e.Typed]]) -> _Above:
        """Return it with the second of each pair in the place of the first."""
        return self.changed(lambda value: e.replaced(value, pairs)) if pairs else self


class QueryAnalyzer(RelationAnalyzer):
    """Analyzes queries; see `RelationAnalyzer` for the arguments."""

    def query(self, node: s.QueryNode) -> QueryResult:
        """Analyze a whole query.

        Raises:
            AnalysisError: with Trino's code and place; NOT_SUPPORTED for forms that are not handled here.
        """
        define_functions(self.context, node.functions)
        inner = self._with(node.named, recursive=node.recursive)
        if isinstance(node.body, s.Select):
            result = inner._select(node.body, node)
            self._check_fetch(node)
            return result
        result = inner._body(node.body)
        self._check_fetch(node)
        if not (node.order_by or node.offset or node.limit is not None):
            return result
        keys = tuple(inner._sort_key(item, result.fields) for item in node.order_by)
        columns = ", ".join(backquoted(field.symbol) for field in result.fields)
        text = f"SELECT {columns} FROM ({result.spark}){_tail(keys, node)}"
        if node.ties:
            text = self._with_ties(result.spark, columns, keys, node)
        reads = sum((e.reads(key.value) for key in keys), result.reads)
        tree = None if result.tree is None else q.Ordered(result.tree, keys, node.limit, node.offset or 0, node.ties)
        size, cut = tail_size(result.size, node), (result.deterministic and _cut(node)) or result.cut
        deterministic = result.deterministic and not _cut(node)
        return replace(result, spark=text, deterministic=deterministic, reads=reads, tree=tree, size=size, cut=cut)

    def _check_fetch(self, node: s.QueryNode) -> None:
        if node.fetch is not None and node.limit == 0:
            self.context.error(
                "NUMERIC_VALUE_OUT_OF_RANGE", f"FETCH FIRST row count must be positive (actual value: {node.limit})", node.fetch
            )
        if node.ties and not node.order_by:
            self.context.error("MISSING_ORDER_BY", "FETCH FIRST WITH TIES clause requires ORDER BY", node.fetch)

    def visible(self, named: tuple[s.NamedQuery, ...]) -> NamedQueries:
        """Return the queries that can be seen behind a WITH; each of them is analyzed."""
        return self._with(named).named

    def _with(self, named: tuple[s.NamedQuery, ...], *, recursive: bool = False) -> QueryAnalyzer:
        entries: dict[str, tuple[int, s.NamedQuery]] = {}
        for index, entry in enumerate(named):
            if entry.name.value in entries:
                self.context.error(
                    "DUPLICATE_NAMED_QUERY", f"WITH query name '{entry.name.value}' specified more than once", entry.span
                )
            seen = NamedQueries(self.named, entries, index)
            recursion = recursion_of(self.context, entry) if recursive else None
            # A query that nothing refers to must be right as well.
            if recursion is None:
                found = self._seeing(entry.query, seen)
            else:
                found = recursive_rows(self.context, entry, recursion, seen, self._seeing)
            check_columns(self.context, entry, len(found.fields))
            entries[entry.name.value] = (index, entry if recursion is None else analyzed(entry, found))
        return QueryAnalyzer(self.context, self.parent, NamedQueries(self.named, entries, len(named))) if named else self

    def _seeing(self, node: s.QueryBody, seen: NamedQueries) -> QueryResult:
        """Analyze a query that sees other queries of WITH."""
        return QueryAnalyzer(self.context, self.parent, seen)._body(node)

    def _body(self, node: s.QueryBody) -> QueryResult:
        if isinstance(node, AnalyzedQuery):
            return node.again(self.context)
        if isinstance(node, s.QueryNode):
            return self.query(node)
        if isinstance(node, s.Select):
            return self._select(node, s.QueryNode(node.span, (), node, (), None, None))
        if isinstance(node, s.Values):
            return self._values(node)
        if isinstance(node, s.TableBody):
            whole = self._whole(self._table(s.Table(node.span, node.name)))
            self.context.check_read(whole.fields, node.span)
            return whole
        assert isinstance(node, s.SetOperation)
        return self._set_operation(node)

    def _whole(self, relation: RelationResult) -> QueryResult:
        fields = tuple(field for field in relation.fields if not field.hidden)
        columns = ", ".join(backquoted(field.symbol) for field in fields)
        text = f"SELECT {columns} FROM {relation.text}"
        return QueryResult(
            fields,
            text,
            relation.reaching,
            relation.deterministic,
            reads=relation.reads,
            tree=relation.tree,
            size=relation.size,
        )

    # -- VALUES ---------------------------------------------------------------------------------------------------

    def _values(self, node: s.Values) -> QueryResult:
        analyzer = self.expressions((), ExpressionSite("VALUES"))
        parts = values_rows(self.context, analyzer, node)
        fields = tuple(
            ScopeField(self.context.symbols.new("field"), None, kind) for kind in common_row(self.context, node, parts)
        )
        columns = tuple(e.Column(f.type, f.symbol) for f in fields)
        rows = constant_rows(parts, fields)
        if rows is not None:
            table = self.context.bind(rows)
            text = table.query(field.symbol for field in fields)
            tree = q.Valued(columns, rows.count, rows.first)
            return QueryResult(fields, text, rows=rows, reads=e.Reads((table.view,)), tree=tree, size=known(rows.count))
        written = [part for part in parts if isinstance(part, WrittenRow)]
        reaching = tuple((column, depth - 1) for column, depth in analyzer.outer)
        deterministic = all(e.is_deterministic(cell) for row in written for cell in row.cells)
        reads = sum((e.reads(cell) for row in written for cell in row.cells), e.NOTHING)
        if len(written) == len(parts) <= FEW_ROWS:
            text, reads = self._value_text(analyzer, written, fields), reads + e.Reads(written=len(written))
        else:
            text, views = computed_rows(self.context, analyzer, node, parts, fields)
            reads += e.Reads(views)
        cells = [[analyzer.coerce(cell, f.type) for cell, f in zip(row.cells, fields, strict=True)] for row in written[:_SHOWN]]
        tree = q.Valued(columns, sum(part.count for part in parts), lambda most: cells[:most])
        return QueryResult(fields, text, reaching, deterministic, reads=reads, tree=tree, size=written_size(parts))

    def _value_text(self, analyzer: ExpressionAnalyzer, rows: Sequence[WrittenRow], fields: tuple[ScopeField, ...]) -> str:
        selects = []
        for row in rows:
            cells = [analyzer.coerce(cell, f.type) for cell, f in zip(row.cells, fields, strict=True)]
            texts = [self.printed(cell, node) for cell, node in zip(cells, row.nodes, strict=True)]
            selects.append(", ".join(f"{text} AS {backquoted(f.symbol)}" for text, f in zip(texts, fields, strict=True)))
        return " UNION ALL ".join(f"SELECT {select}" for select in selects)

    # -- UNION, INTERSECT, EXCEPT ---------------------------------------------------------------------------------

    def _set_operation(self, node: s.SetOperation) -> QueryResult:
        left, right = self._body(node.left), self._body(node.right)
        if len(left.fields) != len(right.fields):
            self.context.error(
                "TYPE_MISMATCH",
                f"{node.operator} query has different number of fields: {len(left.fields)}, {len(right.fields)}",
                replace(node.word, about=node.right.span),
            )
        kinds = []
        for number, (a, b) in enumerate(zip(left.fields, right.fields, strict=True), 1):
            common = common_type(a.type, b.type)
            if common is None:
                self.context.error(
                    "TYPE_MISMATCH",
                    f"column {number} in {node.operator} query has incompatible types: {a.type}, {b.type}",
                    replace(node.word, about=node.right.span),
                )
            kinds.append(instant(common) if node.distinct or node.operator != "UNION" else common)
        fields = tuple(
            replace(f, symbol=self.context.symbols.new(f.symbol), type=kind, qualifier=())
            for f, kind in zip(left.fields, kinds, strict=True)
        )
        texts, pairs = [side.cast_to(kinds) for side in (left, right)], list(zip(left.fields, fields, strict=True))
        renamed = [f"{backquoted(old.symbol)} AS {backquoted(new.symbol)}" for old, new in pairs]
        if node.distinct or node.operator != "UNION":
            texts, renamed = [side.entries(kinds) for side in (left, right)], [_restored(new, old.symbol) for old, new in pairs]
        word = f"{node.operator}{'' if node.distinct else ' ALL'}"
        text = f"SELECT {', '.join(renamed)} FROM (({texts[0]}) {word} ({texts[1]}))"
        deterministic = left.deterministic and right.deterministic
        sides, columns = (left.coerced_tree(kinds), right.coerced_tree(kinds)), tuple(e.Column(f.type, f.symbol) for f in fields)
        tree = None
        if sides[0] is not None and sides[1] is not None:
            tree = q.SetOperated(node.operator, node.distinct, sides[0], sides[1], columns)
        reaching, reads = (*left.reaching, *right.reaching), left.reads + right.reads
        size = set_size(node, left.size, right.size)
        return QueryResult(fields, text, reaching, deterministic, reads=reads, tree=tree, size=size)

    # -- SELECT ---------------------------------------------------------------------------------------------------

    def _select(self, node: s.Select, query: s.QueryNode) -> QueryResult:
        relation = self.relation(node.relation) if node.relation is not None else None
        fields = relation.fields if relation else ()
        analyzer = self.expressions(fields, _SELECT)
        analyzer.select = node.span
        analyzer.windows = named_windows(analyzer, node)
        where = self._condition(
            node.where,
            fields,
            ExpressionSite("WHERE clause", judged_whole=True),
            "WHERE clause must evaluate to a boolean: actual type {}",
            analyzer,
        )
        outputs = select_list(node, analyzer, relation)
        node = with_keys(node, outputs)
        if node.distinct:
            outputs = [replace(output, field=replace(output.field, type=instant(output.field.type))) for output in outputs]
        group_by = grouped_by(node, analyzer, outputs)
        node = with_sets_once(node, group_by)
        having = self._condition(
            node.having, fields, _HAVING, "HAVING clause must evaluate to a boolean: actual type {}", analyzer
        )
        if query.order_by:
            analyzer.outputs = outputs_by_name(outputs)
        keys = tuple(self._order_key(item, analyzer, outputs, node) for item in query.order_by)
        analyzer.outputs = {}
        above = _Above(tuple(outputs), having, keys)
        above = above.replaced(grouping_operations(self.context, node, above.values, group_by))
        self._check_groups(node, above, group_by, query, fields)
        if group_by:
            # Spark takes a key for what the group is made by only where it says the same, the numbers in its errors included.
            group_by = tuple(
                self._placed_key(key, item, above.outputs) for key, item in zip(group_by, node.group_by or (), strict=True)
            )
            above = above.replaced([(key, key) for key in group_by])
        reaching = (relation.reaching if relation else ()) + tuple((column, depth - 1) for column, depth in analyzer.outer)
        text = self._printed_select(node, query, relation, where, group_by, above, alone=not reaching)
        chosen = [*(output.value for output in above.outputs), *(part for part in (where, above.having) if part)]
        deterministic = (relation.deterministic if relation else True) and all(map(e.is_deterministic, chosen))
        sets = len(node.grouping.sets) if node.grouping is not None else 1
        aggregates = not group_by and sets == 1 and any(_is_aggregated(output.value) for output in above.outputs)
        one_group = aggregates or (not group_by and any(_is_aggregated(key.value) for key in above.order_by))
        return QueryResult(
            tuple(output.field for output in above.outputs),
            text,
            reaching,
            deterministic and not _cut(query),
            aggregates,
            cut=deterministic and _cut(query),
            reads=sum(map(e.reads, [*chosen, *(key.value for key in above.order_by)]), relation.reads if relation else e.NOTHING),
            tree=self._tree(relation, where, above, group_by, node, query),
            size=tail_size(select_size(relation.size if relation else None, node, aggregates=one_group), query),
        )

    def _check_groups(
        self,
        node: s.Select,
        above: _Above,
        group_by: tuple[e.Typed, ...] | None,
        query: s.QueryNode,
        fields: Sequence[ScopeField],
    ) -> None:
        """Outside of aggregates, only what is grouped by can be read."""
        values: list[tuple[e.Typed, s.Node]] = [(output.value, output.node) for output in above.outputs]
        values += [(above.having, node.having)] if above.having and node.having else []
        named = {output.field.symbol for output in above.outputs}
        values += [
            (key.value, item.value)
            for key, item in zip(above.order_by, query.order_by, strict=True)
            if not (isinstance(key.value, e.Column) and key.value.symbol in named)
        ]
        if group_by is not None or above.having is not None or any(_is_aggregated(value) for value, _ in values):
            check_groups(self.context, values, group_by or (), fields)

    def _printed_select(
        self,
        node: s.Select,
        query: s.QueryNode,
        relation: RelationResult | None,
        where: e.Typed | None,
        group_by: tuple[e.Typed, ...] | None,
        above: _Above,
        *,
        alone: bool,
    ) -> str:
        """Return the text of a SELECT.

        Args:
            node: the SELECT.
            query: the query, whose ORDER BY and LIMIT these are.
            relation: what FROM gives.
            where: which rows are kept.
            group_by: the keys of groups; None without GROUP BY.
            above: what is made of rows or groups.
            alone: it reads no column of the rows around it.
        """
        kept_rows = f" WHERE {self.printed(where, node.where)}" if where and node.where else ""
        source = (f" FROM {relation.text}" if relation else "") + kept_rows
        below = _made_below(group_by or (), above)
        if below:
            relation, beside = self.beside(replace(relation or _ONE_ROW, text=(relation or _ONE_ROW).text + kept_rows), below)
            group_by, above = _over_columns(group_by, above, beside)
            source = f" FROM {relation.text}"
        total = None
        if relation and group_by and node.grouping is not None and alone:
            total = self._with_total(node.grouping, group_by, relation, source)
        if relation and group_by is not None and node.grouping is not None and _is_twofold(node.grouping, group_by, above.values):
            source, made = self._grouped(node, group_by, above, total or _Total(_UNMARKED, source, ""))
            above = replace(above.changed(lambda value: _over_groups(value, made)), having=None)
            total, group_by = None, None
        elif total:
            source = total.source
            above = above.replaced(_masked(above.values, total.mark))
        numbers = self._numbered_groups(node, above)
        if numbers:
            above = above.replaced([(old, new) for old, new, _ in numbers])
            source = f" FROM (SELECT *, {', '.join(number for _, _, number in numbers)}{source})"
        columns = [self._column(output, distinct=node.distinct) for output in above.outputs]
        keys, hidden = self._hidden_keys(above.order_by, {o.field.symbol for o in above.outputs} if query.ties else None)
        parts = [f"SELECT {'DISTINCT ' if node.distinct else ''}{', '.join([*columns, *hidden])}{source}"]
        parts += [f"GROUP BY {_group_keys(group_by, node.grouping)}"] if group_by else []
        # Without a key there is one group, also where the SELECT list has no aggregate: GROUP BY () alone.
        kept = [total.kept] if total else ["count(*) >= 0"] if group_by == () else []
        kept += [self.printed(above.having, node.having)] if above.having and node.having else []
        parts += [f"HAVING {' AND '.join(kept)}"] if kept else []
        text = " ".join(parts)
        within = hidden or (node.distinct and any(has_map(output.field.type) for output in above.outputs))
        shown = ", ".join(
            _restored(field, field.symbol) if node.distinct else backquoted(field.symbol)
            for field in (output.field for output in above.outputs)
        )
        if query.ties:
            return self._with_ties(text, shown, keys, query)
        return (f"SELECT {shown} FROM ({text})" if within else text) + _tail(keys, query)

    def _tree(
        self,
        relation: RelationResult | None,
        where: e.Typed | None,
        above: _Above,
        keys: tuple[e.Typed, ...] | None,
        node: s.Select,
        query: s.QueryNode,
    ) -> q.Query | None:
        if relation is not None and relation.tree is None:
            return None
        return q.Selected(
            source=relation.tree if relation is not None else None,
            where=where if where is None or node.where is None else self._written(where, node.where),
            outputs=tuple(
                (e.Column(output.field.type, output.field.symbol), self._written(output.value, output.node))
                for output in above.outputs
            ),
            keys=keys,
            sets=tuple(node.grouping.sets) if node.grouping is not None else None,
            having=above.having,
            distinct=node.distinct,
            order_by=above.order_by,
            limit=query.limit,
            offset=query.offset or 0,
            ties=query.ties,
        )

    def _written(self, value: e.Typed, node: s.Node) -> e.Typed:
        """Return an expression with the place where it was written, by which tasks report an error in it."""
        return value if value.origin is not None else replace(value, origin=self.context.origin(node.span))

    def _with_total(
        self, grouping: s.GroupingSets, keys: tuple[e.Typed, ...], relation: RelationResult, source: str
    ) -> _Total | None:
        """Return a grand total's group a row also where there are none: Spark makes no groups of nothing.

        One more row of NULLs is put to the others. Aggregates leave it out by its mark, and groups that have no other row are dropped,
        but for that of the total.
        """
        texts = _set_texts(grouping, keys)
        if all(texts):
            return None
        mark = self.context.symbols.new("there")
        symbols = [backquoted(field.symbol) for field in relation.fields]
        rows = f"SELECT {', '.join([*symbols, f'true AS {backquoted(mark)}'])}{source}"
        nulls = f"SELECT {', '.join([*(['NULL'] * len(symbols)), 'false'])}"
        everything = 2 ** len(frozenset[str]().union(*texts)) - 1
        kept = f"(bool_or({backquoted(mark)}) OR grouping_id() = {everything})"
        return _Total(e.Column(BOOLEAN, mark), f" FROM ({rows} UNION ALL {nulls}) AS {self._alias()}", kept)

    def _grouped(
        self, node: s.Select, keys: tuple[e.Typed, ...], above: _Above, total: _Total
    ) -> tuple[str, list[tuple[e.Typed, e.Typed]]]:
        """Make the groups in a query of their own, where Spark cannot do so and what is above them in one.

        It has no functions over windows beside ROLLUP and its kin, and no HAVING about sets that are there twice.

        Args:
            node: the SELECT.
            keys: what is grouped by.
            above: what is made of the groups.
            total: what is read, and how a grand total of no rows comes to its row.

        Returns:
            What stands behind the SELECT list above, and the expressions with the columns that they are there.
        """
        parts = [part for value in above.values for part in e.outside_windows(value)]
        wanted = [key for key in keys if not isinstance(key, e.Constant)]
        wanted += [p for p in parts if isinstance(p, e.Aggregate) or (isinstance(p, e.Apply) and p.name == "grouping")]
        made: list[tuple[e.Typed, e.Typed]] = []
        columns = []
        masked = _masked(above.values, total.mark) if total.kept else []
        for part in dict.fromkeys(wanted):
            column = e.Column(part.type, self.context.symbols.new("made"))
            columns.append(f"{print_spark(e.replaced(part, masked))} AS {backquoted(column.symbol)}")
            made.append((part, column))
        kept = backquoted(self.context.symbols.new("kept"))
        columns.append(f"{total.kept or 'count(*) >= 0'} AS {kept}")
        assert node.grouping is not None
        groups = f" GROUP BY {_group_keys(keys, node.grouping)}" if keys else ""
        text = f" FROM (SELECT {', '.join(columns)}{total.source}{groups}) AS {self._alias()}"
        if not keys:
            text += f" LATERAL VIEW explode(sequence(1, {len(node.grouping.sets)}))"
        text += f" WHERE {kept}"
        if above.having and node.having:
            text += f" AND {self.printed(_over_groups(above.having, made), node.having)}"
        return text, made

    def _with_ties(self, text: str, columns: str, keys: tuple[e.Sort, ...], query: s.QueryNode) -> str:
        """The first rows of a query, and those that are like the last of them by the keys."""
        rank, number = (backquoted(self.context.symbols.new(name)) for name in ("rank", "number"))
        order, offset = f"OVER (ORDER BY {sort_keys(keys)})", query.offset or 0
        ranked = f"SELECT *, rank() {order} AS {rank}, row_number() {order} AS {number} FROM ({text})"
        return f"SELECT {columns} FROM ({ranked}) WHERE {rank} <= {(query.limit or 0) + offset} AND {number} > {offset} ORDER BY {number}"

    def _hidden_keys(self, keys: tuple[e.Sort, ...], named: set[str] | None) -> tuple[tuple[e.Sort, ...], list[str]]:
        """Spark sorts by no function over a window, and by no query: it is a column that is not shown.

        Args:
            keys: the keys.
            named: the columns that are shown, where all other keys must be columns as well.
        """
        shown, hidden = [], []
        for key in keys:
            bare = isinstance(key.value, e.Column) and named is not None and key.value.symbol in named
            if (named is not None and not bare) or any(isinstance(part, (e.Windowed, e.Subquery)) for part in e.walk(key.value)):
                symbol = self.context.symbols.new("key")
                hidden.append(f"{print_spark(key.value)} AS {backquoted(symbol)}")
                shown.append(replace(key, value=e.Column(key.value.type, symbol)))
            else:
                shown.append(key)
        return tuple(shown), hidden

    def _numbered_groups(self, node: s.Select, above: _Above) -> list[tuple[e.Windowed, e.Windowed, str]]:
        """Frames of GROUPS, which Spark has not, as frames of RANGE over the groups' numbers: the old window, the new one, the number as a column."""
        old = [part for value in above.values for part in e.walk(value) if isinstance(part, e.Windowed)]
        old = [part for part in old if part.frame and part.frame.unit == "GROUPS"]
        if old and (node.group_by is not None or node.having is not None or any(map(_is_aggregated, above.values))):
            self.context.error(
                "NOT_SUPPORTED",
                "A frame of GROUPS in a query with GROUP BY or aggregates is not supported by this engine",
                node.span,
                "Put the GROUP BY into a subquery in FROM.",
            )
        found = []
        for part in old:
            symbol = self.context.symbols.new("group")
            rank = e.Windowed(BIGINT, *_DENSE_RANK, part.partition_by, part.order_by, None)
            number = (e.Sort(e.Column(BIGINT, symbol), descending=False, nulls_first=False),)
            assert part.frame is not None
            frame = replace(part.frame, unit="RANGE")
            found.append((part, replace(part, order_by=number, frame=frame), f"{print_spark(rank)} AS {backquoted(symbol)}"))
        return found

    def _placed_key(self, key: e.Typed, item: s.Expression, outputs: Sequence[Output]) -> e.Typed:
        """Return a key of GROUP BY the place of the first column that has it."""
        node = next((output.node for output in outputs if key in e.walk(output.value)), item)
        return replace(key, origin=self.context.origin(node.span))

    def _column(self, output: Output, *, distinct: bool) -> str:
        value, symbol = output.value, backquoted(output.field.symbol)
        if value.type == UNKNOWN:
            # A column that is always NULL needs some type to travel in. An aggregate is written, for it makes one row of many.
            aggregated = any(isinstance(part, e.Aggregate) for part in e.walk(value))
            return f"CAST({self.printed(value, output.node) if aggregated else 'NULL'} AS BOOLEAN) AS {symbol}"
        # Instants are the same whatever zones they carry.
        plain = instant(value.type) if distinct else value.type
        if plain != value.type:
            value = e.Apply(plain, "cast", (value,))
        value = e.as_entries(value) if distinct else value
        text = self.printed(value, output.node)
        made = not isinstance(value, e.Column)
        if made and any(part == UNKNOWN or part.base == "row" for part in parts_of(value.type)):
            # A field that can never be NULL lets no row be NULL beside it.
            text = f"CAST({text} AS {spark_type(without_unknown(value.type))})"
        return symbol if text == symbol else f"{text} AS {symbol}"

    def _condition(
        self,
        node: s.Expression | None,
        fields: tuple[ScopeField, ...],
        site: ExpressionSite,
        message: str,
        collect: ExpressionAnalyzer,
    ) -> e.Typed | None:
        if node is None:
            return None
        analyzer = self.expressions(fields, site)
        found = analyzer.condition(node, message)
        collect.outer.extend(analyzer.outer)
        return found

    # -- ORDER BY -------------------------------------------------------------------------------------------------

    def _order_key(self, item: s.SortItem, analyzer: ExpressionAnalyzer, outputs: Sequence[Output], node: s.Select) -> e.Sort:
        value = self._order_value(item.value, analyzer, outputs)
        if not is_orderable(value.type):
            shown = formatted(item.value, self.context.text)
            self.context.error(
                "TYPE_MISMATCH",
                f"Type {value.type} is not orderable, and therefore cannot be used in ORDER BY: {shown}",
                replace(node.span, about=item.value.span),
            )
        same = next((output for output in outputs if output.value == value), None)
        if same is not None:
            value = e.Column(same.field.type, same.field.symbol)
        elif node.distinct and not (isinstance(value, e.Column) and any(o.field.symbol == value.symbol for o in outputs)):
            self.context.error(
                "EXPRESSION_NOT_IN_DISTINCT",
                "For SELECT DISTINCT, ORDER BY expressions must appear in select list",
                replace(node.span, about=item.value.error_span),
            )
        return e.Sort(value, item.descending, item.nulls_first)

    def _order_value(self, item: s.Expression, analyzer: ExpressionAnalyzer, outputs: Sequence[Output]) -> e.Typed:
        output = numbered_output(self.context, item, outputs, "ORDER BY")
        if output is not None:
            return e.Column(output.field.type, output.field.symbol)
        if isinstance(item, s.Name) and len(item.parts) == 1:
            matching = [output.field for output in outputs if output.field.matches([item.parts[0].value])]
            if len(matching) > 1:
                self.context.error("AMBIGUOUS_NAME", f"Column '{item.parts[0].value}' is ambiguous", item.span)
            if matching:
                return e.Column(matching[0].type, matching[0].symbol)
        if any(isinstance(part, (s.ScalarQuery, s.Exists)) for part in s.walk(item)):
            return self._order_by_query(item, analyzer, outputs)
        return analyzer.analyze(item)

    def _order_by_query(self, item: s.Expression, analyzer: ExpressionAnalyzer, outputs: Sequence[Output]) -> e.Typed:
        """A key with a query in it, which sees the columns of FROM, or else those of the SELECT list."""
        try:
            return analyzer.analyze(item)
        except AnalysisError as error:
            if error.code != "COLUMN_NOT_FOUND":
                raise
            return self.expressions(tuple(output.field for output in outputs), ExpressionSite("ORDER BY clause")).analyze(item)

    def _sort_key(self, item: s.SortItem, fields: tuple[ScopeField, ...]) -> e.Sort:
        outputs = [Output(e.Column(f.type, f.symbol), f, item) for f in fields]
        analyzer = self.expressions(fields, ExpressionSite("ORDER BY clause"))
        return e.Sort(self._order_value(item.value, analyzer, outputs), item.descending, item.nulls_first)


def _restored(field: ScopeField, symbol: str) -> str:
    """Write a column whose maps are maps again; see `rowmerge_nb.sql.spark.maps`."""
    text = print_spark(e.as_maps(e.Column(entries_type(field.type), symbol), field.type))
    return text if text == backquoted(field.symbol) else f"{text} AS {backquoted(field.symbol)}"


def _made_below(keys: Sequence[e.Typed], above: _Above) -> list[e.Typed]:
    """Return what is to be a column below groups: Spark groups by no maps, and neither groups nor aggregates what it takes for chance."""
    aggregates = [part for value in above.values for part in e.outside_windows(value) if isinstance(part, e.Aggregate)]
    arguments = (part for found in aggregates for part in e.children(found) if not isinstance(part, e.Function))
    opaque = (value for value in (*keys, *arguments) if e.is_opaque(value) and not _reads_outer(value))
    return [*(key for key in keys if has_map(key.type)), *opaque]


def _reads_outer(value: e.Typed) -> bool:
    """Does it read a column of a query around this one?"""
    return any(isinstance(part, e.Column) and part.outer for part in e.walk(value))


def _over_columns(
    keys: tuple[e.Typed, ...] | None, above: _Above, columns: dict[e.Typed, e.Column]
) -> tuple[tuple[e.Typed, ...] | None, _Above]:
    """Return keys, and what is made of their groups, with columns in the place of the values that are computed in them."""
    found = (part for value in above.values for part in e.walk(value) if isinstance(part, e.Apply) and part.name == "grouping")
    pairs: list[tuple[e.Typed, e.Typed]] = [
        (part, replace(part, arguments=tuple(columns.get(key, key) for key in part.arguments))) for part in found
    ]
    pairs += [(value, e.as_maps(column, value.type)) for value, column in columns.items()]
    return None if keys is None else tuple(columns.get(key, key) for key in keys), above.replaced(pairs)


def _set_texts(grouping: s.GroupingSets, keys: tuple[e.Typed, ...]) -> list[frozenset[str]]:
    return [frozenset(_group_key(keys[place]) for place in places) for places in grouping.sets]


def _is_twofold(grouping: s.GroupingSets, keys: tuple[e.Typed, ...], values: Sequence[e.Typed]) -> bool:
    """Must groups be made in a query of their own? For functions over windows above them, and where a set is there twice."""
    texts = _set_texts(grouping, keys)
    return len(set(texts)) < len(texts) or any(isinstance(part, e.Windowed) for value in values for part in e.walk(value))


def _over_groups(value: e.Typed, made: Sequence[tuple[e.Typed, e.Typed]]) -> e.Typed:
    """Return an expression over groups that are columns; an aggregate over a window stays one, its arguments are such columns."""
    over = []
    for window in [part for part in e.walk(value) if isinstance(part, e.Windowed)]:
        inner = [(part, e.replaced(part, made)) for part in e.children(window) if part is not window.function]
        inner += [(part, e.replaced(part, made)) for part in e.children(window.function)]
        over.append((window, e.replaced(window, [pair for pair in inner if pair[0] != pair[1]])))
    return e.replaced(value, [*over, *made])


def _masked(values: Sequence[e.Typed], mark: e.Typed) -> list[tuple[e.Typed, e.Typed]]:
    """Return the aggregates beside the same over marked rows alone."""
    found = [part for value in values for part in e.outside_windows(value) if isinstance(part, e.Aggregate)]
    both = ((part, part.filter) for part in found)
    return [(part, replace(part, filter=mark if kept is None else e.Apply(BOOLEAN, "and", (mark, kept)))) for part, kept in both]


def _group_key(key: e.Typed) -> str:
    """For Spark a bare number in GROUP BY is a position; a constant key only has to be some constant."""
    return f"({print_spark(key)} IS NULL)" if isinstance(key, e.Constant) else print_spark(key)


def _group_keys(keys: tuple[e.Typed, ...], grouping: s.GroupingSets | None) -> str:
    texts = [_group_key(key) for key in keys]
    if grouping is None:
        return ", ".join(texts)
    sets = (f"({', '.join(dict.fromkeys(texts[place] for place in places))})" for places in grouping.sets)
    return f"GROUPING SETS ({', '.join(sets)})"


def _tail(keys: tuple[e.Sort, ...], query: s.QueryNode) -> str:
    keys = tuple(key for key in keys if not isinstance(key.value, e.Constant))
    text = f" ORDER BY {sort_keys(keys)}" if keys else ""
    # Spark counts rows in an int: what is beyond is all rows as a limit, and as an offset leaves none.
    offset = query.offset or 0
    limit = query.limit if offset <= _MOST_COUNTED else 0
    text += f" LIMIT {limit}" if limit is not None and limit <= _MOST_COUNTED else ""
    return text + (f" OFFSET {offset}" if 0 < offset <= _MOST_COUNTED else "")


def _is_aggregated(value: e.Typed) -> bool:
    """Does an expression have an aggregate over groups, beside those over windows?"""
    return any(isinstance(part, e.Aggregate) for part in e.outside_windows(value))


def _cut(query: s.QueryNode) -> bool:
    """Does it depend on the order of rows which of them are in the result?"""
    return query.limit is not None or bool(query.offset)
