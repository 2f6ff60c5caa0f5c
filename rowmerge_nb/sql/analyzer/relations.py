"""Analyzes what stands in FROM and USING: tables, subqueries, joins, UNNEST, with or without an alias."""

from __future__ import annotations

from dataclasses import dataclass, replace
from dataclasses import field as defaulted
from typing import TYPE_CHECKING, Final, TypeAlias

from rowmerge_nb.errors import AnalysisError, RowMergeError
from rowmerge_nb.names import backquoted
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, Type
from rowmerge_nb.sql.analyzer.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.correlation import is_separable
from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.known_rows import Size, join_size, table_size, unknown
from rowmerge_nb.sql.analyzer.named_queries import NamedQueries
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.analyzer.table_functions import kept_columns, sequence_rows, table_arguments
from rowmerge_nb.sql.analyzer.versions import version_of
from rowmerge_nb.sql.parser.statements import parse_query
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.types import common_type, entries_type, has_map, instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer.analysis import TableBinding, ViewBinding
    from rowmerge_nb.sql.analyzer.constant_rows import ConstantRows
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import Identifier, TableName

Reaching: TypeAlias = "tuple[tuple[e.Column, int], ...]"

_NO_CIRCLE: Final = "Write CREATE OR REPLACE VIEW with a query that reads neither the view itself nor one that reads it."
_JOINS: Final = {"CROSS": "CROSS JOIN", "INNER": "JOIN", "LEFT": "LEFT JOIN", "RIGHT": "RIGHT JOIN", "FULL": "FULL JOIN"}


