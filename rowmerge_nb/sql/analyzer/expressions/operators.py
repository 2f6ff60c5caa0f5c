"""Analyzes arithmetic, comparisons and predicates."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.spi.types import BIGINT, BOOLEAN, DOUBLE, NUMBER, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer.expressions.comparison_hints import (
    cast_hint,
    comparison_hint,
    list_hint,
    range_hint,
)
from rowmerge_nb.sql.analyzer.expressions.concatenation import concatenated
from rowmerge_nb.sql.analyzer.expressions.conversion_notices import (
    note_date_text,
    note_session_zone,
)
from rowmerge_nb.sql.analyzer.expressions.dataframe_values import first_texts
from rowmerge_nb.sql.analyzer.expressions.date_texts import ISO, date_operands
from rowmerge_nb.sql.analyzer.expressions.in_lists import long_list
from rowmerge_nb.sql.analyzer.expressions.null_literals import (
    note_null_comparison,
    note_null_in_list,
)
from rowmerge_nb.sql.analyzer.rows.constant_columns import constant_of
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.depth import DEEPEST_TREE, too_deep
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MAX_PRECISION,
    arithmetic_type,
    as_decimal,
    can_coerce,
    common_type,
    is_numeric,
    is_orderable,
    is_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer

_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons with exchanged sides."""
_SHORTEST_DECIMAL: Final = Type("decimal", (1, 0))


def unary(analyzer: ExpressionAnalyzer, node: s.Unary) -> e.Typed:
    operand = analyzer.analyze(node.operand)
    fits = is_numeric(operand.type) or operand.type in {INTERVAL_DAY, INTERVAL_YEAR}
    if node.operator == "+":
        if not fits:
            analyzer.context.error(
                "TYPE_MISMATCH",
                f"Unary '+' operator cannot by applied to {operand.type} type",
                node.span,
            )
        return operand
    if not fits and operand.type != UNKNOWN:
        analyzer.context.error("TYPE_MISMATCH", f"Cannot negate {operand.type}", node.span)
    if operand.type == UNKNOWN:
        analyzer.ambiguous(node)
    return e.Apply(operand.type, "negate", (operand,))


def binary(analyzer: ExpressionAnalyzer, node: s.Binary) -> e.Typed:
    left, right = analyzer.analyze(node.left), analyzer.analyze(node.right)
    return (
        _arithmetic(analyzer, node, left, right)
        if node.operator in "+-*/%"
        else _comparison(analyzer, node, left, right)
    )


def operator_chain(analyzer: ExpressionAnalyzer, node: s.Chain) -> e.Typed:
    """Type a long run of operators; each step refers to the value so far by a variable."""
    value = analyzer.analyze(node.first)
    arguments = [value]
    for step in node.steps:
        so_far = e.Variable(value.type, e.SO_FAR)
        operand = analyzer.analyze(step.operand)
        if step.operator == "||":
            value = concatenated(analyzer, step, [so_far, operand])
        else:
            value = _arithmetic(analyzer, step, so_far, operand)
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


def _arithmetic(
    analyzer: ExpressionAnalyzer, node: s.Binary | s.ChainStep, left: e.Typed, right: e.Typed
) -> e.Typed:
    result = arithmetic_type(node.operator, left.type, right.type)
    if result is None:
        _no_operator(analyzer, node, node.operator, left, right)
    if result == UNKNOWN:
        analyzer.ambiguous(node)
    if UNKNOWN in {left.type, right.type}:
        for part, other in ((left, right.type), (right, left.type)):
            if is_numeric(other):
                analyzer.context.note_parameter(
                    part, _SHORTEST_DECIMAL if other.base == "decimal" else other
                )
        return e.Constant(result, None)
    if is_numeric(left.type) and is_numeric(right.type):
        _check_scale(analyzer, node, left.type, right.type)
        left, right = _alike(analyzer, left, right, result)
    elif (
        result == INTERVAL_DAY
        and left.type not in (INTERVAL_DAY, INTERVAL_YEAR)
        and node.operator == "-"
    ):
        left, right = analyzer.comparable(
            (left, right), common_type(left.type, right.type) or left.type
        )
    elif node.operator in "*/":
        left, right = (_factor(analyzer, part, node.operator) for part in (left, right))
    return e.Apply(result, "arithmetic", (left, right), node.operator)


def _check_scale(
    analyzer: ExpressionAnalyzer, node: s.Binary | s.ChainStep, left: Type, right: Type
) -> None:
    if node.operator == "*" and left.base == right.base == "decimal":
        scale = left.parameters[1] + right.parameters[1]
        if scale > MAX_PRECISION:
            analyzer.context.error(
                "INVALID_FUNCTION_ARGUMENT",
                f"DECIMAL scale must be in range [0, precision ({MAX_PRECISION})]: {scale}",
                node.error_span,
            )


