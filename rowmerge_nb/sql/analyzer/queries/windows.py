"""Analyzes windows and frames."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT
from rowmerge_nb.sql.functions.overloads import is_aggregate
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.tree.formatted import formatted
from rowmerge_nb.sql.tree.statements import Span
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    can_coerce,
    common_type,
    is_exact,
    is_numeric,
    is_orderable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer
    from rowmerge_nb.sql.tree.statements import Identifier

DISTINCT_OVER_WINDOWS: Final = frozenset(
    {"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "arbitrary", "any_value"}
)
"""The aggregates that take DISTINCT over a window; Spark supports none."""

_OF_VALUES: Final = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})
"""The functions with IGNORE NULLS."""
_WITHOUT_FRAME: Final = frozenset(
    {"lag", "lead", "ntile", "rank", "dense_rank", "percent_rank", "cume_dist", "row_number"}
)
_INTERVALS: Final = (INTERVAL_DAY, INTERVAL_YEAR)
_DATED: Final = frozenset({"date", "time", "timestamp", "timestamp with time zone"})
_ORDER: Final = ("PRECEDING", "ROW", "FOLLOWING")
_RANGE: Final = "Window frame of type RANGE PRECEDING or FOLLOWING requires"


def named_windows(analyzer: CallAnalyzer, node: s.Select) -> dict[str, s.Window]:
    windows: dict[str, s.Window] = {}
    for name, window in node.windows:
        key = _key(analyzer, name)
        if key in windows:
            analyzer.context.error(
                "DUPLICATE_WINDOW_NAME",
                f"WINDOW name '{name.text}' specified more than once",
                name.span,
            )
        windows[key] = resolved_window(analyzer, window, windows)
        analyzed_window(analyzer, windows[key])
    return windows


def _key(analyzer: CallAnalyzer, name: Identifier) -> str:
    return name.text if name.span.of(analyzer.context.text).startswith('"') else name.text.upper()


def resolved_window(
    analyzer: CallAnalyzer, window: s.Window, named_windows: Mapping[str, s.Window]
) -> s.Window:
    if window.name is None:
        return window
    error = analyzer.context.error
    base = named_windows.get(_key(analyzer, window.name))
    if base is None:
        error(
            "INVALID_WINDOW_REFERENCE",
            f"Cannot resolve WINDOW name {window.name.text}",
            window.name.span,
        )
    if (
        not (window.partition_by or window.order_by or window.frame)
        and window.span.end == window.name.span.end
    ):
        return base
    if window.partition_by:
        error(
            "INVALID_PARTITION_BY",
            "WINDOW specification with named WINDOW reference cannot specify PARTITION BY",
            window.partition_by[0].error_span,
        )
    if window.order_by and base.order_by:
        error(
            "INVALID_ORDER_BY",
            "Cannot specify ORDER BY if referenced named WINDOW specifies ORDER BY",
            order_span(analyzer, window.order_by),
        )
    if base.frame:
        error(
            "INVALID_WINDOW_REFERENCE",
            "Cannot reference named WINDOW containing frame specification",
            window.name.span,
        )
    return replace(
        window, partition_by=base.partition_by, order_by=window.order_by or base.order_by, name=None
    )


def order_span(analyzer: CallAnalyzer, order_by: Sequence[s.SortItem]) -> Span:
    first, last = order_by[0].span, order_by[-1].span
    start = analyzer.context.text.upper().rindex("ORDER", 0, first.start)
    return Span.within(analyzer.context.text, start, last.end)


def inner_span(analyzer: CallAnalyzer, window: s.Window) -> Span:
    text, span = analyzer.context.text, window.span
    start = text.find("(", span.start, span.end) + 1
    if not start:
        return window.name.span if window.name else span
    start += len(text[start:]) - len(text[start:].lstrip())
    return Span.within(text, start, span.end)


def analyzed_window(
    analyzer: CallAnalyzer, window: s.Window, node: s.FunctionCall | None = None
) -> tuple[tuple[e.Typed, ...], e.Frame | None, tuple[e.Sort, ...]]:
    owner = node or s.FunctionCall(window.span, "", ())
    return analyzer.within(
        "window specification", owner, lambda: _analyzed_window(analyzer, window)
    )


def _analyzed_window(
    analyzer: CallAnalyzer, window: s.Window
) -> tuple[tuple[e.Typed, ...], e.Frame | None, tuple[e.Sort, ...]]:
    partition_by = tuple(analyzer.analyze(part) for part in window.partition_by)
    keys = [analyzer.sort(item) for item in window.order_by]
    for key, item in zip(keys, window.order_by, strict=True):
        if not is_orderable(key.value.type):
            analyzer.context.refuse_number((key.value.type,), item.span)
            analyzer.context.error(
                "TYPE_MISMATCH",
                f"{key.value.type} is not orderable, and therefore cannot be used in window"
                " function ORDER BY",
                item.span,
            )
    frame, order_by = analyzed_frame(analyzer, window, keys)
    return partition_by, frame, order_by


def check_window(analyzer: CallAnalyzer, node: s.FunctionCall, window: s.Window) -> None:
    """Check a function's window: LAG needs an order, RANK takes no frame, SUM no IGNORE NULLS."""
    error = analyzer.context.error
    if node.name in {"lag", "lead"} and not window.order_by:
        assert node.window is not None
        error(
            "MISSING_ORDER_BY",
            f"{node.name} function requires an ORDER BY window clause",
            inner_span(analyzer, node.window),
        )
    if node.name in _WITHOUT_FRAME and window.frame is not None:
        error(
            "INVALID_WINDOW_FRAME",
            f"Cannot specify window frame for {node.name} function",
            window.frame.span,
        )
    if node.nulls is not None and node.name not in _OF_VALUES:
        error(
            "NULL_TREATMENT_NOT_ALLOWED",
            f"Cannot specify null treatment clause for {node.name} function",
            node.error_span,
        )