@dataclass(frozen=True)
class QueryResult:
    """An analyzed query.

    Args:
        fields: its output columns; their symbols name the columns of ``spark``.
        spark: its Spark SQL text.
        reaching: the columns of queries around it that it reads, with how far out they are (0: the query directly around).
        deterministic: running it twice gives the same rows.
        cut: where it does not, that is since it takes the first rows of some, which need not be in order, and for nothing else.
        aggregates: it is an aggregation without groups, and so always one row.
        rows: its rows, where it is VALUES and they are constants.
        reads: what it reads.
        origins: of a query in an expression the numbers of the expressions within it.
        tree: the query as a tree; None where nobody asks for it.
        size: tells how many rows it has.
    """

    fields: tuple[ScopeField, ...]
    spark: str
    reaching: Reaching = ()
    deterministic: bool = True
    aggregates: bool = False
    rows: ConstantRows | None = None
    reads: e.Reads = e.NOTHING
    origins: range = range(0)
    tree: q.Query | None = None
    size: Size = defaulted(default=unknown, compare=False)
    cut: bool = False

    def as_subquery(
        self, kind: Type, name: str, spark: str, value: e.Typed | None = None, column: str = "", *, aggregates: bool = False
    ) -> e.Subquery:
        """Return the query as a value; see `rowmerge_nb.sql.typed.expressions.Subquery` for the arguments."""
        return e.Subquery(
            kind,
            name,
            spark,
            value,
            self.outer,
            self.deterministic,
            column,
            aggregates,
            reads=self.reads,
            origins=self.origins,
            query=self.tree,
        )

    @property
    def outer(self) -> tuple[e.Column, ...]:
        """The columns that it reads from around it."""
        return tuple(dict.fromkeys(column for column, _ in self.reaching))

    def as_value(self) -> str:
        """Return the text of the query as one column: its own, or a row of all."""
        if len(self.fields) == 1:
            return self.spark
        pairs = (f"{e.text_literal(f.name or f'field{i}')}, {backquoted(f.symbol)}" for i, f in enumerate(self.fields))
        return f"SELECT named_struct({', '.join(pairs)}) FROM ({self.spark})"

    def cast_to(self, kinds: Sequence[Type]) -> str:
        """Return the text of the query with its columns coerced."""
        if all(f.type == kind for f, kind in zip(self.fields, kinds, strict=True)):
            return self.spark
        return f"SELECT {', '.join(self.coerced(kinds))} FROM ({self.spark})"

    def entries(self, kinds: Sequence[Type]) -> str:
        """Return the text of the query with its columns coerced, and arrays of entries in place of maps; see `rowmerge_nb.sql.spark.maps`."""
        if not any(map(has_map, kinds)):
            return self.cast_to(kinds)
        columns = (e.Column(kind, field.symbol) for field, kind in zip(self.fields, kinds, strict=True))
        items = (f"{print_spark(e.as_entries(column))} AS {backquoted(column.symbol)}" for column in columns)
        return f"SELECT {', '.join(items)} FROM ({self.cast_to(kinds)})"

    def coerced_to(self, kinds: Sequence[Type]) -> QueryResult:
        """Return the query with its columns coerced."""
        fields = tuple(replace(field, type=kind) for field, kind in zip(self.fields, kinds, strict=True))
        return replace(self, fields=fields, spark=self.cast_to(kinds), tree=self.coerced_tree(kinds), rows=None)

    def empty(self, code: str, message: str, symbol: str) -> QueryResult:
        """Return the query so that it fails where it has a row.

        The rows are counted first: a condition on no column Spark would move to where there are rows.

        Args:
            code: the error's code.
            message: its message.
            symbol: for their number.
        """
        failure = e.Apply(BOOLEAN, "fail", (), (code, message))
        counted = e.Apply(BOOLEAN, ">=", (e.Column(BIGINT, symbol), e.Constant(BIGINT, "0")))
        condition = e.Apply(BOOLEAN, "case", (counted, failure, e.Constant(BOOLEAN, "true")))
        columns = ", ".join(backquoted(field.symbol) for field in self.fields)
        inner = f"SELECT {columns}, count(*) OVER () AS {backquoted(symbol)} FROM ({self.spark})"
        return replace(self, spark=f"SELECT {columns} FROM ({inner}) WHERE {print_spark(condition)}")

    def has_row(self, items: Sequence[e.Typed], *, alike: bool) -> e.Typed:
        """Return ``(a, b) IN (query)``: a row is in the query or is not, and as on Trino NULLs never leave it open.

        Args:
            items: the values, coerced to the types of the query's columns.
            alike: NULL is like NULL, as where Trino asks for the answer; where it keeps rows by a join, NULL is like nothing.
        """
        pairs = [(item, e.Column(item.type, field.symbol)) for item, field in zip(items, self.fields, strict=True)]
        equal = (e.Apply(BOOLEAN, "distinct", pair, True) if alike else e.Apply(BOOLEAN, "=", pair) for pair in pairs)
        same = e.Apply(BOOLEAN, "and", tuple(equal))
        kinds = tuple(item.type for item in items)
        outer = tuple(part for item in items for part in e.walk(item) if isinstance(part, e.Column))

        found = self.as_subquery(BOOLEAN, "exists", f"SELECT 1 FROM ({self.cast_to(kinds)}) WHERE {print_spark(same)}")
        tree = self.coerced_tree(kinds)
        found = replace(found, query=None if tree is None else q.Selected(tree, same, ()))
        return replace(found, outer=tuple(dict.fromkeys((*found.outer, *outer))))

    def stored_in(
        self, columns: Sequence[ColumnMetadata], chosen: Sequence[ColumnMetadata], omitted: Mapping[str, e.Typed]
    ) -> str:
        """Return the text of the query with the columns of a table: coerced as an assignment does, NOT NULL checked.

        Args:
            columns: the table's columns.
            chosen: those of them into which the query's columns go.
            omitted: what goes into the others, by their names.
        """
        values = self._stored_values(columns, chosen, omitted)
        items = (f"{print_spark(value)} AS {backquoted(column.name)}" for column, value in zip(columns, values, strict=True))
        return f"SELECT {', '.join(items)} FROM ({self.spark})"

    def stored_tree(
        self, columns: Sequence[ColumnMetadata], chosen: Sequence[ColumnMetadata], omitted: Mapping[str, e.Typed]
    ) -> q.Query | None:
        """Return the same as a tree; see `stored_in`."""
        if self.tree is None:
            return None
        values = self._stored_values(columns, chosen, omitted)
        return q.Coerced(self.tree, tuple((e.Column(c.type, c.name), value) for c, value in zip(columns, values, strict=True)))

    def _stored_values(
        self, columns: Sequence[ColumnMetadata], chosen: Sequence[ColumnMetadata], omitted: Mapping[str, e.Typed]
    ) -> list[e.Typed]:
        given = dict(omitted)
        for column, field in zip(chosen, self.fields, strict=True):
            value: e.Typed = e.Column(field.type, field.symbol)
            given[column.name] = value if field.type == column.type else e.Apply(column.type, "cast", (value,), "store")
        values: list[e.Typed] = []
        for column in columns:
            value = given[column.name]
            if not column.nullable:
                failure = e.Apply(
                    column.type,
                    "fail",
                    (),
                    ("CONSTRAINT_VIOLATION", (f"NULL value not allowed for NOT NULL column: {column.name.lower()}")),
                )
                value = e.Apply(column.type, "coalesce", (value, failure))
            values.append(value)
        return values

    def coerced_tree(self, kinds: Sequence[Type]) -> q.Query | None:
        """Return the query as a tree with its columns coerced."""
        if self.tree is None or all(f.type == kind for f, kind in zip(self.fields, kinds, strict=True)):
            return self.tree
        pairs = ((e.Column(f.type, f.symbol), e.Column(kind, f.symbol)) for f, kind in zip(self.fields, kinds, strict=True))
        values = ((new, old if old == new else e.Apply(new.type, "cast", (old,))) for old, new in pairs)
        return q.Coerced(self.tree, tuple(values))

    def coerced(self, kinds: Sequence[Type], how: str | None = None) -> list[str]:
        """Return the columns as a SELECT list, coerced to types; ``how`` is the kind of cast, see `rowmerge_nb.sql.spark.printer`."""
        return [
            f"{print_spark(e.Apply(kind, 'cast', (e.Column(f.type, f.symbol),), how))} AS {backquoted(f.symbol)}"
            for f, kind in zip(self.fields, kinds, strict=True)
        ]


