"""Analyzes relations in FROM and USING."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.base.next_steps import null_refusal
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, Type
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.queries.correlation import is_separable
from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries
from rowmerge_nb.sql.analyzer.queries.table_functions import (
    kept_columns,
    sequence_rows,
    table_arguments,
)
from rowmerge_nb.sql.analyzer.queries.table_versions import version_of
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.parser.statement_reader import parse_query
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.domains import conjunction
from rowmerge_nb.sql.typed.readings import is_cut, is_deterministic, outer_columns, subquery
from rowmerge_nb.sql.typed.type_rules import common_type, instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer.analysis import TableBinding, ViewBinding
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import Identifier, TableName

_NO_CIRCLE: Final = (
    "Write CREATE OR REPLACE VIEW with a query that reads neither the view itself nor one that"
    " reads it."
)


@dataclass(frozen=True)
class QueryResult:
    """An analyzed query.

    Args:
        origins: for a subquery, the numbers of the expressions within it.
    """

    fields: tuple[ScopeField, ...]
    tree: q.Query
    origins: range = range(0)

    def as_subquery(self, sql_type: Type, name: str, value: e.Typed | None = None) -> e.Subquery:
        return subquery(sql_type, name, self.tree, value, origins=self.origins)

    def coerced_to(self, kinds: Sequence[Type]) -> QueryResult:
        fields = tuple(
            replace(field, type=sql_type)
            for field, sql_type in zip(self.fields, kinds, strict=True)
        )
        return replace(self, fields=fields, tree=self.coerced_tree(kinds))

    def has_row(self, items: Sequence[e.Typed], *, alike: bool) -> e.Typed:
        """Return ``(a, b) IN (query)``; as on Trino, NULLs never make it unknown.

        If ``alike``, NULL equals NULL, as when Trino computes the value; when it filters rows by a
        join, NULL equals nothing.
        """
        pairs = [
            (item, e.Column(item.type, field.symbol))
            for item, field in zip(items, self.fields, strict=True)
        ]
        equal = (
            e.Apply(BOOLEAN, "distinct", pair, True) if alike else e.Apply(BOOLEAN, "=", pair)
            for pair in pairs
        )
        tree = self.coerced_tree([item.type for item in items])
        matching = q.Selected(tree, e.Apply(BOOLEAN, "and", tuple(equal)), ())
        return subquery(BOOLEAN, "exists", matching, origins=self.origins, of=self.tree)

    def stored_tree(
        self,
        columns: Sequence[ColumnMetadata],
        filled_columns: Sequence[ColumnMetadata],
        omitted: Mapping[str, e.Typed],
    ) -> q.Query:
        """Return the query with a table's columns, coerced and checked for NOT NULL.

        The query fills the columns ``filled_columns``; ``omitted`` has the values of the others.
        """
        values = dict(omitted)
        for column, field in zip(filled_columns, self.fields, strict=True):
            value: e.Typed = e.Column(field.type, field.symbol)
            values[column.name] = (
                value
                if field.type == column.type
                else e.Apply(column.type, "cast", (value,), "store")
            )
        return q.Coerced(
            self.tree,
            tuple((e.Column(c.type, c.name), _not_null(c, values[c.name])) for c in columns),
        )

    def coerced_tree(self, kinds: Sequence[Type]) -> q.Query:
        if all(f.type == sql_type for f, sql_type in zip(self.fields, kinds, strict=True)):
            return self.tree
        pairs = (
            (e.Column(f.type, f.symbol), e.Column(sql_type, f.symbol))
            for f, sql_type in zip(self.fields, kinds, strict=True)
        )
        values = (
            (new, old if old == new else e.Apply(new.type, "cast", (old,))) for old, new in pairs
        )
        return q.Coerced(self.tree, tuple(values))


def _not_null(column: ColumnMetadata, value: e.Typed) -> e.Typed:
    if column.nullable:
        return value
    failure = e.Apply(column.type, "fail", (), null_refusal(column.name.lower()))
    return e.Apply(column.type, "coalesce", (value, failure))


@dataclass(frozen=True)
class RelationResult:
    """An analyzed relation; its tree can have more columns than ``fields``, and ``binding`` is set
    for a plain table.
    """

    fields: tuple[ScopeField, ...]
    tree: q.Query
    binding: TableBinding | None = None


class RelationAnalyzer:
    """Analyzes relations; the subclass analyzes queries.

    ``parent`` is the outer scope of correlated names.
    """

    def __init__(
        self,
        context: Context,
        parent: Scope | None = None,
        named_queries: NamedQueries | None = None,
    ) -> None:
        self.context = context
        self.parent = parent
        self.named_queries = NamedQueries() if named_queries is None else named_queries

    def query(self, node: s.QueryNode) -> QueryResult:
        raise NotImplementedError

    def within(self, parent: Scope | None, named_queries: NamedQueries) -> RelationAnalyzer:
        return type(self)(self.context, parent, named_queries)

    def expressions(
        self, fields: tuple[ScopeField, ...], site: ExpressionSite
    ) -> ExpressionAnalyzer:
        return ExpressionAnalyzer(
            self.context, Scope(fields, self.parent), site, named_queries=self.named_queries
        )

    def placed(self, value: e.Typed, node: s.Node) -> e.Typed:
        """Return an expression with its origin; a key of GROUP BY keeps its own."""
        return (
            value
            if value.origin is not None
            else replace(value, origin=self.context.origin(node.span))
        )

    # -- relations

    def relation(
        self, node: s.Relation, left: tuple[ScopeField, ...] | None = None
    ) -> RelationResult:
        """Analyze a relation; UNNEST and LATERAL see the fields on their ``left``."""
        if isinstance(node, s.Table):
            return self._table(node)
        if isinstance(node, s.Aliased):
            return self._aliased(node, left)
        if isinstance(node, s.SubqueryRelation):
            return _derived(self.query(node.query))
        if isinstance(node, s.Unnest):
            return self._unnest(node, left)
        if isinstance(node, s.TableFunction):
            return self._table_function(node)
        if isinstance(node, s.Lateral):
            scope = Scope(left, self.parent) if left is not None else self.parent
            return _derived(self.within(scope, self.named_queries).query(node.query))
        assert isinstance(node, s.JoinRelation)
        return self._join(node)

    def _table_function(self, node: s.TableFunction) -> RelationResult:
        arguments = table_arguments(self.context, node)
        table = arguments.get("input")
        if isinstance(table, s.TableArgument):
            relation = self.relation(table.relation)
            return replace(
                relation,
                fields=kept_columns(self.context, arguments["columns"], relation.fields),
                binding=None,
            )
        field, numbers = sequence_rows(
            self.context, arguments, self.expressions((), ExpressionSite("table function argument"))
        )
        return RelationResult(
            (field,),
            q.Generated(node.name.parts[-1].value, (e.Column(field.type, field.symbol),), numbers),
        )

    def _table(self, node: s.Table) -> RelationResult:
        named_query = (
            self.named_queries.get(node.name.parts[0].value) if len(node.name.parts) == 1 else None
        )
        if named_query is not None:
            self._refuse_period(node, "a query of WITH")
            return self._named(*named_query)
        view = self.context.view(node.name, node.span)
        if view is not None:
            self._refuse_period(node, "a view")
            return self._view(view, node)
        version = None if node.period is None else version_of(self.context, node.period)
        binding = self.context.table(node.name, node.span, version)
        return self.table_relation(binding, node.name)

    def _refuse_period(self, node: s.Table, what: str) -> None:
        """Refuse a version of an object without versions; Trino ignores it silently."""
        if node.period is not None:
            self.context.refuse(
                f"'{node.name.parts[-1].text}' is {what}, which has no versions",
                node.period.span,
                f"Write {node.period.words} behind the tables that it reads.",
            )

    def table_relation(self, binding: TableBinding, name: TableName) -> RelationResult:
        qualifier = tuple(part.value for part in name.parts)
        visible_count = len(binding.columns)
        fields = tuple(
            ScopeField(
                self.context.symbols.new(c.name),
                c.name,
                c.type,
                qualifier,
                table=binding.name,
                is_hidden=index >= visible_count,
                refusal=binding.refused_columns.get(c.name),
            )
            for index, c in enumerate(binding.readable)
        )
        return RelationResult(
            fields, table_tree(binding, [field.symbol for field in fields]), binding
        )

    def _view(self, view: ViewBinding, node: s.Table) -> RelationResult:
        if view.qualified == self.context.creates:
            self.context.error(
                "VIEW_IS_RECURSIVE",
                "Statement would create a recursive view",
                node.span,
                _NO_CIRCLE,
            )
        if view.qualified in self.context.views:
            self.context.error("VIEW_IS_RECURSIVE", "View is recursive", node.span, _NO_CIRCLE)
        try:
            result = type(self)(self.context.within(view, node.span)).query(
                parse_query(view.definition.original_sql)
            )
        except RowMergeError as error:
            site = "" if error.line is None else f"line {error.line}:{error.column}: "
            self.context.error(
                "INVALID_VIEW",
                f"Failed analyzing stored view '{view.qualified}': {site}{error.message}",
                node.span,
                error.hint,
            )
        self._check_fresh(view, result, node)
        columns = view.definition.columns
        qualifier = tuple(part.value for part in node.name.parts)
        fields = tuple(
            ScopeField(f.symbol, column.name, column.type, qualifier, table=view.name)
            for f, column in zip(result.fields, columns, strict=True)
        )
        return RelationResult(fields, result.coerced_tree([column.type for column in columns]))

    def _check_fresh(self, view: ViewBinding, result: QueryResult, node: s.Table) -> None:
        stored_columns = view.definition.columns
        why = None
        if len(stored_columns) != len(result.fields):
            derived = f"column count derived from the view query analysis ({len(result.fields)})"
            why = f"stored view column count ({len(stored_columns)}) does not match {derived}"
        for index, (field, column) in enumerate(zip(result.fields, stored_columns, strict=False)):
            if why is not None:
                break
            query_text = (
                f"column [{field.name}] of type {field.type} projected from query view at position"
                f" {index}"
            )
            stored_text = f"column [{column.name}] of type {column.type} stored in view definition"
            if field.name is None or field.name.lower() != column.name.lower():
                why = f"{query_text} has a different name from {stored_text}"
            elif common_type(field.type, column.type) != column.type:
                why = f"{query_text} cannot be coerced to {stored_text}"
        if why is not None:
            self.context.error(
                "VIEW_IS_STALE",
                f"View '{view.qualified}' is stale or in invalid state: {why}",
                node.span,
                "CREATE OR REPLACE VIEW makes it anew.",
            )

    def _named(self, node: s.NamedQuery, visible: NamedQueries) -> RelationResult:
        self.context.expand(node.span)
        result = _derived(self.within(self.parent, visible).query(node.query))
        return self._renamed(result, node.name, node.columns, node)

    def _aliased(self, node: s.Aliased, left: tuple[ScopeField, ...] | None) -> RelationResult:
        columns = node.columns
        if isinstance(node.relation, s.TableFunction):
            # Trino normalizes column aliases of table functions.
            columns = tuple(
                replace(column, text=self.context.canonical(column)) for column in columns
            )
        return self._renamed(self.relation(node.relation, left), node.alias, columns, node)

    def _renamed(
        self,
        result: RelationResult,
        alias: Identifier,
        columns: tuple[Identifier, ...],
        node: s.Node,
    ) -> RelationResult:
        if columns:
            result = replace(
                result, fields=tuple(field for field in result.fields if not field.is_hidden)
            )
        if columns and len(columns) != len(result.fields):
            self.context.error(
                "MISMATCHED_COLUMN_ALIASES",
                f"Column alias list has {len(columns)} entries but '{alias.value}' has"
                f" {len(result.fields)} columns available",
                node.span,
            )
        names: list[str | None] = [column.text for column in columns] or [
            f.name for f in result.fields
        ]
        fields = tuple(
            replace(f, name=name, qualifier=(alias.value,), aliased=f.aliased or bool(columns))
            for f, name in zip(result.fields, names, strict=True)
        )
        return replace(result, fields=fields)

    # -- UNNEST

    def _unnest(self, node: s.Unnest, left: tuple[ScopeField, ...] | None) -> RelationResult:
        analyzer = self.expressions(left or (), ExpressionSite("UNNEST", judged_whole=True))
        items = [analyzer.whole(item) for item in node.items]
        for item, item_node in zip(items, node.items, strict=True):
            if item.type.base not in {"array", "map"}:
                self.context.error(
                    "INVALID_FUNCTION_ARGUMENT",
                    f"Cannot unnest type: {item.type}",
                    item_node.error_span,
                )
        kinds = [_unnested(item.type) for item in items]
        fields = tuple(
            ScopeField(self.context.symbols.new("field"), name, sql_type)
            for group in kinds
            for name, sql_type in group
        )
        if node.ordinality:
            fields = (*fields, ScopeField(self.context.symbols.new("ordinality"), None, BIGINT))
        read = [part for item in items for part in e.walk(item) if isinstance(part, e.Column)]
        if any(column.outer for column in read) and not all(column.outer for column in read):
            self.context.refuse(
                "UNNEST of the left side of its join together with columns of a query around both"
                " is not supported by this engine",
                node.span,
                "Join in a subquery what UNNEST needs: FROM (SELECT ..., outer.x FROM ...) q CROSS"
                " JOIN UNNEST(...).",
            )
        columns = tuple(e.Column(f.type, f.symbol) for f in fields)
        return RelationResult(
            fields, q.Unnested(tuple(items), columns, tuple(map(len, kinds)), node.ordinality)
        )

    # -- joins

    def _join(self, node: s.JoinRelation) -> RelationResult:
        if node.natural:
            self.context.refuse("Natural join not supported", node.span)
        left = self.relation(node.left)
        right = self.relation(node.right, left.fields)
        self._check_lateral(node, left)
        own = frozenset(field.symbol for field in left.fields)
        sees_left = isinstance(_unaliased(node.right), s.Unnest | s.Lateral)
        lateral = sees_left and any(column.symbol in own for column in outer_columns(right.tree))
        if lateral and not is_deterministic(right.tree) and not is_cut(right.tree):
            # Spark allows it only for a left side of one row.
            self.context.refuse(
                "What reads the left side of its join cannot depend on chance in this engine",
                node.right.span,
                "Compute random() on the left side of the join, or in a query around it.",
            )
        if lateral:
            self._check_separable(node, left, right)
        if node.using:
            return self._using(node, left, right, node.using, lateral=lateral)
        condition = None
        if node.on is not None:
            fields = (*left.fields, *right.fields)
            analyzer = self.expressions(fields, ExpressionSite("JOIN clause", judged_whole=True))
            condition = analyzer.condition(
                node.on, "JOIN ON clause must evaluate to a boolean: actual type {}"
            )
            sides = [own] if lateral else [own, frozenset(field.symbol for field in right.fields)]
            analyzer.check_reflected(
                _without_reflected(condition, sides), node.on, "the ON of a join"
            )
            condition = self.placed(condition, node.on)
        tree = q.Joined(node.kind, left.tree, right.tree, condition, lateral=lateral)
        return RelationResult((*left.fields, *right.fields), tree)

    def _check_lateral(self, node: s.JoinRelation, left: RelationResult) -> None:
        """Refuse lateral joins as Trino does: UNNEST needs ON TRUE."""
        right = _unaliased(node.right)
        if not isinstance(right, (s.Unnest, s.Lateral)):
            return
        scope = Scope(left.fields)
        read = (part for part in s.walk(right) if isinstance(part, s.Name))
        reference = next(
            (part for part in read if scope.find([p.value for p in part.parts]) is not None), None
        )
        if reference is not None and node.kind in {"RIGHT", "FULL"}:
            self.context.error(
                "INVALID_COLUMN_REFERENCE",
                f"LATERAL reference not allowed in {node.kind} JOIN",
                reference.span,
            )
        always = (
            isinstance(node.on, s.Literal)
            and node.on.kind == "boolean"
            and node.on.value.upper() == "TRUE"
        )
        if always or (node.on is None and not node.using):
            return
        span = node.span if node.on is None else node.on.error_span
        if isinstance(right, s.Unnest):
            self.context.refuse(
                f"{node.kind} JOIN involving UNNEST is only supported with condition ON TRUE", span
            )
        if node.kind == "FULL":
            self.context.refuse(
                "FULL JOIN involving LATERAL relation is only supported with condition ON TRUE",
                span,
            )

    def _check_separable(
        self, node: s.JoinRelation, left: RelationResult, right: RelationResult
    ) -> None:
        """Refuse a lateral query that Trino cannot decorrelate; one row of VALUES is inlined."""
        relation = _unaliased(node.right)
        one_row = isinstance(left.tree, q.Valued) and left.tree.count == 1
        if not isinstance(relation, s.Lateral) or one_row:
            return
        if not is_separable(right.tree, frozenset(field.symbol for field in left.fields)):
            error = AnalysisError.unsupported("Given correlated subquery is not supported").at(
                relation.query.span
            )
            if not self.context.refuse_later(error):
                raise error

    def _using(
        self,
        node: s.JoinRelation,
        left: RelationResult,
        right: RelationResult,
        using: tuple[Identifier, ...],
        *,
        lateral: bool,
    ) -> RelationResult:
        shared, conditions, used = [], [], set[str]()
        for name in using:
            a, b = (
                self._used(name, side, which) for side, which in ((left, "left"), (right, "right"))
            )
            common = common_type(a.type, b.type)
            if common is None:
                self.context.error(
                    "TYPE_MISMATCH", f"Cannot apply operator: {a.type} = {b.type}", name.span
                )
            pair = [self._coerced(f, instant(common)) for f in (a, b)]
            conditions.append(e.Apply(BOOLEAN, "=", (pair[0], pair[1])))
            used |= {a.symbol, b.symbol}
            shared.append((name, instant(common), pair))
        rest = tuple(f for f in (*left.fields, *right.fields) if f.symbol not in used)
        keys = tuple(
            ScopeField(self.context.symbols.new(name.value), name.text, key_type)
            for name, key_type, _ in shared
        )
        sides = {"RIGHT": slice(1, 2), "FULL": slice(0, 2)}.get(node.kind, slice(0, 1))
        values = [e.Apply(key_type, "coalesce", tuple(pair[sides])) for _, key_type, pair in shared]
        condition = conjunction(conditions)
        shared_columns = tuple(
            (e.Column(key.type, key.symbol), value) for key, value in zip(keys, values, strict=True)
        )
        others = tuple(e.Column(field.type, field.symbol) for field in rest)
        return RelationResult(
            (*keys, *rest),
            q.Joined(node.kind, left.tree, right.tree, condition, shared_columns, lateral, others),
        )

    def _used(self, name: Identifier, side: RelationResult, which: str) -> ScopeField:
        matching = [f for f in side.fields if f.matches([name.value])]
        if len(matching) != 1:
            code = "AMBIGUOUS_NAME" if matching else "COLUMN_NOT_FOUND"
            message = (
                f"Column '{name.value}' is ambiguous"
                if matching
                else f"Column '{name.text}' is missing from {which} side of join"
            )
            self.context.error(code, message, name.span)
        self.context.check_read(matching, name.span)
        return matching[0]

    def _coerced(self, source: ScopeField, sql_type: Type) -> e.Typed:
        column = e.Column(source.type, source.symbol)
        return column if source.type == sql_type else e.Apply(sql_type, "cast", (column,))


def table_tree(binding: TableBinding, symbols: Sequence[str]) -> q.Scanned:
    """Return the tree of a table; ``symbols`` are those of its first columns."""
    return q.Scanned(
        binding.shown(binding.qualified),
        tuple(
            (e.Column(c.type, symbol), c.name)
            for symbol, c in zip(symbols, binding.readable, strict=False)
        ),
        lambda: binding.estimated_rows,
        binding.view,
        binding.row_count is not None,
        binding.deterministic,
    )


def _unaliased(node: s.Relation) -> s.Relation:
    while isinstance(node, s.Aliased):
        node = node.relation
    return node


def _derived(query: QueryResult) -> RelationResult:
    return RelationResult(tuple(replace(field, qualifier=()) for field in query.fields), query.tree)


def _without_reflected(condition: e.Typed, sides: Sequence[frozenset[str]]) -> e.Typed:
    """Return a join condition without Java calls that one side can compute."""
    for symbols in sides:
        parts = e.reflected_parts(condition, symbols)
        condition = e.replaced(condition, [(part, e.Constant(part.type, None)) for part in parts])
    return condition


def _unnested(sql_type: Type) -> list[tuple[str | None, Type]]:
    if sql_type.base == "map":
        return [(None, sql_type.parameters[0]), (None, sql_type.parameters[1])]
    element = sql_type.parameters[0]
    if element.base == "row":
        return list(zip(element.fields, element.parameters, strict=True))
    return [(None, element)]
