"""Prints typed expressions as Spark SQL (ANSI mode, session time zone UTC)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import VARCHAR, Type
from rowmerge_nb.sql.spark.arithmetic import arithmetic, negation
from rowmerge_nb.sql.spark.casts.spark_casts import cast, store
from rowmerge_nb.sql.spark.chains import MOST_TRIED, chain_text, unrolled
from rowmerge_nb.sql.spark.comparisons import (
    ELEMENT_SEARCHES,
    compared,
    distinct,
    element_search,
    has_key,
)
from rowmerge_nb.sql.spark.dates.functions import MOMENTS
from rowmerge_nb.sql.spark.extremes import (
    EXTREMES,
    extreme,
    extreme_element,
    greater,
    ordered_list,
    sort_key,
    sorted_array,
)
from rowmerge_nb.sql.spark.function_templates import Template
from rowmerge_nb.sql.spark.joni_patterns import pattern_text, replaced_by_lambda, with_missing
from rowmerge_nb.sql.spark.json.paths import at_path
from rowmerge_nb.sql.spark.json.sql_json import JSON_CALLS
from rowmerge_nb.sql.spark.lookup import looked_up
from rowmerge_nb.sql.spark.maps import as_entries, as_maps
from rowmerge_nb.sql.spark.marks import marked
from rowmerge_nb.sql.spark.printed_constants import constant_text
from rowmerge_nb.sql.spark.text import fail, once
from rowmerge_nb.sql.spark.volatile import (
    bound,
    calls,
    has_call,
    shared_call,
    unused_name,
    with_variable,
)
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.queries import columns_of
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    has_map,
    is_float,
    parts_of,
    spark_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.functions.overloads import Overload

_SHORT: Final = 1_000
"""Operands up to this length are repeated in the message of an overflow; longer ones would let the
text grow exponentially.
"""
_EXTRACTING: Final = frozenset({"regexp_extract", "regexp_extract_all"})


def print_spark(node: e.Typed, *, safe: bool = False) -> str:
    """Print an expression with marks that locate its errors; ``safe`` returns NULL on failure
    (TRY).

    >>> from rowmerge_nb.spi.types import BOOLEAN, INTEGER
    >>> print_spark(e.Apply(BOOLEAN, "=", (e.Column(INTEGER, "a"), e.Constant(INTEGER, "1"))))
    '(`a` = 1)'
    """
    return _Printer(safe=safe, volatile=has_call(node)).text(node)


def print_join_condition(condition: e.Typed, left_side: frozenset[str]) -> str:
    """Print the condition of a join whose left side has the symbols ``left_side``.

    The value before Spark's IN reads columns of one side, so any other is looked for in a list.
    """
    while (
        query := next(filter(partial(_reads_both, left_side), e.walk(condition)), None)
    ) is not None:
        assert isinstance(query, e.Subquery)
        condition = e.replaced(condition, [(query, replace(query, kind=_IN_LIST))])
    return print_spark(condition)


def _reads_both(left_side: frozenset[str], node: e.Typed) -> bool:
    if not (isinstance(node, e.Subquery) and node.kind == "in" and node.value is not None):
        return False
    symbols = e.references(node.value)
    return not (symbols <= left_side or symbols.isdisjoint(left_side))


def sort_keys(keys: tuple[e.Sort, ...]) -> str:
    """Print sort keys; Spark's default for NULL differs from Trino's."""
    return ", ".join(
        f"{sort_key(print_spark(key.value), key.value.type, smallest=key.nulls_first)}"
        f" {'DESC' if key.descending else 'ASC'} NULLS"
        f" {'FIRST' if key.nulls_first else 'LAST'}"
        for key in keys
    )


class _Printer:
    def __init__(
        self,
        *,
        safe: bool,
        volatile: bool,
        unchecked: bool = False,
        so_far: tuple[str, str] = ("", ""),
    ) -> None:
        self.safe = safe
        self.volatile = volatile
        self.unchecked = unchecked
        self.so_far = so_far

    def text(self, node: e.Typed) -> str:
        if isinstance(node, e.Column):
            return backquoted(node.symbol)
        if isinstance(node, e.Constant):
            return constant_text(node.type, node.value)
        text = self.plain(node)
        return text if node.origin is None else marked(text, node.origin)

    def plain(self, node: e.Typed) -> str:
        if isinstance(node, e.Variable):
            return self.so_far[self.unchecked] if node.name == e.SO_FAR else node.name
        if isinstance(node, e.Function):
            names = (
                node.parameters[0]
                if len(node.parameters) == 1
                else f"({', '.join(node.parameters)})"
            )
            return f"{names} -> {self.text(node.body)}"
        if isinstance(node, e.Subquery):
            return self._subquery(node)
        if isinstance(node, e.Aggregate):
            return self._aggregate(node)
        if isinstance(node, e.Windowed):
            return self._windowed(node)
        assert isinstance(node, e.Apply)
        writer = _WRITERS.get(node.name)
        assert writer is not None, node.name
        return self._evaluated_once(writer, node) if self.volatile else writer(self, node)

    def _evaluated_once(self, writer: Callable[[_Printer, e.Apply], str], node: e.Apply) -> str:
        call = shared_call(node)
        if call is not None:
            value = self.text(call)
            name = unused_name([value, writer(self, node)])
            changed = with_variable(node, call, e.Variable(call.type, name))
            assert isinstance(changed, e.Apply)
            return bound(name, value, self._evaluated_once(writer, changed))
        text = writer(self, node)
        texts = self.all(node.arguments)
        # Spark allows no subquery within a function that takes a lambda.
        if calls(text) <= sum(map(calls, texts)) or "(SELECT " in text:
            return text
        names: dict[int, str] = {}
        arguments = list(node.arguments)
        for index, (argument, argument_text) in enumerate(zip(node.arguments, texts, strict=True)):
            if isinstance(argument, e.Column | e.Constant | e.Function) or (
                isinstance(argument, e.Variable) and not calls(argument_text)
            ):
                continue
            names[index] = unused_name([text, *names.values()])
            arguments[index] = e.Variable(argument.type, names[index])
        if not any(calls(texts[index]) for index in names):
            return text
        body = writer(self, replace(node, arguments=tuple(arguments)))
        for index, name in reversed(names.items()):
            body = bound(name, texts[index], body)
        return body

    def all(self, nodes: tuple[e.Typed, ...]) -> list[str]:
        return [self.text(node) for node in nodes]

    def failure(self, code: str, *message: str) -> str:
        return "NULL" if self.safe else fail(code, *message)

    # -- operators

    def raw(self, nodes: tuple[e.Typed, ...], texts: list[str]) -> list[str] | None:
        """Return operands without checks, computed before; None for long ones and subqueries, which
        messages do not repeat.
        """
        if (
            self.unchecked
            or self.safe
            or any(len(text) > _SHORT or "(SELECT " in text for text in texts)
        ):
            return None
        return _Printer(safe=False, volatile=self.volatile, unchecked=True, so_far=self.so_far).all(
            nodes
        )

    def chain(self, node: e.Apply) -> str:
        def write(part: e.Typed, so_far: str, raw_so_far: str) -> tuple[str, str]:
            now = (so_far, raw_so_far)
            checked = _Printer(
                safe=self.safe, volatile=self.volatile, unchecked=self.unchecked, so_far=now
            )
            text = checked.text(part)
            raw = checked.raw((part,), [text])
            return text, raw[0] if raw else text

        return chain_text(node, write, is_tried=self.safe)

    def arithmetic(self, node: e.Apply) -> str:
        node = e.constant_last(node)
        if self.safe and not isinstance(node.arguments[0], e.Variable):
            chain = unrolled(node)
            if len(chain.arguments) > MOST_TRIED:
                return self.chain(chain)
        texts = self.all(node.arguments)
        return arithmetic(
            node, texts, self.raw(node.arguments, texts), self.failure, safe=self.safe
        )

    def negate(self, node: e.Apply) -> str:
        texts = self.all(node.arguments)
        raw = self.raw(node.arguments, texts)
        return negation(node, texts[0], raw[0] if raw else None, self.failure, safe=self.safe)

    def compare(self, node: e.Apply) -> str:
        operand_type = node.arguments[0].type
        return once(
            lambda a, b: compared(node.name, a, b, operand_type),
            *self.all(node.arguments),
        )

    def distinct(self, node: e.Apply) -> str:
        left, right = self.all(node.arguments)
        return distinct(left, right, node.arguments[0].type, negated=bool(node.detail))

    def like(self, node: e.Apply) -> str:
        value, pattern, *escape = self.all(node.arguments)
        negated = "NOT " if node.detail else ""
        if not escape:
            return f"({value} {negated}LIKE {_plain_pattern(node.arguments[1], pattern)})"
        dangling = self.failure(
            "INVALID_FUNCTION_ARGUMENT",
            "'Escape character must be followed by \\'%\\', \\'_\\' or the escape character"
            " itself'",
        )
        long = self.failure(
            "INVALID_FUNCTION_ARGUMENT", "'Escape string must be a single character'"
        )

        def write(text: str, mark: str) -> str:
            without_escapes = (
                f"replace(replace(replace({text}, concat({mark}, {mark}), ''), concat({mark}, '%'),"
                f" ''), concat({mark}, '_'), '')"
            )
            return (
                f"CASE WHEN char_length({mark}) <> 1 OR octet_length({mark}) > 3 THEN {long} WHEN"
                f" instr({without_escapes}, {mark}) > 0 THEN {dangling} ELSE"
                f" {_escaped_pattern(text, mark)} END"
            )

        return f"({value} {negated}LIKE {once(write, pattern, escape[0])})"

    def in_list(self, node: e.Apply) -> str:
        value, *items = self.all(node.arguments)
        value_type = node.arguments[0].type
        if is_float(value_type) or value_type.base in {"array", "map", "row"}:
            result = f"({' OR '.join(compared('=', value, item, value_type) for item in items)})"
            return f"(NOT {result})" if node.detail else result
        return f"({value} {'NOT ' if node.detail else ''}IN ({', '.join(items)}))"

    def in_set(self, node: e.Apply) -> str:
        constants, negated = node.detail
        result = looked_up(self.text(node.arguments[0]), constants)
        return f"(NOT {result})" if negated else result

    def row(self, node: e.Apply) -> str:
        names = [name or f"field{i}" for i, name in enumerate(node.type.fields)]
        pairs = zip(names, self.all(node.arguments), strict=True)
        return f"named_struct({', '.join(f'{e.text_literal(name)}, {value}' for name, value in pairs)})"

    def field(self, node: e.Apply) -> str:
        (base,) = self.all(node.arguments)
        row_type = node.arguments[0].type
        return f"{base}.{backquoted(row_type.fields[node.detail] or f'field{node.detail}')}"

    def subscript(self, node: e.Apply) -> str:
        base, index = self.all(node.arguments)
        if node.arguments[0].type.base == "map":
            key_type = node.arguments[1].type
            key_text = (
                ()
                if key_type.base in {"array", "map", "row", "varbinary"}
                else ("': '", cast(index, key_type, VARCHAR))
            )
            missing = self.failure(
                "INVALID_FUNCTION_ARGUMENT", "'Key not present in map'", *key_text
            )
            contains = has_key(base, index, key_type)
            return (
                f"CASE WHEN {base} IS NULL OR {index} IS NULL THEN NULL WHEN {contains} THEN"
                f" try_element_at({base}, {index}) ELSE {missing} END"
            )
        zero = self.failure("INVALID_FUNCTION_ARGUMENT", "'SQL array indices start at 1'")
        negative = self.failure(
            "INVALID_FUNCTION_ARGUMENT",
            "'Array subscript is negative: '",
            f"CAST({index} AS STRING)",
        )
        beyond = self.failure(
            "INVALID_FUNCTION_ARGUMENT",
            "'Array subscript must be less than or equal to array length: '",
            f"CAST({index} AS STRING)",
            "' > '",
            f"CAST(size({base}) AS STRING)",
        )
        return (
            f"CASE WHEN {base} IS NULL OR {index} IS NULL THEN NULL WHEN {index} = 0 THEN {zero}"
            f" WHEN {index} < 0 THEN {negative} WHEN {index} > size({base}) THEN {beyond} ELSE"
            f" try_element_at({base}, CAST({index} AS INT)) END"
        )

    def cast(self, node: e.Apply) -> str:
        (argument,) = node.arguments
        text = self.text(argument)
        if node.detail == "store":
            return store(text, argument.type, node.type)
        return cast(text, argument.type, node.type, safe=self.safe or node.detail == "try")

    def tried(self, node: e.Apply) -> str:
        return print_spark(node.arguments[0], safe=True)

    def function(self, node: e.Apply) -> str:
        overload: Overload = node.detail
        texts = self.all(node.arguments)
        if overload.name.startswith("regexp_"):
            pattern = node.arguments[1]
            texts[1] = pattern_text(pattern, texts[1], safe=self.safe)
            if isinstance(node.arguments[-1], e.Function):
                assert isinstance(pattern, e.Constant)
                if pattern.value is None:
                    return texts[1]
                return replaced_by_lambda(pattern.value, texts)
        if (
            overload.name == "array_sort"
            and len(texts) == 1
            and node.type.parameters[0].base in {"array", "row"}
        ):
            return once(lambda text: sorted_array(text, node.type.parameters[0]), texts[0])
        if overload.name in {"array_max", "array_min"} and node.type.base in {"array", "row"}:
            return once(lambda text: extreme_element(overload.name, text, node.type), *texts)
        if overload.name in _SET_FUNCTIONS and has_map(node.arguments[0].type):
            entries = [
                as_entries(text, argument.type)
                for text, argument in zip(texts, node.arguments, strict=True)
            ]
            return as_maps(
                once(lambda *arrays: self._fill(overload.spark, list(arrays), node.type), *entries),
                node.type,
            )
        if overload.name in ELEMENT_SEARCHES and node.arguments[1].type.base in {
            "array",
            "map",
            "row",
        }:
            element_type = node.arguments[1].type
            return once(
                lambda array, element: element_search(
                    overload.name, array, element, element_type, self.failure
                ),
                *texts,
            )
        if overload.name == "element_at" and any(map(is_float, parts_of(node.arguments[1].type))):
            key_type = node.arguments[1].type
            return once(
                lambda base, key: (
                    f"IF({has_key(base, key, key_type)}, try_element_at({base}, {key}), NULL)"
                ),
                *texts,
            )
        if any(isinstance(argument, e.Function) for argument in node.arguments):
            return self._fill(overload.spark, texts, node.type)
        template = _null_first(overload, node.arguments)
        text = once(lambda *values: self._fill(template, list(values), node.type), *texts)
        return (
            with_missing(node, text) if overload.name in _EXTRACTING and len(texts) == 3 else text
        )

    def written(self, node: e.Apply) -> str:
        write = partial(_WRITTEN[node.detail.name], node)
        return once(lambda *texts: write(self.failure, *texts), *self.all(node.arguments))

    def _fill(
        self, template: str, texts: list[str], sql_type: Type, rows: str = "", distinct: str = ""
    ) -> str:
        return Template(texts, sql_type, self.failure, self.safe, rows, distinct).fill(template)

    # -- queries' parts

    def _subquery(self, node: e.Subquery) -> str:
        from rowmerge_nb.sql.spark.query_printer import subquery_text

        text = subquery_text(node)
        if node.kind == "exists":
            return f"EXISTS ({text})"
        if node.value is not None:
            write = _in_list if node.kind == _IN_LIST else _in_query
            return write(self.text(e.as_entries(node.value)), text, columns_of(node.query)[0])
        return f"({text})"

    def _aggregate(self, node: e.Aggregate, over: str = "") -> str:
        from rowmerge_nb.sql.functions.signatures import resolve

        resolved = resolve(node.name, [argument.type for argument in node.arguments])
        assert resolved is not None
        rows = (f" FILTER (WHERE {self.text(node.filter)})" if node.filter else "") + over
        texts = self.all(node.arguments)
        compares_values = (
            node.distinct and node.name not in _DUPLICATES_IGNORED
        ) or node.name == "approx_distinct"
        by_entries = compares_values and any(has_map(argument.type) for argument in node.arguments)
        if by_entries:
            texts = [
                as_entries(text, argument.type)
                for text, argument in zip(texts, node.arguments, strict=True)
            ]
        if over and (node.distinct or node.name == "approx_distinct") and node.name in _OVER_SETS:
            return _over_set(node, texts[0], over)
        distinct = (
            "DISTINCT "
            if node.distinct and not over and node.name not in _DUPLICATES_IGNORED
            else ""
        )
        template = resolved.overload.spark
        if node.order_by:
            template = ordered_list(
                template,
                [
                    (
                        sort_key(self.text(key.value), key.value.type, smallest=key.nulls_first),
                        key.descending,
                        key.nulls_first,
                    )
                    for key in node.order_by
                ],
            )
        value = self._fill(template, texts, node.type, rows, distinct)
        if node.name in EXTREMES:
            value = extreme(
                node.name,
                texts,
                node.arguments[node.name.endswith("_by")].type,
                value,
                rows,
                self.failure,
            )
        value = as_maps(value, node.type) if by_entries else value
        return f"CAST({value} AS {spark_type(node.type)})" if node.type.base == "decimal" else value

    def _windowed(self, node: e.Windowed) -> str:
        parts = []
        if node.partition_by:
            parts.append(
                f"PARTITION BY {', '.join(self.all(tuple(map(e.as_entries, node.partition_by))))}"
            )
        partition = f" OVER ({' '.join(parts)})"
        if node.order_by:
            parts.append(f"ORDER BY {sort_keys(node.order_by)}")
        elif isinstance(node.function, e.Apply) or node.frame:
            # Spark requires an order, Trino does not.
            parts.append("ORDER BY NULL")
        if node.frame:
            parts.append(self._frame(node.frame))
        over = f"{' IGNORE NULLS' if node.ignore_nulls else ''} OVER ({' '.join(parts)})"
        if isinstance(node.function, e.Aggregate):
            return self._aggregate(node.function, over)
        assert isinstance(node.function, e.Apply)
        overload = node.function.detail
        template = overload.spark.replace("{partition}", partition)
        if overload.name in _RANKING:
            # They cover the whole partition, whatever the frame is.
            over = over.replace(f" {parts[-1]})", ")") if node.frame else over
        return self._fill(template, self.all(node.function.arguments), node.type, over)

    def _frame(self, frame: e.Frame) -> str:
        low, high = (self._bound(*limit) for limit in (frame.low, frame.high))
        return f"{frame.unit} BETWEEN {low} AND {high}"

    def _bound(self, side: str, offset: e.Typed | None) -> str:
        if side == "ROW":
            return "CURRENT ROW"
        distance = "UNBOUNDED" if offset is None else self.text(offset)
        if isinstance(offset, e.Constant) and offset.type in _INTERVAL_UNITS:
            # Spark requires a literal.
            distance = f"INTERVAL '{offset.value}' {_INTERVAL_UNITS[offset.type]}"
        return f"{distance} {side}"


def _in_query(value: str, query: str, column: e.Column) -> str:
    """Write IN over a query, with tests for NULL: Spark's IN is false instead of NULL outside of
    WHERE.
    """
    unknown = f"{value} IS NULL AND EXISTS ({query})"
    holes = f"EXISTS (SELECT 1 FROM ({query}) WHERE {backquoted(column.symbol)} IS NULL)"
    return (
        f"CASE WHEN {value} IN ({query}) THEN true WHEN ({unknown}) OR {holes} THEN NULL ELSE"
        " false END"
    )


_IN_LIST: Final = "in list"
"""The kind of a subquery of IN whose values are collected."""


def _in_list(value: str, query: str, column: e.Column) -> str:
    """Write IN over a list of the query's values: false for none, else NULL beside a NULL."""
    name = backquoted(column.symbol)
    values = f"(SELECT collect_set({name}) FROM ({query}))"
    is_empty = f"(SELECT count(*) = 0 FROM ({query}))"
    has_null = f"(SELECT count(*) > count({name}) FROM ({query}))"
    return (
        f"CASE WHEN {is_empty} THEN false WHEN array_contains({values}, {value}) THEN true WHEN"
        f" {value} IS NULL OR {has_null} THEN NULL ELSE false END"
    )