def _factor(analyzer: ExpressionAnalyzer, value: e.Typed, operator: str) -> e.Typed:
    if not is_numeric(value.type):
        return value
    return analyzer.coerce(
        value, BIGINT if operator == "*" and can_coerce(value.type, BIGINT) else DOUBLE
    )


def _alike(
    analyzer: ExpressionAnalyzer, left: e.Typed, right: e.Typed, result: Type
) -> tuple[e.Typed, e.Typed]:
    """Coerce operands: decimals keep their precision, other numbers get the result's type."""
    if result.base == "decimal":
        return analyzer.coerce(left, as_decimal(left.type)), analyzer.coerce(
            right, as_decimal(right.type)
        )
    return analyzer.coerce(left, result), analyzer.coerce(right, result)


def _no_operator(
    analyzer: ExpressionAnalyzer,
    node: s.Binary | s.ChainStep,
    operator: str,
    left: e.Typed,
    right: e.Typed,
) -> NoReturn:
    hint = None
    if common_type(left.type, right.type) == NUMBER:
        analyzer.context.refuse_number((NUMBER,), node.error_span)
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
        texts = first_texts(analyzer.context, left if is_left else right, analyzer.scope.fields)
        hint = cast_hint(analyzer.context.text, operand, number, texts)
    if isinstance(node, s.Binary) and operator in {"=", *_TURNED}:
        hint = (
            _date_hint(analyzer, node, ((node.left, left), (node.right, right)))
            or comparison_hint(
                analyzer.context.text, operator, (node.left, node.right), (left.type, right.type)
            )
            or hint
        )
    if operator == "+" and is_text(left.type) and is_text(right.type):
        hint = "Write || to join texts."
    analyzer.context.error(
        "TYPE_MISMATCH",
        f"Cannot apply operator: {left.type} {operator} {right.type}",
        node.error_span,
        hint,
    )


def _date_hint(
    analyzer: ExpressionAnalyzer,
    node: s.Expression,
    operands: Sequence[tuple[s.Expression, e.Typed]],
) -> str | None:
    if not any(value.type.base.startswith(("date", "timestamp")) for _, value in operands):
        return None
    columns = [
        part for part, value in operands if is_text(value.type) and not isinstance(part, s.Literal)
    ]
    dates = date_operands(analyzer.context, operands, analyzer.scope.fields)
    if not columns or dates is None or ISO in dates.layouts:
        return None
    comparison = dates.as_dates(analyzer.context.text, node.span, columns)
    return f"For text such as {dates.example} write {comparison}.{dates.other_pattern}"


def _comparison(
    analyzer: ExpressionAnalyzer, node: s.Binary, left: e.Typed, right: e.Typed
) -> e.Typed:
    note_null_comparison(analyzer.context, node.operator, node.left, node.right, node.span)
    note_session_zone(analyzer.context, ((node.left, left.type), (node.right, right.type)))
    common = common_type(left.type, right.type)
    if common is None:
        # Trino has only =, < and <=.
        _no_operator(
            analyzer,
            node,
            {"<>": "=", ">": "<", ">=": "<="}.get(node.operator, node.operator),
            left,
            right,
        )
    ordered = node.operator not in {"=", "<>"}
    operands = ((node.left, left), (node.right, right))
    note_date_text(analyzer.context, node, operands, analyzer.scope.fields)
    if ordered and not is_orderable(common):
        _no_operator(
            analyzer, node, {">": "<", ">=": "<="}.get(node.operator, node.operator), left, right
        )
    if common.base == "row" and ordered:
        return _row_order(analyzer, node.operator, left, right, common)
    if (
        common.base == "decimal"
        and (comparison := _with_long_literal(analyzer, node.operator, left, right)) is not None
    ):
        return comparison
    return e.Apply(BOOLEAN, node.operator, analyzer.comparable((left, right), common))


def _with_long_literal(
    analyzer: ExpressionAnalyzer, operator: str, left: e.Typed, right: e.Typed
) -> e.Typed | None:
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
        (analyzer.coerce(left, decimal_type), e.Constant(decimal_type, f"{cut:f}")),
    )


def _row_order(
    analyzer: ExpressionAnalyzer, operator: str, left: e.Typed, right: e.Typed, common: Type
) -> e.Typed:
    return e.Apply(BOOLEAN, operator, analyzer.comparable((left, right), common), "row")


