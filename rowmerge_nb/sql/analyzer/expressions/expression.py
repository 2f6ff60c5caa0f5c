"""Analyzes expressions: names, types and coercions, with Trino's errors."""

# The table of methods at the end belongs to the class; Context.error and refuse never return.
# ruff: noqa: SLF001, RET503

from __future__ import annotations

import re
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMBER,
    UNKNOWN,
    VARCHAR,
    Type,
    array_of,
    row_of,
)
from rowmerge_nb.sql.analyzer.column_names import column_in_sql, offer, split_name_hint
from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
from rowmerge_nb.sql.analyzer.expressions.comparison_hints import (
    cast_hint,
    comparison_hint,
    list_hint,
    range_hint,
)
from rowmerge_nb.sql.analyzer.expressions.concatenation import concatenated
from rowmerge_nb.sql.analyzer.expressions.conversion_notices import (
    note_date_text,
    note_double_text,
    note_session_zone,
)
from rowmerge_nb.sql.analyzer.expressions.dataframe_values import date_layouts, date_parse_calls
from rowmerge_nb.sql.analyzer.expressions.in_lists import long_list
from rowmerge_nb.sql.analyzer.expressions.json_calls import json_lookup
from rowmerge_nb.sql.analyzer.expressions.json_constructors import json_constructor
from rowmerge_nb.sql.analyzer.expressions.moment_zones import at_time_zone
from rowmerge_nb.sql.analyzer.expressions.null_literals import (
    note_null_comparison,
    note_null_in_list,
)
from rowmerge_nb.sql.analyzer.expressions.quantified import EXTREMES_OF, quantified
from rowmerge_nb.sql.analyzer.expressions.subscripts import refuse_accessor, subscript
from rowmerge_nb.sql.analyzer.expressions.typed_literals import (
    decimal_literal,
    far_moment,
    interval_literal,
    interval_refusal,
    is_long_interval,
    is_number,
    moment_constant,
    typed_literal,
)
from rowmerge_nb.sql.analyzer.rows.constant_columns import constant_of
from rowmerge_nb.sql.functions.foreign_names import column_hint, literal_hint
from rowmerge_nb.sql.functions.overloads import is_aggregate, is_window
from rowmerge_nb.sql.parser.definition_reader import ABSENT_TYPES, read_type
from rowmerge_nb.sql.tree import json_expressions as j
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.depth import DEEPEST_TREE, too_deep
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast, is_cast_supported, json_refusal
from rowmerge_nb.sql.typed.readings import outer_columns
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MAX_PRECISION,
    arithmetic_type,
    as_decimal,
    can_coerce,
    cast_type,
    common_type,
    instant,
    is_numeric,
    is_orderable,
    is_text,
    too_precise,
    varchar_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.sql.analyzer.queries.relation import QueryResult
    from rowmerge_nb.sql.analyzer.scope import Match, ScopeField
    from rowmerge_nb.sql.tree.statements import Identifier, Span

_ASSIGNED: Final = re.compile(r"""(?i)(?:\bset|,)\s+[\w."]+\s*=\s*\Z""")
_LARGEST_INTEGER: Final = 2**31 - 1
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons with exchanged sides."""
_CLOCKS: Final = {
    "CURRENT_TIMESTAMP": "timestamp with time zone",
    "LOCALTIMESTAMP": "timestamp",
    "LOCALTIME": "time",
}
_SHORTEST_DECIMAL: Final = Type("decimal", (1, 0))
_BUILT_IN: Final = ((), ("system", "builtin"))
_DEFAULTS: Final = ("CURRENT_CATALOG", "CURRENT_SCHEMA")
_COMPARED: Final = re.compile(r"(?:=|<>)\s*\Z")
"""What precedes a value that may be text without its quotes."""
_DIFFERS: Final = re.compile(r"(?:<>|!=)\s*\Z")
_MISSING: Final = re.compile(r"(?i)(?:(?:pd|np|pandas|numpy|math)\s*\.\s*)?(?:nan|nat|na|none)")
"""How Python and pandas write a missing value."""
_OUTPUT_ROWS: Final = {"inserted": "new", "deleted": "old"}
"""The rows of SQL Server's OUTPUT as those of RETURNING."""
_LISTED: Final = 8
"""The columns listed for a name that does not exist."""
_DATED: Final = frozenset({"date", "timestamp", "timestamp with time zone"})
_TIMED: Final = frozenset({"timestamp", "timestamp with time zone", "time", INTERVAL_DAY.base})
_EXTRACTED_FROM: Final = {
    **dict.fromkeys(("year", "month"), _DATED | {INTERVAL_YEAR.base}),
    "day": _DATED | {INTERVAL_DAY.base},
    **dict.fromkeys(("hour", "minute", "second"), _TIMED),
    **dict.fromkeys(("timezone_hour", "timezone_minute"), frozenset({"timestamp with time zone"})),
}
"""The types of EXTRACT by field; other fields need a date or timestamp."""