def check_only_aggregates(analyzer: CallAnalyzer, node: s.FunctionCall) -> None:
    """Refuse DISTINCT and ORDER BY in a window function that is not an aggregate."""
    if is_aggregate(node.name):
        return
    if node.distinct:
        call_text = formatted(node, analyzer.context.text)
        analyzer.context.refuse(
            f"Only aggregation window functions with DISTINCT are supported: {call_text}",
            replace(analyzer.select or node.error_span, about=node.error_span),
        )
    if node.order_by:
        analyzer.context.refuse(
            "Only aggregation window functions with ORDER BY are supported", node.error_span
        )


def analyzed_frame(
    analyzer: CallAnalyzer, window: s.Window, order_by: Sequence[e.Sort]
) -> tuple[e.Frame | None, tuple[e.Sort, ...]]:
    """Return a window's frame, and its keys; for RANGE with an offset, in the type of their sum."""
    keys, frame = tuple(order_by), window.frame
    if frame is None:
        return None, keys
    high = frame.high or s.FrameBound(frame.span, "ROW")
    _check_bounds(analyzer, frame, high)
    bounds = []
    for bound, word in ((frame.low, "start"), (high, "end")):
        offset = None
        if bound.offset is not None:
            offset, keys = _offset(analyzer, window, frame, bound.offset, word, keys)
        bounds.append((bound.side, offset))
    _check_order(analyzer, frame, bounds)
    # GROUPS without numbers means the same as RANGE: a row and its peers.
    counts = any(offset is not None for _, offset in bounds)
    unit = "RANGE" if frame.unit == "GROUPS" and not counts else frame.unit
    return e.Frame(unit, bounds[0], bounds[1]), keys


def _check_order(
    analyzer: CallAnalyzer, frame: s.WindowFrame, bounds: Sequence[tuple[str, e.Typed | None]]
) -> None:
    """Refuse frames that Spark lacks: always empty, or bounded in both days and months."""
    (low_side, low), (high_side, high) = bounds
    node = frame.low.offset
    if low is None or high is None or node is None:
        return
    if low.type in _INTERVALS and high.type in _INTERVALS and low.type != high.type:
        analyzer.refuse(
            "A window frame from an interval of one kind to one of another is not supported by this"
            " engine",
            node,
        )
    if (
        low_side == high_side
        and _number(low) != _number(high)
        and (_number(low) < _number(high)) == (low_side == "PRECEDING")
    ):
        analyzer.refuse(
            "A window frame that ends before it begins is not supported by this engine", node
        )


def _number(offset: e.Typed) -> Decimal:
    while isinstance(offset, e.Apply):
        (offset,) = offset.arguments
    assert isinstance(offset, e.Constant)
    return Decimal(offset.value or 0)