@dataclass(frozen=True)
class RelationResult:
    """An analyzed relation.

    Args:
        fields: the columns that names can find in it.
        text: Spark SQL text that can stand in FROM.
        outer_text: of UNNEST the text that gives a row of NULL where there are no others, as on the right of a LEFT JOIN; else ``""``.
        reaching: see `QueryResult`.
        deterministic: see `QueryResult`.
        binding: the table, where the relation is nothing but a table.
        lateral: the text reads columns of the relation to its left.
        reads: what it reads.
        tree: see `QueryResult`.
        size: tells how many rows it has.
        cut: see `QueryResult`.
    """

    fields: tuple[ScopeField, ...]
    text: str
    reaching: Reaching = ()
    deterministic: bool = True
    outer_text: str = ""
    binding: TableBinding | None = None
    lateral: bool = False
    reads: e.Reads = e.NOTHING
    tree: q.Query | None = None
    size: Size = defaulted(default=unknown, compare=False)
    cut: bool = False


class RelationAnalyzer:
    """Analyzes relations; queries inside of them are analyzed by the subclass.

    Args:
        context: the statement's state.
        parent: the scope around, which correlated names reach; None if there is none.
        named: the queries of WITH that can be seen.
    """

    def __init__(self, context: Context, parent: Scope | None = None, named: NamedQueries | None = None) -> None:
        """Take over the statement's state and what can be seen from around."""
        self.context = context
        self.parent = parent
        self.named = NamedQueries() if named is None else named

    def query(self, node: s.QueryNode) -> QueryResult:
        """Analyze a query; the analyzer of queries says how."""
        raise NotImplementedError

    def within(self, parent: Scope | None, named: NamedQueries) -> RelationAnalyzer:
        """Return an analyzer of the same statement for another place."""
        return type(self)(self.context, parent, named)

    def expressions(self, fields: tuple[ScopeField, ...], site: ExpressionSite) -> ExpressionAnalyzer:
        """Return an analyzer for expressions over these fields."""
        return ExpressionAnalyzer(self.context, Scope(fields, self.parent), site, named=self.named)

    def printed(self, value: e.Typed, node: s.Node) -> str:
        """Return the text of a whole expression, marked by where it was written; a key of GROUP BY has its mark, the same wherever it stands."""
        return print_spark(value if value.origin is not None else replace(value, origin=self.context.origin(node.span)))

    # -- relations ------------------------------------------------------------------------------------------------

    def relation(self, node: s.Relation, left: tuple[ScopeField, ...] | None = None) -> RelationResult:
        """Analyze a relation.

        Args:
            node: the relation.
            left: the fields of the relation to its left, which UNNEST and LATERAL can see.
        """
        if isinstance(node, s.Table):
            return self._table(node)
        if isinstance(node, s.Aliased):
            return self._aliased(node, left)
        if isinstance(node, s.SubqueryRelation):
            return self._derived(self.query(node.query))
        if isinstance(node, s.Unnest):
            return self._unnest(node, left)
        if isinstance(node, s.TableFunction):
            return self._table_function(node)
        if isinstance(node, s.Lateral):
            scope = Scope(left, self.parent) if left is not None else self.parent
            return self._lateral(self.within(scope, self.named).query(node.query), has_left=left is not None)
        assert isinstance(node, s.Join)
        return self._join(node)

    def _table_function(self, node: s.TableFunction) -> RelationResult:
        given = table_arguments(self.context, node)
        table = given.get("input")
        if isinstance(table, s.TableArgument):
            found = self.relation(table.relation)
            return replace(found, fields=kept_columns(self.context, given["columns"], found.fields), binding=None)
        field, text = sequence_rows(self.context, given, self.expressions((), ExpressionSite("table function argument")))
        tree = q.Generated(node.name.parts[-1].value, (e.Column(field.type, field.symbol),))
        return RelationResult((field,), f"{text} AS {self._alias()}", reads=e.Reads(generates=True), tree=tree)

    def _table(self, node: s.Table) -> RelationResult:
        named = self.named.get(node.name.parts[0].value) if len(node.name.parts) == 1 else None
        if named is not None:
            self._refuse_period(node, "a query of WITH")
            return self._named(*named)
        view = self.context.view(node.name, node.span)
        if view is not None:
            self._refuse_period(node, "a view")
            return self._view(view, node)
        version = None if node.period is None else version_of(self.context, node.period)
        binding = self.context.table(node.name, node.span, version)
        return self.table_relation(binding, node.name)

    def _refuse_period(self, node: s.Table, what: str) -> None:
        """Refuse a version of what has none: Trino reads it as it is now without a word."""
        if node.period is not None:
            self.context.error(
                "NOT_SUPPORTED",
                f"'{node.name.parts[-1].text}' is {what}, which has no versions",
                node.period.span,
                f"Write {node.period.words} behind the tables that it reads.",
            )

    def table_relation(self, binding: TableBinding, name: TableName) -> RelationResult:
        """Return the relation of a table under the name that is written."""
        qualifier = tuple(part.value for part in name.parts)
        shown = len(binding.columns)
        fields = tuple(
            ScopeField(
                self.context.symbols.new(c.name),
                c.name,
                c.type,
                qualifier,
                table=binding.name,
                hidden=place >= shown,
                refused=binding.refused.get(c.name),
            )
            for place, c in enumerate(binding.readable)
        )
        text = f"({binding.query(field.symbol for field in fields)}) AS {self._alias()}"
        reads = e.Reads((binding.view,))
        columns = tuple((e.Column(f.type, f.symbol), c.name) for f, c in zip(fields, binding.readable, strict=True))
        tree = q.Scanned(binding.shown(binding.qualified), columns, lambda: binding.estimated_rows)
        return RelationResult(
            fields,
            text,
            deterministic=binding.deterministic,
            binding=binding,
            reads=reads,
            tree=tree,
            size=table_size(binding),
        )

    def _view(self, view: ViewBinding, node: s.Table) -> RelationResult:
        """Analyze a view's query where it is used; its columns are those that were stored when it was made."""
        if view.qualified == self.context.creates:
            self.context.error("VIEW_IS_RECURSIVE", "Statement would create a recursive view", node.span, _NO_CIRCLE)
        if view.qualified in self.context.views:
            self.context.error("VIEW_IS_RECURSIVE", "View is recursive", node.span, _NO_CIRCLE)
        try:
            result = type(self)(self.context.within(view, node.span)).query(parse_query(view.definition.original_sql))
        except RowMergeError as error:
            site = "" if error.line is None else f"line {error.line}:{error.column}: "
            self.context.error(
                "INVALID_VIEW", f"Failed analyzing stored view '{view.qualified}': {site}{error.message}", node.span, error.hint
            )
        self._check_fresh(view, result, node)
        columns = view.definition.columns
        qualifier = tuple(part.value for part in node.name.parts)
        fields = tuple(
            ScopeField(f.symbol, column.name, column.type, qualifier, table=view.name)
            for f, column in zip(result.fields, columns, strict=True)
        )
        text = f"({result.cast_to([column.type for column in columns])}) AS {self._alias()}"
        tree = result.coerced_tree([column.type for column in columns])
        return RelationResult(fields, text, deterministic=result.deterministic, reads=result.reads, tree=tree, size=result.size)

    def _check_fresh(self, view: ViewBinding, result: QueryResult, node: s.Table) -> None:
        """Refuse a view whose query gives other columns than it gave when the view was made."""
        stored = view.definition.columns
        why = None
        if len(stored) != len(result.fields):
            derived = f"column count derived from the view query analysis ({len(result.fields)})"
            why = f"stored view column count ({len(stored)}) does not match {derived}"
        for index, (field, column) in enumerate(zip(result.fields, stored, strict=False)):
            if why is not None:
                break
            given = f"column [{field.name}] of type {field.type} projected from query view at position {index}"
            kept = f"column [{column.name}] of type {column.type} stored in view definition"
            if field.name is None or field.name.lower() != column.name.lower():
                why = f"{given} has a different name from {kept}"
            elif common_type(field.type, column.type) != column.type:
                why = f"{given} cannot be coerced to {kept}"
        if why is not None:
            self.context.error(
                "VIEW_IS_STALE",
                f"View '{view.qualified}' is stale or in invalid state: {why}",
                node.span,
                "CREATE OR REPLACE VIEW makes it anew.",
            )

    def _named(self, node: s.NamedQuery, visible: NamedQueries) -> RelationResult:
        self.context.expand(node.span)
        result = self._derived(self.within(self.parent, visible).query(node.query))
        return self._renamed(result, node.name, node.columns, node)

    def _alias(self) -> str:
        return backquoted(self.context.symbols.new("r"))

    def _derived(self, query: QueryResult) -> RelationResult:
        fields = tuple(replace(f, qualifier=()) for f in query.fields)
        text = f"({query.spark}) AS {self._alias()}"
        return RelationResult(
            fields, text, query.reaching, query.deterministic, reads=query.reads, tree=query.tree, size=query.size, cut=query.cut
        )

    def _lateral(self, query: QueryResult, *, has_left: bool) -> RelationResult:
        result = self._derived(query)
        if not has_left:
            return result
        reads_left = any(depth == 0 for _, depth in query.reaching)
        reaching = tuple((column, depth - 1) for column, depth in query.reaching if depth > 0)
        return replace(result, lateral=reads_left, reaching=reaching)

    def _aliased(self, node: s.Aliased, left: tuple[ScopeField, ...] | None) -> RelationResult:
        columns = node.columns
        if isinstance(node.relation, s.TableFunction):
            # Of a table function Trino writes names of columns as it compares them.
            columns = tuple(replace(column, text=self.context.canonical(column)) for column in columns)
        return self._renamed(self.relation(node.relation, left), node.alias, columns, node)

    def _renamed(
        self, result: RelationResult, alias: Identifier, columns: tuple[Identifier, ...], node: s.Node
    ) -> RelationResult:
        if columns:
            result = replace(result, fields=tuple(field for field in result.fields if not field.hidden))
        if columns and len(columns) != len(result.fields):
            self.context.error(
                "MISMATCHED_COLUMN_ALIASES",
                f"Column alias list has {len(columns)} entries but '{alias.value}' has {len(result.fields)} columns available",
                node.span,
            )
        names: list[str | None] = [column.text for column in columns] or [f.name for f in result.fields]
        fields = tuple(
            replace(f, name=name, qualifier=(alias.value,), aliased=f.aliased or bool(columns))
            for f, name in zip(result.fields, names, strict=True)
        )
        return replace(result, fields=fields)

    # -- UNNEST ---------------------------------------------------------------------------------------------------

    def _unnest(self, node: s.Unnest, left: tuple[ScopeField, ...] | None) -> RelationResult:
        analyzer = self.expressions(left or (), ExpressionSite("UNNEST", judged_whole=True))
        items = [analyzer.whole(item) for item in node.items]
        for item, written in zip(items, node.items, strict=True):
            if item.type.base not in {"array", "map"}:
                self.context.error("INVALID_FUNCTION_ARGUMENT", f"Cannot unnest type: {item.type}", written.error_span)
        kinds = [_unnested(item.type) for item in items]
        fields = tuple(ScopeField(self.context.symbols.new("field"), name, kind) for group in kinds for name, kind in group)
        rows = self._unnested_rows(items, kinds, fields, ordinality=node.ordinality)
        if node.ordinality:
            fields = (*fields, ScopeField(self.context.symbols.new("ordinality"), None, BIGINT))
        names = ", ".join(backquoted(f.symbol) for f in fields)
        read = [part for item in items for part in e.walk(item) if isinstance(part, e.Column)]
        lateral = not all(column.outer for column in read)
        if lateral and any(column.outer for column in read):
            self.context.error(
                "NOT_SUPPORTED",
                "UNNEST of the left side of its join together with columns of a query around both is not supported by this engine",
                node.span,
                "Join in a subquery what UNNEST needs: FROM (SELECT ..., outer.x FROM ...) q CROSS JOIN UNNEST(...).",
            )
        reads = sum(map(e.reads, items), e.Reads(generates=True))
        reaching = tuple((c, d - 1) for c, d in analyzer.outer)
        columns = tuple(e.Column(f.type, f.symbol) for f in fields)
        tree = q.Unnested(tuple(items), columns, tuple(map(len, kinds)), node.ordinality)
        deterministic = all(map(e.is_deterministic, items))
        columns_of = f"AS {self._alias()}({names})"
        return RelationResult(
            fields,
            f"inline({rows}) {columns_of}",
            reaching,
            deterministic,
            outer_text=f"inline_outer({rows}) {columns_of}",
            lateral=lateral,
            reads=reads,
            tree=tree,
        )

    def _unnested_rows(
        self,
        items: list[e.Typed],
        kinds: list[list[tuple[str | None, Type]]],
        fields: tuple[ScopeField, ...],
        *,
        ordinality: bool,
    ) -> str:
        """Write the array of rows of which one of Spark's generators makes columns.

        The arrays are zipped to the longest by position; a NULL array counts as an empty one.
        """
        arrays, values = [], []
        for index, (item, kind) in enumerate(zip(items, kinds, strict=True)):
            text, is_map = print_spark(item), item.type.base == "map"
            arrays.append(f"coalesce({f'map_entries({text})' if is_map else text}, array())")
            if is_map or item.type.parameters[0].base == "row":
                names: list[str] = ["key", "value"] if is_map else [name or f"field{i}" for i, (name, _) in enumerate(kind)]
                values += [f"z.`{index}`.{backquoted(name)}" for name in names]
            else:
                values.append(f"z.`{index}`")
        if ordinality:
            values.append("CAST(i + 1 AS BIGINT)")
        body = ", ".join(f"'{index}', {value}" for index, value in enumerate(values))
        assert len(values) == len(fields) + ordinality
        return f"transform({_zipped(arrays)}, (z, i) -> named_struct({body}))"

    # -- joins ----------------------------------------------------------------------------------------------------

    def _join(self, node: s.Join) -> RelationResult:
        if node.natural:
            self.context.error("NOT_SUPPORTED", "Natural join not supported", node.span)
        left = self.relation(node.left)
        right = self.relation(node.right, left.fields)
        self._check_lateral(node, left)
        if right.lateral and not right.deterministic and not right.cut:
            # Spark refuses it, but for a left side of one row.
            self.context.error(
                "NOT_SUPPORTED",
                "What reads the left side of its join cannot depend on chance in this engine",
                node.right.span,
                "Compute random() on the left side of the join, or in a query around it.",
            )
        if right.lateral:
            self._check_separable(node, left, right)
        if node.using:
            return self._using(node, left, right, node.using)
        fields = (*left.fields, *right.fields)
        condition, reaching, reads = "", (*left.reaching, *right.reaching), left.reads + right.reads
        deterministic = left.deterministic and right.deterministic
        found = None
        if node.on is not None:
            analyzer = self.expressions(fields, ExpressionSite("JOIN clause", judged_whole=True))
            found = analyzer.condition(node.on, "JOIN ON clause must evaluate to a boolean: actual type {}")
            left, right, printed = self._joined_on(found, left, right)
            analyzer.check_reflected(printed, node.on, "the ON of a join")
            condition = f" ON {self.printed(printed, node.on)}"
            reads += e.reads(found)
            reaching += tuple((column, depth - 1) for column, depth in analyzer.outer)
            deterministic = deterministic and e.is_deterministic(found)
        if node.kind == "LEFT" and right.outer_text:
            # UNNEST is joined ON TRUE alone. Spark's outer join with it would read the left side twice, and reads no maps.
            text = self._joined(replace(node, kind="CROSS"), left, replace(right, text=right.outer_text))
        else:
            text = self._joined(node, left, right) + condition
        tree = joined_tree(node.kind, left, right, found)
        size = join_size(node.kind, left.size, right.size)
        return RelationResult(fields, text, reaching, deterministic, reads=reads, tree=tree, size=size)

    def _joined_on(
        self, condition: e.Typed, left: RelationResult, right: RelationResult
    ) -> tuple[RelationResult, RelationResult, e.Typed]:
        """Compute beside each side of a join what Spark takes for chance, which it does not join on."""
        sides = [left, right]
        for place, side in enumerate(sides):
            own = frozenset(field.symbol for field in side.fields)
            values = [] if side.lateral else _reflected(condition, own)
            if values:
                sides[place], columns = self.beside(side, values)
                condition = e.replaced(condition, list(columns.items()))
        return sides[0], sides[1], condition

    def beside(self, relation: RelationResult, values: Sequence[e.Typed]) -> tuple[RelationResult, dict[e.Typed, e.Column]]:
        """Compute values in columns beside those of a relation, with arrays of entries in place of maps.

        Args:
            relation: the relation.
            values: the values.

        Returns:
            The relation with these columns, and the column of each value.
        """
        columns = {value: e.Column(entries_type(value.type), self.context.symbols.new("made")) for value in dict.fromkeys(values)}
        made = ", ".join(
            f"{print_spark(e.as_entries(value))} AS {backquoted(column.symbol)}" for value, column in columns.items()
        )
        fields = (*relation.fields, *(ScopeField(column.symbol, None, column.type) for column in columns.values()))
        return replace(relation, fields=fields, text=f"(SELECT *, {made} FROM {relation.text}) AS {self._alias()}"), columns

    def _check_lateral(self, node: s.Join, left: RelationResult) -> None:
        """Refuse joins with what reads the left side where Trino does: UNNEST is joined ON TRUE alone."""
        right = node.right
        while isinstance(right, s.Aliased):
            right = right.relation
        if not isinstance(right, (s.Unnest, s.Lateral)):
            return
        scope = Scope(left.fields)
        read = (part for part in s.walk(right) if isinstance(part, s.Name))
        named = next((part for part in read if scope.find([p.value for p in part.parts]) is not None), None)
        if named is not None and node.kind in {"RIGHT", "FULL"}:
            self.context.error("INVALID_COLUMN_REFERENCE", f"LATERAL reference not allowed in {node.kind} JOIN", named.span)
        always = isinstance(node.on, s.Literal) and node.on.kind == "boolean" and node.on.value.upper() == "TRUE"
        if always or (node.on is None and not node.using):
            return
        span = node.span if node.on is None else node.on.error_span
        if isinstance(right, s.Unnest):
            self.context.error(
                "NOT_SUPPORTED", f"{node.kind} JOIN involving UNNEST is only supported with condition ON TRUE", span
            )
        if node.kind == "FULL":
            self.context.error(
                "NOT_SUPPORTED", "FULL JOIN involving LATERAL relation is only supported with condition ON TRUE", span
            )

    def _check_separable(self, node: s.Join, left: RelationResult, right: RelationResult) -> None:
        """Refuse a query behind LATERAL that Trino cannot make a join of; the one row of VALUES it puts in place of its columns."""
        written = node.right
        while isinstance(written, s.Aliased):
            written = written.relation
        one_row = isinstance(left.tree, q.Valued) and left.tree.count == 1
        if not isinstance(written, s.Lateral) or right.tree is None or one_row:
            return
        if not is_separable(right.tree, frozenset(field.symbol for field in left.fields)):
            error = AnalysisError("Given correlated subquery is not supported", code="NOT_SUPPORTED").at(written.query.span)
            if not self.context.refuse_later(error):
                raise error

    def _joined(self, node: s.Join, left: RelationResult, right: RelationResult) -> str:
        text = f"({right.text})" if isinstance(node.right, s.Join) else right.text
        return f"{left.text} {_JOINS[node.kind]} {'LATERAL ' if right.lateral else ''}{text}"

    def _using(self, node: s.Join, left: RelationResult, right: RelationResult, using: tuple[Identifier, ...]) -> RelationResult:
        """Each column of USING is one column of the result, without a qualifier, in front of the others."""
        shared, conditions, used = [], [], set[str]()
        for name in using:
            a, b = (self._used(name, side, which) for side, which in ((left, "left"), (right, "right")))
            common = common_type(a.type, b.type)
            if common is None:
                self.context.error("TYPE_MISMATCH", f"Cannot apply operator: {a.type} = {b.type}", name.span)
            pair = [self._coerced(f, instant(common)) for f in (a, b)]
            conditions.append(e.Apply(BOOLEAN, "=", (pair[0], pair[1])))
            used |= {a.symbol, b.symbol}
            shared.append((name, instant(common), pair))
        rest = tuple(f for f in (*left.fields, *right.fields) if f.symbol not in used)
        keys = tuple(ScopeField(self.context.symbols.new(name.value), name.text, kind) for name, kind, _ in shared)
        chosen = {"RIGHT": slice(1, 2), "FULL": slice(0, 2)}.get(node.kind, slice(0, 1))
        values = [e.Apply(kind, "coalesce", tuple(pair[chosen])) for _, kind, pair in shared]
        columns = [f"{print_spark(value)} AS {backquoted(key.symbol)}" for value, key in zip(values, keys, strict=True)]
        columns += [backquoted(f.symbol) for f in rest]
        joined = f"{self._joined(node, left, right)} ON {' AND '.join(map(print_spark, conditions))}"
        text = f"(SELECT {', '.join(columns)} FROM {joined}) AS {self._alias()}"
        deterministic = left.deterministic and right.deterministic
        reaching, reads = (*left.reaching, *right.reaching), left.reads + right.reads
        condition = conditions[0] if len(conditions) == 1 else e.Apply(BOOLEAN, "and", tuple(conditions))
        made = tuple((e.Column(key.type, key.symbol), value) for key, value in zip(keys, values, strict=True))
        tree = joined_tree(node.kind, left, right, condition, made)
        size = join_size(node.kind, left.size, right.size)
        return RelationResult((*keys, *rest), text, reaching, deterministic, reads=reads, tree=tree, size=size)

    def _used(self, name: Identifier, side: RelationResult, which: str) -> ScopeField:
        matching = [f for f in side.fields if f.matches([name.value])]
        if len(matching) != 1:
            code = "AMBIGUOUS_NAME" if matching else "COLUMN_NOT_FOUND"
            said = (
                f"Column '{name.value}' is ambiguous"
                if matching
                else f"Column '{name.text}' is missing from {which} side of join"
            )
            self.context.error(code, said, name.span)
        self.context.check_read(matching, name.span)
        return matching[0]

    def _coerced(self, source: ScopeField, kind: Type) -> e.Typed:
        column = e.Column(source.type, source.symbol)
        return column if source.type == kind else e.Apply(kind, "cast", (column,))