class ExpressionAnalyzer(CallAnalyzer):
    """Converts expressions into typed ones, in one scope."""

    def analyze(self, node: s.Expression) -> e.Typed:
        if isinstance(node, s.Lambda):
            self.context.error(
                "TYPE_MISMATCH",
                "Lambda expression should always be used inside a function",
                node.span,
                "For a part of JSON, write json_extract(x, '$.name') instead of x -> 'name'.",
            )
        method = _METHODS.get(type(node))
        if method is None:
            self.refuse(f"{type(node).__name__} is not supported here", node)
        return method(self, node)

    def condition(self, node: s.Expression, message: str) -> e.Typed:
        """Analyze a clause's condition; ``message`` is formatted with a wrong type."""
        if self.site.judged_whole:
            self._row_filters = _terms(node)
        return self._truth(self.whole(node), node, message)

    def whole(self, node: s.Expression) -> e.Typed:
        """Analyze a clause's scalar expression; aggregates in it are reported before wrong names
        and types.
        """
        try:
            value = self.analyze(node)
        except AnalysisError:
            if self.site.judged_whole:
                self.judge_written(node)
            raise
        self.judge(node)
        return value

    def judge_written(self, node: s.Expression) -> None:
        self._not_scalars = [
            part
            for part in s.walk(node)
            if isinstance(part, s.Measure)
            or (
                isinstance(part, s.FunctionCall)
                and (
                    part.window
                    or (
                        part.qualifier in _BUILT_IN
                        and (
                            part.name == "grouping"
                            or is_aggregate(part.name)
                            or is_window(part.name)
                        )
                    )
                )
            )
        ]
        self.judge(node)

    def boolean(self, node: s.Expression, message: str) -> e.Typed:
        """Analyze a boolean; ``message`` is formatted with a wrong type."""
        return self._truth(self.analyze(node), node, message)

    def _truth(self, value: e.Typed, node: s.Expression, message: str) -> e.Typed:
        if value.type not in {BOOLEAN, UNKNOWN}:
            hint = (
                "Separate assignments by commas, not by AND."
                if _ASSIGNED.search(self.context.text[: node.span.start])
                else "Write a comparison, as a = 1."
            )
            self.context.error("TYPE_MISMATCH", message.format(value.type), node.error_span, hint)
        return self.coerce(value, BOOLEAN)

    # -- names ----------------------------------------------------------------------------------------------------

    def _name(self, node: s.Name) -> e.Typed:
        parts = [part.value for part in node.parts]
        if parts[0] in self.variables:
            value = self.variables[parts[0]]
            return value if len(parts) == 1 else self._fields(value, node, 1)
        if parts[0] in self.outputs:
            return self._fields(self._output(node, parts[0]), node, 1)
        match = self.scope.find(parts)
        full_name = ".".join(parts)
        if match is None:
            hint = (
                self._output_hint(node, parts)
                or self.context.tables.frame_hint(parts[-1])
                or (column_hint(parts[0]) if len(parts) == 1 else None)
                or self._table_hint(parts)
                or split_name_hint(node, self.scope.fields, self.context.text)
                or self._near_hint(node, parts)
            )
            self.context.error(
                "COLUMN_NOT_FOUND", f"Column '{full_name}' cannot be resolved", node.span, hint
            )
        if self.scope.blocked(match.depth):
            self.context.refuse(
                f"Reference to column '{full_name}' from outer scope not allowed in this context",
                node.span,
            )
        field = (
            match.fields[0]
            if len(match.fields) == 1
            else self._preferred_field(node, match, full_name)
        )
        self.context.check_read((field,), node.span)
        return self._fields(field.read(outer=match.depth > 0), node, match.used)

    def _output_hint(self, node: s.Name, parts: Sequence[str]) -> str | None:
        row = _OUTPUT_ROWS.get(parts[0])
        if row is None or len(parts) == 1:
            return None
        column = node.parts[-1].text
        if any(field.qualifier[-1:] == (row,) for field in self.scope.fields):
            return f"Write {column_in_sql(column, row)} instead of {parts[0]}.{column}."
        return (
            f"Trino has no rows of OUTPUT. Write RETURNING {column_in_sql(column, row)} at the end,"
            " with --dialect extended."
        )

    def _near_hint(self, node: s.Name, parts: Sequence[str]) -> str | None:
        """Return the most similar column, or the columns; text without single quotes is noticed."""
        if _MISSING.fullmatch(node.span.of(self.context.text)):
            literal = node.parts[-1].text
            differs = _DIFFERS.search(self.context.text[: node.span.start])
            form = "IS NOT NULL" if differs else "IS NULL, or NULL for a value,"
            return f"Write {form} instead of {literal}; pandas' NaN is NULL here."
        near = self.scope.like(parts)
        text = f"Text is written in single quotes: '{node.parts[0].text}'."
        columns = self._columns_hint(parts)
        if len(parts) == 1 and node.span.of(self.context.text).startswith('"'):
            return f"{offer(near)} {text}" if near else text
        if near:
            return offer(near)
        is_compared = _COMPARED.search(self.context.text[: node.span.start])
        return f"{text} {columns or ''}".rstrip() if len(parts) == 1 and is_compared else columns

    def _columns_hint(self, parts: Sequence[str]) -> str | None:
        names = dict.fromkeys(
            column_in_sql(field.name)
            for field in self.scope.fields
            if field.name is not None
            and not field.hidden
            and (len(parts) == 1 or field.qualifier[-1:] == (parts[-2],))
        )
        if not names:
            return None
        rest = ", ..." if len(names) > _LISTED else ""
        return f"The columns are {', '.join([*names][:_LISTED])}{rest}."

    def _table_hint(self, parts: Sequence[str]) -> str | None:
        columns = [
            f"{parts[0]}.{field.name}"
            for field in self.scope.fields
            if field.qualifier[-1:] == (parts[0],) and field.name is not None
        ]
        if len(parts) > 1:
            unnamed = [f for f in self.scope.fields if f.name == parts[1] and not f.qualifier]
            return (
                f"A query within parentheses has no name; write one behind it: (...) {parts[0]}."
                if len(parts) == 2 and unnamed and not columns
                else None
            )
        if columns:
            return f"{parts[0]} is a table; write one of its columns: {', '.join(columns[:4])}."
        if any(field.qualifier[-1:] == (parts[0],) for field in self.scope.fields):
            return f"{parts[0]} is a table; name its column: AS {parts[0]} (x)."
        if re.search(rf"(?i)\bAS\s+{re.escape(parts[0])}\b", self.context.text):
            return (
                f"{parts[0]} is a name of SELECT, which is computed later: repeat its expression, or"
                " write the query in parentheses in FROM."
            )
        return None

    def _output(self, node: s.Name, name: str) -> e.Typed:
        """Return an expression of the SELECT list; ORDER BY sees it before FROM, but an aggregate
        may not use it.
        """
        value = self.outputs[name]
        if self.inside_aggregate:
            self.context.error(
                "COLUMN_NOT_FOUND",
                "Invalid reference to output projection attribute from ORDER BY aggregation",
                node.span,
            )
        if value is None:
            self.context.error("AMBIGUOUS_NAME", f"Column '{name}' is ambiguous", node.span)
        return value

    def _preferred_field(self, node: s.Name, match: Match, full_name: str) -> ScopeField:
        targets = [field for field in match.fields if field.target]
        is_bare = len(node.parts) == 1 and len(targets) == 1
        if is_bare and self.prefers_target is not None and self.prefers_target(node.parts[0].value):
            self.context.notice(
                f"Trino refuses the name '{node.parts[0].text}', which both sides have; here it"
                " means the target's column.",
                node.span,
            )
            return targets[0]
        hint = _qualified_names(match)
        self.context.error("AMBIGUOUS_NAME", f"Column '{full_name}' is ambiguous", node.span, hint)

    def _fields(self, base: e.Typed, node: s.Name, used: int) -> e.Typed:
        for index, part in enumerate(node.parts[used:], used):
            prefix = ".".join(part.value for part in node.parts[:index])
            base = self._field(base, part, node, prefix, f"{prefix}.{part.value}")
        return base

    def _field(
        self, base: e.Typed, part: Identifier, node: s.Expression, known: str, shown: str
    ) -> e.Typed:
        """Return a field of a row; errors call the row ``known`` and the field ``shown``."""
        if base.type.base == "json" and isinstance(base, e.Column):
            refuse_accessor(self, f"{known}.{part.text}", f"{known}, '$.{part.text}'", node)
        if base.type.base != "row":
            self.context.error("TYPE_MISMATCH", f"Expression {known} is not of type ROW", node.span)
        names = [field.lower() if field else None for field in base.type.fields]
        if part.value not in names:
            self.context.error(
                "INVALID_COLUMN_REFERENCE", f"Column reference '{shown}' is invalid", node.span
            )
        if names.count(part.value) != 1:
            self.context.error(
                "AMBIGUOUS_NAME", f"Ambiguous row field reference: {part.text}", part.span
            )
        index = names.index(part.value)
        return e.Apply(base.type.parameters[index], "field", (base,), index)

    def _dereference(self, node: s.Dereference) -> e.Typed:
        base = self.analyze(node.base)
        return self._field(
            base, node.field, node, node.base.span.of(self.context.text), node.field.value
        )

    # -- literals -------------------------------------------------------------------------------------------------

    def _literal(self, node: s.Literal) -> e.Typed:
        if node.kind == "null":
            return e.Constant(UNKNOWN, None)
        if node.kind == "string":
            return e.Constant(varchar_of(len(node.value)), node.value)
        if node.kind == "integer":
            return e.Constant(
                INTEGER if ~_LARGEST_INTEGER <= int(node.value) <= _LARGEST_INTEGER else BIGINT,
                node.value,
            )
        if node.kind == "decimal":
            literal = decimal_literal(node.value)
            if literal is None:
                self.context.error(
                    "INVALID_LITERAL", f"Invalid decimal literal: {node.value}", node.span
                )
            return literal
        return e.Constant(Type(node.kind if node.kind != "binary" else "varbinary"), node.value)

    def _typed_literal(self, node: s.TypedLiteral) -> e.Typed:
        if node.type == "number" and is_number(node.value):
            return e.Apply(NUMBER, "cast", (e.Constant(VARCHAR, node.value),))
        try:
            literal = None if node.type == "number" else typed_literal(node.type, node.value)
        except KeyError:
            if node.type in ABSENT_TYPES:
                self.refuse(f"The type {node.type} is not supported by this engine", node)
            self.context.error(
                "TYPE_NOT_FOUND",
                f"Unknown type: {node.type}",
                node.span,
                literal_hint(str(node.type)),
            )
        if literal is None:
            far = far_moment(node.type, node.value)
            if far is not None:
                # Python has no such value, but the cast of its text has.
                return e.Apply(cast_type(VARCHAR, far), "cast", (e.Constant(VARCHAR, node.value),))
            if (
                node.type == "time"
                and typed_literal("timestamp", f"2001-01-01 {node.value}") is not None
            ):
                self.refuse("The type time with time zone is not supported by this engine", node)
            self.context.error(
                "INVALID_LITERAL",
                f"'{node.value}' is not a valid {node.type.upper()} literal",
                node.span,
            )
        return literal

    def _interval(self, node: s.Interval) -> e.Typed:
        literal = interval_literal(node)
        if literal is None:
            self.context.error("INVALID_LITERAL", interval_refusal(node), node.span)
        if is_long_interval(literal):
            self.refuse(
                "An interval of more than 106751991 days is not supported by this engine: it counts"
                " microseconds",
                node,
            )
        return literal

    def _special(self, node: s.Special) -> e.Typed:
        if node.word == "CURRENT_DATE":
            return moment_constant(DATE, self.context.now)
        if node.word in _CLOCKS:
            clock_type = Type(
                _CLOCKS[node.word], (3 if node.precision is None else node.precision,)
            )
            self._check_precision(clock_type, clock_type, node)
            return moment_constant(clock_type, self.context.now)
        if node.word in _DEFAULTS:
            name = self.context.tables.default()[_DEFAULTS.index(node.word)]
            return e.Constant(VARCHAR, name)
        if node.word == "CURRENT_USER":
            return e.Constant(VARCHAR, self.context.tables.user())
        if node.word == "CURRENT_PATH":
            # Functions have no schema.
            return e.Constant(VARCHAR, "")
        self.refuse(f"{node.word} is not supported by this engine", node)

    def _parameter(self, node: s.ParameterMarker) -> e.Typed:
        if self.context.parameters is not None:
            return e.Parameter(UNKNOWN, None, node.span.start)
        self.context.error(
            "INVALID_PARAMETER_USAGE",
            "Incorrect number of parameters: expected 1 but found 0",
            self.context.statement_span(),
        )

    def _unsupported(self, node: s.Unsupported) -> e.Typed:
        self.refuse(f"{node.what} is not supported by this engine", node)

    # -- operators ------------------------------------------------------------------------------------------------

    def _unary(self, node: s.Unary) -> e.Typed:
        operand = self.analyze(node.operand)
        fits = is_numeric(operand.type) or operand.type in {INTERVAL_DAY, INTERVAL_YEAR}
        if node.operator == "+":
            if not fits:
                self.context.error(
                    "TYPE_MISMATCH",
                    f"Unary '+' operator cannot by applied to {operand.type} type",
                    node.span,
                )
            return operand
        if not fits and operand.type != UNKNOWN:
            self.context.error("TYPE_MISMATCH", f"Cannot negate {operand.type}", node.span)
        if operand.type == UNKNOWN:
            self.ambiguous(node)
        return e.Apply(operand.type, "negate", (operand,))

    def _binary(self, node: s.Binary) -> e.Typed:
        left, right = self.analyze(node.left), self.analyze(node.right)
        return (
            self._arithmetic(node, left, right)
            if node.operator in "+-*/%"
            else self._comparison(node, left, right)
        )

    def _chain(self, node: s.Chain) -> e.Typed:
        """Type a long run of operators; each step refers to the value so far by a variable."""
        value = self.analyze(node.first)
        arguments = [value]
        for step in node.steps:
            so_far = e.Variable(value.type, e.SO_FAR)
            operand = self.analyze(step.operand)
            if step.operator == "||":
                value = concatenated(self, step, [so_far, operand])
            else:
                value = self._arithmetic(step, so_far, operand)
            # An untyped NULL makes everything before it NULL.
            arguments = [] if isinstance(value, e.Constant) else arguments
            arguments.append(value)
        chain = e.chain_of(value.type, arguments)
        is_loop = (
            isinstance(chain, e.Apply)
            and chain.name == "chain"
            and len(chain.arguments) > DEEPEST_TREE + 1
        )
        if is_loop and e.has_subquery(chain):
            # Engines run such a chain as a loop, which allows no subquery.
            raise too_deep()
        return chain

    def _arithmetic(self, node: s.Binary | s.ChainStep, left: e.Typed, right: e.Typed) -> e.Typed:
        result = arithmetic_type(node.operator, left.type, right.type)
        if result is None:
            self._no_operator(node, node.operator, left, right)
        if result == UNKNOWN:
            self.ambiguous(node)
        if UNKNOWN in {left.type, right.type}:
            for part, other in ((left, right.type), (right, left.type)):
                if is_numeric(other):
                    self.context.note_parameter(
                        part, _SHORTEST_DECIMAL if other.base == "decimal" else other
                    )
            return e.Constant(result, None)
        if is_numeric(left.type) and is_numeric(right.type):
            self._check_scale(node, left.type, right.type)
            left, right = self._alike(left, right, result)
        elif (
            result == INTERVAL_DAY
            and left.type not in (INTERVAL_DAY, INTERVAL_YEAR)
            and node.operator == "-"
        ):
            left, right = self.comparable(
                (left, right), common_type(left.type, right.type) or left.type
            )
        elif node.operator in "*/":
            left, right = (self._factor(part, node.operator) for part in (left, right))
        return e.Apply(result, "arithmetic", (left, right), node.operator)

    def _check_scale(self, node: s.Binary | s.ChainStep, left: Type, right: Type) -> None:
        if node.operator == "*" and left.base == right.base == "decimal":
            scale = left.parameters[1] + right.parameters[1]
            if scale > MAX_PRECISION:
                self.context.error(
                    "INVALID_FUNCTION_ARGUMENT",
                    f"DECIMAL scale must be in range [0, precision ({MAX_PRECISION})]: {scale}",
                    node.error_span,
                )

    def _factor(self, value: e.Typed, operator: str) -> e.Typed:
        if not is_numeric(value.type):
            return value
        return self.coerce(
            value, BIGINT if operator == "*" and can_coerce(value.type, BIGINT) else DOUBLE
        )

    def _alike(self, left: e.Typed, right: e.Typed, result: Type) -> tuple[e.Typed, e.Typed]:
        """Coerce operands: decimals keep their precision, other numbers get the result's type."""
        if result.base == "decimal":
            return self.coerce(left, as_decimal(left.type)), self.coerce(
                right, as_decimal(right.type)
            )
        return self.coerce(left, result), self.coerce(right, result)

    def _no_operator(
        self, node: s.Binary | s.ChainStep, operator: str, left: e.Typed, right: e.Typed
    ) -> NoReturn:
        hint = None
        if common_type(left.type, right.type) == NUMBER:
            self.context.refuse_number((NUMBER,), node.error_span)
        if {is_text(left.type), is_text(right.type)} == {True, False} and (
            is_numeric(left.type) or is_numeric(right.type)
        ):
            is_left, number = is_text(left.type), right.type if is_text(left.type) else left.type
            operand = (
                node.operand
                if isinstance(node, s.ChainStep) and not is_left
                else (node.left if is_left else node.right)
                if isinstance(node, s.Binary)
                else None
            )
            hint = cast_hint(self.context.text, operand, number)
        if isinstance(node, s.Binary) and operator in {"=", *_TURNED}:
            hint = (
                self._date_hint(((node.left, left), (node.right, right)))
                or comparison_hint(
                    self.context.text, operator, (node.left, node.right), (left.type, right.type)
                )
                or hint
            )
        if operator == "+" and is_text(left.type) and is_text(right.type):
            hint = "Write || to join texts."
        self.context.error(
            "TYPE_MISMATCH",
            f"Cannot apply operator: {left.type} {operator} {right.type}",
            node.error_span,
            hint,
        )

    def _date_hint(self, operands: Sequence[tuple[s.Expression, e.Typed]]) -> str | None:
        """Return how texts that look like dates are compared with dates, or None."""
        if not any(value.type.base in {"date", "timestamp"} for _, value in operands):
            return None
        date, layouts = date_layouts(self.context, operands, self.scope.fields)
        node = next((node for node, value in operands if is_text(value.type)), None)
        if node is None or not layouts:
            return None
        calls = date_parse_calls(node.span.of(self.context.text), layouts)
        return f"For text such as {date} write {calls}."

    def _comparison(self, node: s.Binary, left: e.Typed, right: e.Typed) -> e.Typed:
        note_null_comparison(self.context, node.operator, node.left, node.right, node.span)
        note_session_zone(self.context, ((node.left, left.type), (node.right, right.type)))
        common = common_type(left.type, right.type)
        if common is None:
            # Trino has only =, < and <=.
            self._no_operator(
                node,
                {"<>": "=", ">": "<", ">=": "<="}.get(node.operator, node.operator),
                left,
                right,
            )
        ordered = node.operator not in {"=", "<>"}
        if ordered:
            operands = ((node.left, left), (node.right, right))
            note_date_text(self.context, node.span, operands, self.scope.fields)
        if ordered and not is_orderable(common):
            self._no_operator(
                node, {">": "<", ">=": "<="}.get(node.operator, node.operator), left, right
            )
        if common.base == "row" and ordered:
            return self._row_order(node.operator, left, right, common)
        if (
            common.base == "decimal"
            and (comparison := self._with_long_literal(node.operator, left, right)) is not None
        ):
            return comparison
        return e.Apply(BOOLEAN, node.operator, self.comparable((left, right), common))

    def _with_long_literal(self, operator: str, left: e.Typed, right: e.Typed) -> e.Typed | None:
        """Compare with a decimal literal too long for a common type: Trino truncates the literal.

        None if not applicable.
        """
        if UNKNOWN in {left.type, right.type}:
            return None
        (p1, s1), (p2, s2) = as_decimal(left.type).parameters, as_decimal(right.type).parameters
        if s1 > s2:
            left, right, operator = right, left, _TURNED.get(operator, operator)
        literal = constant_of(right)
        if (
            max(p1 - s1, p2 - s2) + max(s1, s2) <= MAX_PRECISION
            or literal is None
            or literal.value is None
        ):
            return None
        decimal_type = as_decimal(left.type)
        precision, scale = decimal_type.parameters
        with localcontext(prec=2 * MAX_PRECISION):
            cut = Decimal(literal.value).quantize(Decimal(1).scaleb(-scale), ROUND_FLOOR) + 0
            largest = Decimal(10) ** (precision - scale) - Decimal(1).scaleb(-scale)
            if cut != Decimal(literal.value):
                # No value equals the literal or exceeds the largest; NULL stays unknown.
                cut = largest if operator in {"=", "<>"} else cut
                operator = {"=": ">", "<>": "<=", "<": "<=", ">=": ">"}.get(operator, operator)
        return e.Apply(
            BOOLEAN,
            operator,
            (self.coerce(left, decimal_type), e.Constant(decimal_type, f"{cut:f}")),
        )

    def _row_order(self, operator: str, left: e.Typed, right: e.Typed, common: Type) -> e.Typed:
        return e.Apply(BOOLEAN, operator, self.comparable((left, right), common), "row")

    def _logical(self, node: s.Logical) -> e.Typed:
        terms = [
            self.boolean(term, "Logical expression term must evaluate to a boolean (actual: {})")
            for term in node.terms
        ]
        return e.Apply(BOOLEAN, node.operator.lower(), tuple(terms))

    def _not(self, node: s.Not) -> e.Typed:
        operand = self.boolean(
            node.operand, "Value of logical NOT expression must evaluate to a boolean (actual: {})"
        )
        return e.Apply(BOOLEAN, "not", (operand,))

    def _between(self, node: s.Between) -> e.Typed:
        parts = (node.value, node.low, node.high)
        value, low, high = (self.analyze(part) for part in parts)
        types = (value.type, low.type, high.type)
        note_session_zone(self.context, zip(parts, types, strict=True))
        operands = tuple(zip(parts, (value, low, high), strict=True))
        note_date_text(self.context, node.span, operands, self.scope.fields)
        common = common_type(value.type, low.type)
        common = common_type(common, high.type) if common else None
        if common is not None:
            self.context.refuse_number((common,), node.error_span)
        if common is None or not is_orderable(common):
            self.context.error(
                "TYPE_MISMATCH",
                f"Cannot check if {value.type} is BETWEEN {low.type} and {high.type}",
                node.error_span,
                self._date_hint(operands) or range_hint(self.context.text, node, types),
            )
        value, low, high = self.comparable((value, low, high), common)
        limits = [(low, high), (high, low)] if node.symmetric else [(low, high)]
        within = [
            e.Apply(
                BOOLEAN,
                "and",
                (e.Apply(BOOLEAN, ">=", (value, least)), e.Apply(BOOLEAN, "<=", (value, most))),
            )
            for least, most in limits
        ]
        between = e.Apply(BOOLEAN, "or", tuple(within)) if node.symmetric else within[0]
        return e.Apply(BOOLEAN, "not", (between,)) if node.negated else between

    def _in_list(self, node: s.InList) -> e.Typed:
        note_null_in_list(self.context, node)
        list_lookup = long_list(self, node)
        if list_lookup is not None:
            return list_lookup
        nodes = [node.value, *node.items]
        values = [self.analyze(part) for part in nodes]
        hint = list_hint(self.context.text, nodes, [value.type for value in values])
        parts = self.alike(values, nodes, "IN value and list items", hint)
        return e.Apply(BOOLEAN, "in", self.comparable(parts, parts[0].type), node.negated)

    def _like(self, node: s.Like) -> e.Typed:
        value, pattern = self.analyze(node.value), self.analyze(node.pattern)
        escape = self.analyze(node.escape) if node.escape else None
        checks = [(value, node.value, "Left side of"), (pattern, node.pattern, "Pattern for")]
        if escape is not None and node.escape is not None:
            checks.append((escape, node.escape, "Escape for"))
        for part, part_node, side in checks:
            if not (
                part.type.base == "varchar"
                or part.type == UNKNOWN
                or (part is value and part.type.base == "char")
            ):
                self.context.error(
                    "TYPE_MISMATCH",
                    f"{side} LIKE expression must evaluate to a varchar (actual: {part.type})",
                    part_node.error_span,
                    f"Write CAST({part_node.span.of(self.context.text)} AS varchar).",
                )
            self.context.note_parameter(part, VARCHAR)
        return e.Apply(
            BOOLEAN, "like", (value, pattern, *((escape,) if escape else ())), node.negated
        )

    def _is_null(self, node: s.IsNull) -> e.Typed:
        return e.Apply(BOOLEAN, "is null", (self.analyze(node.value),), node.negated)

    def _is_truth(self, node: s.IsTruth) -> e.Typed:
        value = self.boolean(
            node.value, "Boolean test value must evaluate to a boolean (actual: {})"
        )
        if node.truth == "UNKNOWN":
            return e.Apply(BOOLEAN, "is null", (value,), node.negated)
        expected = e.Constant(BOOLEAN, node.truth.lower())
        return e.Apply(BOOLEAN, "distinct", (value, expected), not node.negated)

    def _is_distinct(self, node: s.IsDistinct) -> e.Typed:
        left, right = self.analyze(node.value), self.analyze(node.right)
        note_session_zone(self.context, ((node.value, left.type), (node.right, right.type)))
        common = common_type(left.type, right.type)
        if common is None:
            self.context.error(
                "TYPE_MISMATCH",
                f"Cannot check if {left.type} is identical to {right.type}",
                node.error_span,
            )
        return e.Apply(BOOLEAN, "distinct", self.comparable((left, right), common), node.negated)

    # -- conditional and constructed values -----------------------------------------------------------------------

    def _case(self, node: s.Case) -> e.Typed:
        operand = self.analyze(node.operand) if node.operand else None
        if (
            operand is not None
            and not e.is_deterministic(operand)
            and any(isinstance(condition, s.WhenPredicate) for condition, _ in node.whens)
        ):
            self.context.refuse(
                "A CASE whose operand is another value each time, with a comparison behind WHEN, is"
                " not supported by this engine",
                node.error_span,
                "Compute the operand in a subquery first.",
            )
        conditions = [self._when(node, operand, condition) for condition, _ in node.whens]
        value_nodes = [value for _, value in node.whens] + ([node.default] if node.default else [])
        values = self.alike(
            [self.analyze(value) for value in value_nodes], value_nodes, "All CASE results"
        )
        arguments = [part for pair in zip(conditions, values, strict=False) for part in pair]
        return e.Apply(values[0].type, "case", (*arguments, *values[len(conditions) :]))

    def _when(self, node: s.Case, operand: e.Typed | None, condition: s.Expression) -> e.Typed:
        if operand is None or node.operand is None:
            return self.boolean(
                condition, "CASE WHEN clause must evaluate to a boolean (actual: {})"
            )
        if isinstance(condition, s.WhenPredicate):
            return self.analyze(condition.predicate)
        right = self.analyze(condition)
        note_null_comparison(self.context, "=", node.operand, condition, node.span)
        common = common_type(operand.type, right.type)
        if common is None:
            self.context.error(
                "TYPE_MISMATCH",
                f"CASE operand type does not match WHEN clause operand type: {operand.type} vs"
                f" {right.type}",
                condition.error_span,
            )
        return e.Apply(BOOLEAN, "=", self.comparable((operand, right), common))

    def _cast(self, node: s.Cast) -> e.Typed:
        try:
            target = read_type(node.type)
        except AnalysisError as error:
            span = replace(node.span, about=node.type.span)
            self.context.error(error.code, error.message, span, error.hint)
        if target == UNKNOWN:
            self.context.error("TYPE_MISMATCH", "UNKNOWN is not a valid type", node.span)
        value = self.analyze(node.value)
        if not can_cast(value.type, target):
            code, message = json_refusal(value.type, target) or ("TYPE_MISMATCH", "")
            if message:
                self.context.error(code, message, node.span)
            self.context.error("TYPE_MISMATCH", f"Cannot cast {value.type} to {target}", node.span)
        self._check_precision(value.type, target, node)
        target = cast_type(value.type, target)
        if value.type == target:
            return value
        if not is_cast_supported(value.type, target):
            self.refuse(
                f"The cast of {value.type} to {target} is not supported by this engine", node
            )
        note_double_text(self.context, node, value, target, self.scope.fields)
        return e.Apply(target, "cast", (value,), "try" if node.safe else None)

    def _check_precision(self, source: Type, target: Type, node: s.Expression) -> None:
        """Refuse precisions above microseconds, since values are rounded."""
        fine = too_precise(target) or (
            too_precise(source) if target.base in {"varchar", "char", "json"} else None
        )
        if fine is not None:
            self.context.refuse(
                f"The type {fine} is not supported by this engine: its values have microseconds",
                node.span,
            )

    def _row(self, node: s.RowConstructor) -> e.Typed:
        items = tuple(self.analyze(item) for item in node.items)
        names = node.names or (None,) * len(items)
        fields = ((name, item.type) for name, item in zip(names, items, strict=True))
        return e.Apply(row_of(fields), "row", items)

    def _array(self, node: s.ArrayConstructor) -> e.Typed:
        items = self.alike(
            [self.analyze(item) for item in node.items], node.items, "All ARRAY elements"
        )
        return e.Apply(array_of(items[0].type if items else UNKNOWN), "array", tuple(items))

    def _extract(self, node: s.Extract) -> e.Typed:
        name = node.field.value
        value = self.analyze(node.value)
        if value.type.base not in _EXTRACTED_FROM.get(name, _DATED):
            self.context.error(
                "TYPE_MISMATCH",
                f"Cannot extract {node.field.text.upper()} from {value.type}",
                node.value.error_span,
            )
        return self.function(name, [value], node)

    def _at_time_zone(self, node: s.AtTimeZone) -> e.Typed:
        return at_time_zone(self, self.analyze(node.value), self.analyze(node.zone), node)

    # -- subqueries -----------------------------------------------------------------------------------------------

    def _outside_lambda(self, node: s.ScalarQuery | s.Exists) -> None:
        if self.site.judged_whole and self.variables:
            self.context.refuse(f"{self.site.name} cannot contain subqueries", node.error_span)

    def _scalar(self, node: s.ScalarQuery) -> e.Typed:
        self._outside_lambda(node)
        query = self.subquery(node.query)
        kind = (
            query.fields[0].type
            if len(query.fields) == 1
            else row_of((f.name, f.type) for f in query.fields)
        )
        return query.as_subquery(kind, "scalar")

    def _exists(self, node: s.Exists) -> e.Typed:
        self._outside_lambda(node)
        return self.subquery(node.query).as_subquery(BOOLEAN, "exists")

    def _in_query(self, node: s.InQuery) -> e.Typed:
        if isinstance(node.value, s.RowConstructor):
            membership = self._row_in_query(node, node.value)
            return e.Apply(BOOLEAN, "not", (membership,)) if node.negated else membership
        value, query, _ = self._against_query(node, "A row on the left of IN (query)")
        membership = query.as_subquery(BOOLEAN, "in", value)
        return e.Apply(BOOLEAN, "not", (membership,)) if node.negated else membership

    def _row_in_query(self, node: s.InQuery, row: s.RowConstructor) -> e.Typed:
        items, query = [self.analyze(item) for item in row.items], self.subquery(node.query)
        common = self._common_row(node, row_of((None, item.type) for item in items), query)
        if any(e.has_subquery(item) or not e.is_deterministic(item) for item in items):
            self.refuse(
                "A row with subqueries or random values on the left of IN (query) is not supported"
                " by this engine",
                node,
            )
        kinds = [instant(kind) for kind in common.parameters]
        values = [self.coerce(item, kind) for item, kind in zip(items, kinds, strict=True)]
        return query.has_row(
            values,
            alike=not outer_columns(query.tree) and (node.negated or node not in self._row_filters),
        )

    def _quantified(self, node: s.Quantified) -> e.Typed:
        every = node.quantifier == "ALL"
        if node.operator == ("<>" if every else "="):
            membership = s.InQuery(node.span, node.value, node.word, node.query, every)
            self._row_filters += (membership,) if node in self._row_filters else ()
            return self._in_query(membership)
        form = f"{node.operator} {node.quantifier} (query)"
        value, query, kind = self._against_query(node, f"A row on the left of {form}")
        if kind.base not in EXTREMES_OF:
            self.refuse(f"{form} of values of type {kind} is not supported by this engine", node)
        return quantified(node.operator, value, query, kind, every=every)

    def _against_query(
        self, node: s.InQuery | s.Quantified, row: str
    ) -> tuple[e.Typed, QueryResult, Type]:
        value, query = self.analyze(node.value), self.subquery(node.query)
        left = (
            value.type
            if value.type.base == "row" or value.type == UNKNOWN
            else row_of([(None, value.type)])
        )
        common = self._common_row(node, left, query)
        if value.type.base == "row":
            self.refuse(f"{row} is not supported by this engine", node)
        kind = instant(common.parameters[0])
        return self.coerce(value, kind), query, kind

    def _common_row(self, node: s.Expression, left: Type, query: QueryResult) -> Type:
        right = row_of((f.name, f.type) for f in query.fields)
        common = common_type(left, right)
        if common is None or (left == UNKNOWN and len(query.fields) != 1):
            self.context.error(
                "TYPE_MISMATCH",
                f"Value expression and result of subquery must be of the same type: {left} vs"
                f" {right}",
                node.error_span,
            )
        return common

    # -- helpers --------------------------------------------------------------------------------------------------

    def alike(
        self,
        parts: Sequence[e.Typed],
        nodes: Sequence[s.Expression],
        what: str,
        hint: str | None = None,
    ) -> list[e.Typed]:
        common = UNKNOWN
        for part, node in zip(parts, nodes, strict=True):
            wider = common_type(common, part.type)
            if wider is None:
                self.no_common_type(
                    what,
                    common,
                    part.type,
                    ", ".join(dict.fromkeys(str(p.type) for p in parts)),
                    node.error_span,
                    hint,
                )
            common = wider
        return [self.coerce(part, common) for part in parts]

    def no_common_type(
        self, what: str, common: Type, kind: Type, kinds: str, span: Span, hint: str | None = None
    ) -> NoReturn:
        self.context.error(
            "TYPE_MISMATCH",
            f"{what} must be the same type or coercible to a common type. Cannot find common type"
            f" between {common} and {kind}, all types (without duplicates): [{kinds}]",
            span,
            hint,
        )