_DUPLICATES_IGNORED: Final = frozenset({"any_value", "arbitrary", "map_agg", "map_union"})
"""Aggregates that ignore duplicates and can return maps."""
_SET_FUNCTIONS: Final = frozenset(
    {
        "array_distinct",
        "array_union",
        "array_intersect",
        "array_except",
        "arrays_overlap",
        "contains_sequence",
    }
)
"""Functions that compare elements of arrays."""

_TAKING_NULL: Final = frozenset({"repeat"})
"""Functions that may fail, but accept NULL."""


def _null_first(overload: Overload, arguments: tuple[e.Typed, ...]) -> str:
    """Return a template that tests for NULL before it can refuse other arguments."""
    open_ = [
        i
        for i, value in enumerate(arguments)
        if not (isinstance(value, e.Constant) and value.value is not None)
    ]
    if (
        "{fail:" not in overload.spark
        or len(arguments) < 2
        or not open_
        or overload.name in _TAKING_NULL
    ):
        return overload.spark
    return f"IF({' OR '.join(f'{{{index}}} IS NULL' for index in open_)}, NULL, {overload.spark})"


_OVER_SETS: Final = frozenset({"count", "sum", "avg", "approx_distinct"})


def _over_set(node: e.Aggregate, text: str, over: str) -> str:
    """Write COUNT, SUM or AVG with DISTINCT over a window by a set, since Spark lacks it."""
    values = f"collect_set({text}){over}"
    if node.name in {"count", "approx_distinct"}:
        return f"CAST(size({values}) AS BIGINT)"
    type_text = "DOUBLE"
    if node.type.base == "decimal":
        type_text = f"DECIMAL(38,{node.type.parameters[1]})"
    elif node.name == "sum" and node.type.base != "real":
        type_text = spark_type(node.type)
    total = (
        f"reduce({values}, CAST(NULL AS {type_text}), (total, v) -> CAST(coalesce(total, 0) + v AS"
        f" {type_text}))"
    )
    if node.name == "avg":
        total = f"({total} / nullif(size({values}), 0))"
    return f"CAST({total} AS {spark_type(node.type)})"