def joined_tree(
    kind: str,
    left: RelationResult,
    right: RelationResult,
    condition: e.Typed | None,
    shared: tuple[tuple[e.Column, e.Typed], ...] = (),
) -> q.Query | None:
    """Return the tree of a join; see `rowmerge_nb.sql.typed.queries.Joined` for the arguments."""
    if left.tree is None or right.tree is None:
        return None
    return q.Joined(kind, left.tree, right.tree, condition, shared, right.lateral)


def _reflected(value: e.Typed, own: frozenset[str]) -> list[e.Typed]:
    """Return the largest parts of an expression that call by reflection and read nothing but certain columns."""
    if e.reflected_function(value) is None or isinstance(value, e.Function):
        return []
    if e.references(value) <= own:
        return [value]
    return [part for child in e.children(value) for part in _reflected(child, own)]


def _unnested(kind: Type) -> list[tuple[str | None, Type]]:
    """The columns that UNNEST makes of a value: a map's key and value, a row's fields, or the element."""
    if kind.base == "map":
        return [(None, kind.parameters[0]), (None, kind.parameters[1])]
    element = kind.parameters[0]
    if element.base == "row":
        return list(zip(element.fields, element.parameters, strict=True))
    return [(None, element)]


def _zipped(arrays: list[str]) -> str:
    """Zip arrays into structs whose fields are `0`, `1`, ...: Spark's own zip names them after columns where it can."""
    if len(arrays) == 1:
        return f"transform({arrays[0]}, x -> named_struct('0', x))"
    longest = f"greatest({', '.join(f'size({array})' for array in arrays)})"
    fields = ", ".join(f"'{i}', get({array}, n)" for i, array in enumerate(arrays))
    return f"transform(IF({longest} = 0, CAST(array() AS ARRAY<INT>), sequence(0, {longest} - 1)), n -> named_struct({fields}))"