def _check_bounds(analyzer: CallAnalyzer, frame: s.WindowFrame, high: s.FrameBound) -> None:
    low, message = frame.low, ""
    if low.side == "FOLLOWING" and low.offset is None:
        message = "Window frame start cannot be UNBOUNDED FOLLOWING"
    elif high.side == "PRECEDING" and high.offset is None:
        message = "Window frame end cannot be UNBOUNDED PRECEDING"
    elif _ORDER.index(low.side) > _ORDER.index(high.side):
        begin, end = ("CURRENT ROW" if bound.side == "ROW" else bound.side for bound in (low, high))
        message = f"Window frame starting from {begin} cannot end with {end}"
    if message:
        analyzer.context.error("INVALID_WINDOW_FRAME", message, frame.span)


def _offset(
    analyzer: CallAnalyzer,
    window: s.Window,
    frame: s.WindowFrame,
    node: s.Expression,
    word: str,
    keys: tuple[e.Sort, ...],
) -> tuple[e.Typed, tuple[e.Sort, ...]]:
    if frame.unit == "RANGE":
        return _range_offset(analyzer, window, node, keys)
    error = analyzer.context.error
    if frame.unit == "GROUPS" and not keys:
        error(
            "MISSING_ORDER_BY",
            "Window frame of type GROUPS PRECEDING or FOLLOWING requires ORDER BY",
            inner_span(analyzer, window),
        )
    offset = analyzer.analyze(node)
    if not is_exact(offset.type) or (offset.type.base == "decimal" and offset.type.parameters[1]):
        error(
            "TYPE_MISMATCH",
            f"Window frame {frame.unit} {word} value type must be exact numeric type with scale"
            f" 0 (actual {offset.type})",
            node.error_span,
        )
    offset = _constant(analyzer, offset, node)
    return (analyzer.coerce(offset, BIGINT) if frame.unit == "GROUPS" else offset), keys


def _range_offset(
    analyzer: CallAnalyzer, window: s.Window, node: s.Expression, keys: tuple[e.Sort, ...]
) -> tuple[e.Typed, tuple[e.Sort, ...]]:
    error = analyzer.context.error
    if not keys:
        error("MISSING_ORDER_BY", f"{_RANGE} ORDER BY", inner_span(analyzer, window))
    if len(keys) > 1:
        error(
            "INVALID_ORDER_BY",
            f"{_RANGE} single sort item in ORDER BY (actual: {len(keys)})",
            order_span(analyzer, window.order_by),
        )
    (key,) = keys
    key_type = key.value.type
    if not (is_numeric(key_type) or key_type.base in _DATED or key_type in _INTERVALS):
        error(
            "TYPE_MISMATCH",
            f"{_RANGE} that sort item type be numeric, datetime or interval (actual: {key_type})",
            window.order_by[0].value.error_span,
        )
    offset = analyzer.analyze(node)
    common = _sum_type(key_type, offset.type)
    if common is None:
        error(
            "TYPE_MISMATCH",
            f"Window frame RANGE value type ({offset.type}) not compatible with sort item type"
            f" ({key_type})",
            node.error_span,
        )
    if key_type.base == "time" or key_type in _INTERVALS:
        analyzer.refuse(
            f"A frame of RANGE over values of type {key_type} is not supported by this engine", node
        )
    offset = _constant(analyzer, offset, node)
    if is_numeric(key_type):
        offset = analyzer.coerce(offset, common)
    return offset, (replace(key, value=analyzer.coerce(key.value, common)),)


def _sum_type(key: Type, offset: Type) -> Type | None:
    if is_numeric(key):
        return common_type(key, offset) if is_numeric(offset) else None
    if key in _INTERVALS:
        return key if offset == key else None
    if offset not in _INTERVALS or (key.base == "time" and offset == INTERVAL_YEAR):
        return None
    # Spark does not convert a day into milliseconds.
    return (
        replace(key, base="timestamp", parameters=(0,))
        if key.base == "date" and offset == INTERVAL_DAY
        else key
    )


def _constant(analyzer: CallAnalyzer, offset: e.Typed, node: s.Expression) -> e.Typed:
    value: e.Typed = offset
    while (
        isinstance(value, e.Apply)
        and value.name == "cast"
        and can_coerce(value.arguments[0].type, value.type)
    ):
        (value,) = value.arguments
    negative = (
        isinstance(value, e.Apply)
        and value.name == "negate"
        and isinstance(value.arguments[0], e.Constant)
    )
    if negative or (
        isinstance(value, e.Constant) and (value.value is None or value.value.startswith("-"))
    ):
        analyzer.context.error(
            "INVALID_WINDOW_FRAME",
            "Window frame offset value must not be negative or null",
            node.error_span,
        )
    if not isinstance(value, e.Constant):
        analyzer.refuse(
            "The offset of a window's frame that is no constant is not supported by this engine",
            node,
        )
    return offset