_INTERVAL_UNITS: Final = {INTERVAL_DAY: "SECOND", INTERVAL_YEAR: "MONTH"}
_RANKING: Final = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
)
_LONG_RUN: Final = 10


def _plain_pattern(node: e.Typed, text: str) -> str:
    if isinstance(node, e.Constant) and node.value is not None:
        return e.text_literal(node.value.replace("\\", "\\\\"))
    return f"replace({text}, '\\\\', '\\\\\\\\')"


def _escaped_pattern(pattern: str, mark: str) -> str:
    private = "'\ue0de'"
    doubled = f"IF({mark} = '\\\\', {pattern}, replace({pattern}, '\\\\', '\\\\\\\\'))"
    marked = f"replace({doubled}, concat({mark}, {mark}), {private})"
    return (
        f"replace(replace({marked}, {mark}, '\\\\'), {private}, IF({mark} = '\\\\', '\\\\\\\\',"
        f" {mark}))"
    )


def _logical(printer: _Printer, node: e.Apply) -> str:
    """Write AND or OR; a long run of equalities of one column becomes a list for lookup."""
    texts: list[str] = []
    for column, run in groupby(node.arguments, lambda term: _listed_column(node.name, term)):
        terms = tuple(run)
        if column is None or len(terms) < _LONG_RUN:
            texts += printer.all(terms)
            continue
        values = ", ".join(
            printer.text(side) for term in terms for side in e.children(term) if side != column
        )
        texts.append(
            f"({printer.text(column)} {'IN' if node.name == 'or' else 'NOT IN'} ({values}))"
        )
    return texts[0] if len(texts) == 1 else f"({f' {node.name.upper()} '.join(texts)})"