def _qualified_names(match: Match) -> str | None:
    qualifiers = sorted({field.qualifier[-1] for field in match.fields if field.qualifier})
    if len(qualifiers) < 2:
        return None
    name = str(match.fields[0].name)
    return f"Write {' or '.join(column_in_sql(name, qualifier) for qualifier in qualifiers)}."


def _terms(node: s.Expression) -> tuple[s.Expression, ...]:
    if isinstance(node, s.Logical) and node.operator == "AND":
        return tuple(term for part in node.terms for term in _terms(part))
    return (node,)


_METHODS: Final[dict[type[s.Expression], Callable[[ExpressionAnalyzer, Any], e.Typed]]] = {
    s.Name: ExpressionAnalyzer._name,
    s.Dereference: ExpressionAnalyzer._dereference,
    s.MethodCall: ExpressionAnalyzer.method_call,
    s.Literal: ExpressionAnalyzer._literal,
    s.TypedLiteral: ExpressionAnalyzer._typed_literal,
    s.Interval: ExpressionAnalyzer._interval,
    s.Special: ExpressionAnalyzer._special,
    s.ParameterMarker: ExpressionAnalyzer._parameter,
    s.Unsupported: ExpressionAnalyzer._unsupported,
    s.Unary: ExpressionAnalyzer._unary,
    s.Binary: ExpressionAnalyzer._binary,
    s.Chain: ExpressionAnalyzer._chain,
    s.Logical: ExpressionAnalyzer._logical,
    s.Not: ExpressionAnalyzer._not,
    s.Between: ExpressionAnalyzer._between,
    s.InList: ExpressionAnalyzer._in_list,
    s.InQuery: ExpressionAnalyzer._in_query,
    s.Like: ExpressionAnalyzer._like,
    s.IsNull: ExpressionAnalyzer._is_null,
    s.IsTruth: ExpressionAnalyzer._is_truth,
    s.IsDistinct: ExpressionAnalyzer._is_distinct,
    s.Quantified: ExpressionAnalyzer._quantified,
    s.Exists: ExpressionAnalyzer._exists,
    s.ScalarQuery: ExpressionAnalyzer._scalar,
    s.FunctionCall: ExpressionAnalyzer._call,
    s.Measure: ExpressionAnalyzer.measure,
    s.Cast: ExpressionAnalyzer._cast,
    s.Case: ExpressionAnalyzer._case,
    s.RowConstructor: ExpressionAnalyzer._row,
    s.ArrayConstructor: ExpressionAnalyzer._array,
    s.Subscript: subscript,
    s.AtTimeZone: ExpressionAnalyzer._at_time_zone,
    s.Extract: ExpressionAnalyzer._extract,
    j.JsonLookup: json_lookup,
    j.JsonConstructor: json_constructor,
}