def logical(analyzer: ExpressionAnalyzer, node: s.Logical) -> e.Typed:
    terms = [
        analyzer.boolean(term, "Logical expression term must evaluate to a boolean (actual: {})")
        for term in node.terms
    ]
    return e.Apply(BOOLEAN, node.operator.lower(), tuple(terms))


def negation(analyzer: ExpressionAnalyzer, node: s.Not) -> e.Typed:
    operand = analyzer.boolean(
        node.operand, "Value of logical NOT expression must evaluate to a boolean (actual: {})"
    )
    return e.Apply(BOOLEAN, "not", (operand,))


def between_limits(analyzer: ExpressionAnalyzer, node: s.Between) -> e.Typed:
    parts = (node.value, node.low, node.high)
    value, low, high = (analyzer.analyze(part) for part in parts)
    types = (value.type, low.type, high.type)
    note_session_zone(analyzer.context, zip(parts, types, strict=True))
    operands = tuple(zip(parts, (value, low, high), strict=True))
    note_date_text(analyzer.context, node, operands, analyzer.scope.fields)
    common = common_type(value.type, low.type)
    common = common_type(common, high.type) if common else None
    if common is not None:
        analyzer.context.refuse_number((common,), node.error_span)
    if common is None or not is_orderable(common):
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Cannot check if {value.type} is BETWEEN {low.type} and {high.type}",
            node.error_span,
            _date_hint(analyzer, node, operands) or range_hint(analyzer.context.text, node, types),
        )
    value, low, high = analyzer.comparable((value, low, high), common)
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


def in_list(analyzer: ExpressionAnalyzer, node: s.InList) -> e.Typed:
    note_null_in_list(analyzer.context, node)
    list_lookup = long_list(analyzer, node)
    if list_lookup is not None:
        return list_lookup
    nodes = [node.value, *node.items]
    values = [analyzer.analyze(part) for part in nodes]
    operands = tuple(zip(nodes, values, strict=True))
    note_date_text(analyzer.context, node, operands, analyzer.scope.fields)
    hint = _date_hint(analyzer, node, operands) or list_hint(
        analyzer.context.text, nodes, [value.type for value in values]
    )
    parts = analyzer.alike(values, nodes, "IN value and list items", hint)
    return e.Apply(BOOLEAN, "in", analyzer.comparable(parts, parts[0].type), node.negated)


def like(analyzer: ExpressionAnalyzer, node: s.Like) -> e.Typed:
    value, pattern = analyzer.analyze(node.value), analyzer.analyze(node.pattern)
    escape = analyzer.analyze(node.escape) if node.escape else None
    checks = [(value, node.value, "Left side of"), (pattern, node.pattern, "Pattern for")]
    if escape is not None and node.escape is not None:
        checks.append((escape, node.escape, "Escape for"))
    for part, part_node, side in checks:
        if not (
            part.type.base == "varchar"
            or part.type == UNKNOWN
            or (part is value and part.type.base == "char")
        ):
            analyzer.context.error(
                "TYPE_MISMATCH",
                f"{side} LIKE expression must evaluate to a varchar (actual: {part.type})",
                part_node.error_span,
                f"Write CAST({part_node.span.of(analyzer.context.text)} AS varchar).",
            )
        analyzer.context.note_parameter(part, VARCHAR)
    return e.Apply(BOOLEAN, "like", (value, pattern, *((escape,) if escape else ())), node.negated)


def is_null(analyzer: ExpressionAnalyzer, node: s.IsNull) -> e.Typed:
    return e.Apply(BOOLEAN, "is null", (analyzer.analyze(node.value),), node.negated)


def is_truth(analyzer: ExpressionAnalyzer, node: s.IsTruth) -> e.Typed:
    value = analyzer.boolean(
        node.value, "Boolean test value must evaluate to a boolean (actual: {})"
    )
    if node.truth == "UNKNOWN":
        return e.Apply(BOOLEAN, "is null", (value,), node.negated)
    expected = e.Constant(BOOLEAN, node.truth.lower())
    return e.Apply(BOOLEAN, "distinct", (value, expected), not node.negated)


def is_distinct(analyzer: ExpressionAnalyzer, node: s.IsDistinct) -> e.Typed:
    left, right = analyzer.analyze(node.value), analyzer.analyze(node.right)
    note_session_zone(analyzer.context, ((node.value, left.type), (node.right, right.type)))
    common = common_type(left.type, right.type)
    if common is None:
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Cannot check if {left.type} is identical to {right.type}",
            node.error_span,
        )
    return e.Apply(BOOLEAN, "distinct", analyzer.comparable((left, right), common), node.negated)