def _listed_column(logical: str, term: e.Typed) -> e.Column | None:
    if not (isinstance(term, e.Apply) and term.name == ("=" if logical == "or" else "<>")):
        return None
    left, right = term.arguments
    if isinstance(right, e.Column):
        left, right = right, left
    # Floats and nested values have their own comparisons.
    plain = not is_float(left.type) and left.type.base not in {"array", "map", "row"}
    if (
        isinstance(left, e.Column)
        and isinstance(right, e.Constant)
        and right.value is not None
        and plain
    ):
        return left
    return None


def _extreme(printer: _Printer, node: e.Apply) -> str:
    """Write GREATEST or LEAST: NULL if an argument is NULL, and NaN only without numbers."""
    texts = printer.all(node.arguments)
    if len(texts) == 1:
        return texts[0]
    nulls = " OR ".join(f"{text} IS NULL" for text in texts)
    value = f"{node.name}({', '.join(texts)})"
    if node.type.base in {"array", "row"}:

        def better(left: str, right: str) -> str:
            return once(lambda a, b: greater(node.name, a, b, node.type), left, right)

        value = reduce(better, texts)
    if is_float(node.type) and node.name == "greatest" and len(texts) > 1:
        numbers = ", ".join(
            f"nullif({text}, CAST('NaN' AS {spark_type(node.type)}))" for text in texts
        )
        value = f"coalesce({node.name}({numbers}), {texts[0]})"
    return f"IF({nulls}, NULL, {value})"


def _grouping(printer: _Printer, node: e.Apply) -> str:
    bits = [f"grouping({text})" for text in printer.all(node.arguments)]
    return (
        f"CAST({' + '.join(f'{bit} * {2**position}' for position, bit in enumerate(reversed(bits)))}"
        " AS INT)"
    )


def _json_path(printer: _Printer, node: e.Apply) -> str:
    name, tokens = node.detail
    return at_path(name, printer.text(node.arguments[0]), tokens)


def _renamed(printer: _Printer, node: e.Apply) -> str:
    return f"CAST({printer.text(node.arguments[0])} AS {spark_type(node.type)})"


def _named(name: str) -> Callable[[_Printer, e.Apply], str]:
    return lambda printer, node: f"{name}({', '.join(printer.all(node.arguments))})"


_WRITTEN: Final = {**MOMENTS, **JSON_CALLS}

_WRITERS: Final[dict[str, Callable[[_Printer, e.Apply], str]]] = {
    "arithmetic": _Printer.arithmetic,
    "chain": _Printer.chain,
    "negate": _Printer.negate,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _Printer.compare),
    "distinct": _Printer.distinct,
    "and": _logical,
    "or": _logical,
    "not": lambda printer, node: f"(NOT {printer.text(node.arguments[0])})",
    "is null": lambda printer, node: (
        f"({printer.text(node.arguments[0])} IS {'NOT ' if node.detail else ''}NULL)"
    ),
    "like": _Printer.like,
    "in": _Printer.in_list,
    "in set": _Printer.in_set,
    "case": lambda printer, node: e.case_text(printer.all(node.arguments)),
    "coalesce": _named("coalesce"),
    "concat": _named("concat"),
    "fail": lambda printer, node: printer.failure(node.detail[0], e.text_literal(node.detail[1])),
    "renamed": _renamed,
    "as entries": lambda printer, node: as_entries(
        printer.text(node.arguments[0]), node.arguments[0].type
    ),
    "as maps": lambda printer, node: as_maps(printer.text(node.arguments[0]), node.type),
    "array": _named("array"),
    "nullif": lambda printer, node: (
        f"CASE WHEN {printer.text(node.arguments[1])} THEN NULL ELSE"
        f" {printer.text(node.arguments[0])} END"
    ),
    "grouping": _grouping,
    "greatest": _extreme,
    "least": _extreme,
    "row": _Printer.row,
    "field": _Printer.field,
    "subscript": _Printer.subscript,
    "cast": _Printer.cast,
    "try": _Printer.tried,
    "function": _Printer.function,
    "written": _Printer.written,
    "json path": _json_path,
}
