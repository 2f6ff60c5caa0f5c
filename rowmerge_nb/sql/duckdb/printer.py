"""Prints typed expressions as DuckDB SQL, for pages within a task; without a known equivalent,
UnprintableError is raised.

DuckDB may evaluate all terms of AND and OR, so a term that may fail is in a CASE behind its guards.
Errors are raised by ``error``, marked as in Spark SQL.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, Type
from rowmerge_nb.sql.duckdb.date_arithmetic import moment_text, shifted
from rowmerge_nb.sql.duckdb.decimals import decimal_quotient, sum_at_scale, widened
from rowmerge_nb.sql.duckdb.duckdb_casts import cast_text, is_total
from rowmerge_nb.sql.duckdb.duckdb_text import (
    UnprintableError,
    duckdb_type,
    failure,
    literal,
    once,
    text_literal,
)
from rowmerge_nb.sql.duckdb.nested import array_text, arrays_joined, row_text, subscript_text
from rowmerge_nb.sql.duckdb.regular_expressions import pattern_text
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MAX_PRECISION,
    RANGES,
    exact_precision,
    exact_scale,
    is_float,
    is_integer,
    is_numeric,
    is_zoned,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa

    from rowmerge_nb.sql.functions.overloads import Overload
    from rowmerge_nb.sql.typed.constant_set import ConstantSet

_INTERVALS: Final = (INTERVAL_DAY, INTERVAL_YEAR)
_COMPARED: Final = frozenset(
    {
        *("boolean", "decimal", "real", "double", "varchar", "char", "uuid", "varbinary"),
        *("date", "time", "timestamp", "timestamp with time zone"),
        *RANGES,
    }
)
"""Types whose values DuckDB compares like Trino (NaN is handled separately)."""
_CONSTANT_ARGUMENTS: Final = {"array_join(array(varchar), varchar)": 1}
"""Arguments that must be non-empty constants for the template to be equivalent."""
_LONGEST: Final = 4_000_000
_MOST_STEPS: Final = 250
"""DuckDB parses 1000 levels of nesting; an operator with its cast and parentheses takes up to
three.
"""
_WIDE: Final = 50
_MARK: Final = re.compile(r"\{(\d|\*|type|fail:[^{}]+)\}")
_ARGUMENT: Final = re.compile(r"\$(\d)")


class PagePrinter:
    """Prints the expressions of one statement over a page's columns. Equal names of long lists are
    equal lists; the first subquery is ``$q0``: a column with a value for each row, or a table with
    the column ``v``.
    """

    def __init__(self, columns: Collection[str] = ()) -> None:
        self.subqueries: list[e.Subquery] = []
        self.lists: dict[str, pa.Array] = {}
        self._prefix = "$q"
        while any(column.lower().startswith(self._prefix) for column in columns):
            self._prefix = f"${self._prefix}"

    def symbol(self, index: int) -> str:
        """Return the name of a subquery's result, unlike all columns.

        >>> PagePrinter().symbol(1), PagePrinter(["id", "$Q1"]).symbol(1)
        ('$q1', '$$q1')
        """
        return f"{self._prefix}{index}"

    def text(self, node: e.Typed, *, condition: bool) -> str:
        """Print a whole expression, which may be a condition; NULL of any type is ``NULL``."""
        if isinstance(node, e.Column):
            return quoted(node.symbol)
        if is_null(node):
            return "NULL"
        return self.condition(node) if condition else self.value(node)

    def condition(self, node: e.Typed) -> str:
        """Print a condition; terms of AND are evaluated in order, up to the first that is not true."""
        if isinstance(node, e.Apply) and node.name == "and":
            *first, last = (self.condition(term) for term in node.arguments)
            left_out = " ".join(f"WHEN ({term}) IS NOT TRUE THEN false" for term in first)
            return self._bounded(f"CASE {left_out} ELSE {last} END")
        return self.value(node)

    def value(self, node: e.Typed) -> str:
        """Print an expression, or raise UnprintableError."""
        return self._bounded(_Printer(self, safe=False).text(node))

    def numbered(self, query: e.Subquery) -> str:
        if query not in self.subqueries:
            self.subqueries.append(query)
        return quoted(self.symbol(self.subqueries.index(query)))

    def lookups(self, node: e.Typed) -> frozenset[str]:
        """Return the names of the subqueries of an expression that are looked up for each row."""
        parts = (
            part
            for part in e.walk(node)
            if isinstance(part, e.Subquery) and (part.outer or part.value is not None)
        )
        return frozenset(
            self.symbol(self.subqueries.index(part)) for part in parts if part in self.subqueries
        )

    def listed(self, constants: ConstantSet) -> str:
        self.lists[constants.name] = constants.whole
        return quoted(constants.name)

    def _bounded(self, text: str) -> str:
        if len(text) > _LONGEST:
            raise UnprintableError("an expression as deep as this one")
        return text


def is_null(tree: e.Typed) -> bool:
    """Return whether an expression is NULL, cast or not.

    >>> is_null(e.Apply(BOOLEAN, "cast", (e.Constant(UNKNOWN, None),)))
    True
    """
    if isinstance(tree, e.Apply) and tree.name == "cast":
        return is_null(tree.arguments[0])
    return isinstance(tree, e.Constant) and tree.value is None


class _Printer:
    def __init__(self, page: PagePrinter, *, safe: bool, so_far: str = "") -> None:
        self.page = page
        self.safe = safe
        self.so_far = so_far

    def text(self, node: e.Typed) -> str:
        if isinstance(node, e.Column):
            if node.outer:
                raise UnprintableError("a correlated subquery")
            return quoted(node.symbol)
        if isinstance(node, e.Constant):
            return literal(node.type, node.value)
        if isinstance(node, e.Subquery):
            return self.subquery(node)
        if isinstance(node, e.Variable):
            return self.so_far if node.name == e.SO_FAR else quoted(node.name)
        if isinstance(node, e.Function) and len(node.parameters) == 1:
            return f"lambda {quoted(node.parameters[0])}: {self.text(node.body)}"
        writer = _WRITERS.get(node.name) if isinstance(node, e.Apply) else None
        if writer is None or not isinstance(node, e.Apply):
            raise UnprintableError(_described(node))
        return writer(self, node)

    def all(self, nodes: Sequence[e.Typed]) -> list[str]:
        return [self.text(node) for node in nodes]

    def failure(self, code: str, *message: str) -> str:
        return "NULL" if self.safe else failure(code, *message)

    def native(self, text: str) -> str:
        """Write an operation that may fail in DuckDB."""
        return f"TRY({text})" if self.safe else text

    # -- numbers

    def arithmetic(self, node: e.Apply) -> str:
        left, right = node.arguments
        if not (is_numeric(left.type) and is_numeric(right.type)):
            return self.moved(node)
        node = e.constant_last(node)
        a, b = self.all(node.arguments)
        operator = str(node.detail)
        if is_float(node.type):
            return f"({a} {operator} {b})"
        if operator in "/%":
            return self.divided(node, operator, a, b)
        if is_integer(node.type):
            return self.native(f"({a} {operator} {b})")
        if exact_scale(operator, left.type, right.type) > node.type.parameters[1]:
            if operator == "*":
                raise UnprintableError(f"{left.type} * {right.type}, which is rounded")
            types = (left.type, right.type)
            return self.native(sum_at_scale((a, b), types, node.type, operator))
        return self.native(
            f"CAST(({widened(a, left.type, right.type, operator)} {operator} {b}) AS"
            f" {duckdb_type(node.type)})"
        )

    def chain(self, node: e.Apply) -> str:
        first, *steps = node.arguments
        if len(steps) > _MOST_STEPS:
            raise UnprintableError(
                f"a run of {len(steps)} operators, of which it takes {_MOST_STEPS}"
            )
        text = self.text(first)
        for step in steps:
            text = _Printer(self.page, safe=self.safe, so_far=text).text(step)
        return text

    def divided(self, node: e.Apply, operator: str, a: str, b: str) -> str:
        kinds = [argument.type for argument in node.arguments]
        zero = self.failure("DIVISION_BY_ZERO", "'Division by zero'")
        if node.type.base == "decimal" and operator == "/":
            return once(lambda x, y: decimal_quotient(x, y, kinds, node.type, zero), a, b)
        if node.type.base == "decimal" and exact_precision("%", *kinds) > MAX_PRECISION:
            raise UnprintableError(f"the remainder of {kinds[0]} and {kinds[1]}")
        type_text = duckdb_type(node.type)
        sign = "//" if operator == "/" else "%"
        divisor = node.arguments[1]
        if (
            isinstance(divisor, e.Constant)
            and divisor.value is not None
            and divisor.value.strip("-0.") not in {"", "1"}
        ):
            return self.native(f"CAST(({a} {sign} {b}) AS {type_text})")

        def write(x: str, y: str) -> str:
            by_zero = f"WHEN {y} = 0 THEN CASE WHEN {x} IS NOT NULL THEN {zero} END"
            # In DuckDB, the remainder of the lowest number by -1 overflows.
            by_one = (
                f" WHEN {y} = -1 THEN {x} - {x}" if sign == "%" and is_integer(node.type) else ""
            )
            return (
                f"CASE {by_zero}{by_one} ELSE"
                f" {self.native(f'CAST(({x} {sign} {y}) AS {type_text})')} END"
            )

        return once(write, a, b)

    def negate(self, node: e.Apply) -> str:
        (text,) = self.all(node.arguments)
        sql_type = node.type
        if sql_type in _INTERVALS:
            raise UnprintableError("an interval that is computed")
        argument = node.arguments[0]
        if not is_integer(sql_type) or (
            isinstance(argument, e.Constant) and (argument.value or "").isdigit()
        ):
            return f"CAST((- {text}) AS {duckdb_type(sql_type)})"
        lowest = f"CAST('-{RANGES[sql_type.base]}' AS {duckdb_type(sql_type)})"
        message = self.failure(
            "NUMERIC_VALUE_OUT_OF_RANGE",
            f"'{sql_type} negation overflow: '",
            f"CAST({lowest} AS VARCHAR)",
        )
        return once(
            lambda x: (
                f"CASE WHEN {x} = {lowest} THEN {message} ELSE CAST((- {x}) AS"
                f" {duckdb_type(sql_type)}) END"
            ),
            text,
        )

    def moved(self, node: e.Apply) -> str:
        left, right = node.arguments
        operator = str(node.detail)
        if operator == "+" and left.type in _INTERVALS:
            left, right = right, left
        if (
            operator in "+-"
            and isinstance(right, e.Constant)
            and right.type in _INTERVALS
            and left.type not in _INTERVALS
        ):
            return shifted(operator, self.text(left), left.type, right, self.failure)
        raise UnprintableError(f"{left.type} {operator} {right.type}")

    # -- truth

    def compare(self, node: e.Apply) -> str:
        sql_type = node.arguments[0].type
        _check_compared(sql_type, node.name)
        left, right = self.all(node.arguments)
        if sql_type == UNKNOWN:
            return "CAST(NULL AS BOOLEAN)"
        if not is_float(sql_type):
            return f"({left} {node.name} {right})"
        operator, result = node.name, "true" if node.name == "<>" else "false"

        def nan_aware(a: str, b: str) -> str:
            """Write a comparison where NaN equals nothing; in DuckDB it equals itself and exceeds
            all numbers.
            """
            nans = [f"(isnan({a}) AND {b} IS NOT NULL)", f"(isnan({b}) AND {a} IS NOT NULL)"]
            return f"CASE WHEN {' OR '.join(nans)} THEN {result} ELSE ({a} {operator} {b}) END"

        return once(nan_aware, left, right)

    def distinct(self, node: e.Apply) -> str:
        _check_compared(node.arguments[0].type, "IS DISTINCT FROM")
        left, right = self.all(node.arguments)
        return f"({left} IS {'NOT ' if node.detail else ''}DISTINCT FROM {right})"

    def logical(self, node: e.Apply) -> str:
        texts = self.all(node.arguments)
        if not any(may_fail(term) for term in node.arguments[1:]):
            return f"({f' {node.name.upper()} '.join(texts)})"
        # If only the last term decides, all of them were computed without an error.
        word = "WHEN NOT {} THEN false" if node.name == "and" else "WHEN {} THEN true"
        decided = " ".join(word.format(text) for text in texts[:-1])
        return f"CASE {decided} ELSE ({f' {node.name.upper()} '.join(texts)}) END"

    def in_list(self, node: e.Apply) -> str:
        value, *items = node.arguments
        _check_compared(value.type, "IN")
        if is_float(value.type) or any(may_fail(item) for item in items):
            terms = tuple(e.Apply(BOOLEAN, "=", (value, item)) for item in items)
            any_equal = self.text(e.Apply(BOOLEAN, "or", terms) if len(terms) > 1 else terms[0])
            return f"(NOT {any_equal})" if node.detail else any_equal
        return (
            f"({self.text(value)} {'NOT ' if node.detail else ''}IN ({', '.join(self.all(items))}))"
        )

    def in_set(self, node: e.Apply) -> str:
        (value_to_find,), (constants, negated) = node.arguments, node.detail
        _check_compared(value_to_find.type, "IN")
        table, value = self.page.listed(constants), self.text(value_to_find)
        result = self.sought(value_to_find, table)
        if is_float(value_to_find.type):
            result = (
                f"CASE WHEN isnan({value}) THEN {'NULL' if constants.has_null else 'false'} ELSE"
                f" {result} END"
            )
        return f"(NOT {result})" if negated else result

    def like(self, node: e.Apply) -> str:
        value, pattern, *escape = node.arguments
        if any(part.type.base not in {"varchar", "unknown"} for part in node.arguments):
            raise UnprintableError("LIKE of char")
        negated = "NOT " if node.detail else ""
        if not escape:
            return f"({self.text(value)} {negated}LIKE {self.text(pattern)})"
        mark = escape[0]
        if (
            not isinstance(mark, e.Constant)
            or not isinstance(pattern, e.Constant)
            or pattern.value is None
            or mark.value is None
        ):
            raise UnprintableError(
                "LIKE with a pattern and an escape character that are no constants"
            )
        text = self.text(value)
        if len(mark.value.encode("utf-16-le")) != 2:
            message = "'Escape string must be a single character'"
        elif re.search(
            f"{re.escape(mark.value)}(?![%_{re.escape(mark.value)}])",
            _without_pairs(pattern.value, mark.value),
        ):
            message = (
                "'Escape character must be followed by ''%'', ''_'' or the escape character itself'"
            )
        else:
            return f"({text} {negated}LIKE {self.text(pattern)} ESCAPE {self.text(mark)})"
        return (
            f"CASE WHEN {text} IS NOT NULL THEN"
            f" {self.failure('INVALID_FUNCTION_ARGUMENT', message)} END"
        )

    def nullif(self, node: e.Apply) -> str:
        value, same = self.all(node.arguments)
        return f"CASE WHEN {same} THEN NULL ELSE {value} END"

    def extreme(self, node: e.Apply) -> str:
        """Write GREATEST or LEAST: NULL if an argument is NULL, and NaN only without numbers."""
        _check_compared(node.type, node.name.upper())
        texts = self.all(node.arguments)

        def write(*values: str) -> str:
            nulls = " OR ".join(f"{value} IS NULL" for value in values)
            result = f"{node.name}({', '.join(values)})"
            if is_float(node.type) and node.name == "greatest" and len(values) > 1:
                numbers = ", ".join(
                    f"CASE WHEN NOT isnan({value}) THEN {value} END" for value in values
                )
                result = f"coalesce(greatest({numbers}), {values[0]})"
            return f"CASE WHEN {nulls} THEN NULL ELSE {result} END"

        return once(write, *texts)

    # -- the rest

    def array(self, node: e.Apply) -> str:
        return array_text(self.all(node.arguments), node.type)

    def row(self, node: e.Apply) -> str:
        return row_text(self.all(node.arguments), node.type)

    def subscript(self, node: e.Apply) -> str:
        container_type = node.arguments[0].type
        if container_type.base == "map":
            _check_compared(container_type.parameters[0], "subscript", floats=False)
        return subscript_text(self.all(node.arguments), container_type, self.failure)

    def field(self, node: e.Apply) -> str:
        return f"struct_extract_at({self.text(node.arguments[0])}, {node.detail + 1})"

    def cast(self, node: e.Apply) -> str:
        (argument,) = node.arguments
        safe = self.safe or node.detail == "try"
        return cast_text(argument, node.type, self.text, safe=safe, storing=node.detail == "store")

    def tried(self, node: e.Apply) -> str:
        return _Printer(self.page, safe=True).text(node.arguments[0])

    def concat(self, node: e.Apply) -> str:
        if node.type.base == "array":
            return arrays_joined(self.all(node.arguments))
        if node.type.base not in {"varchar", "char", "varbinary"}:
            raise UnprintableError(f"a concatenation that gives {node.type}")
        texts = self.all(node.arguments)
        while len(texts) > _WIDE:
            texts = [
                f"({' || '.join(texts[start : start + _WIDE])})"
                for start in range(0, len(texts), _WIDE)
            ]
        return f"({' || '.join(texts)})"

    def function(self, node: e.Apply) -> str:
        template = node.detail.duckdb
        if not template:
            raise UnprintableError(_described(node))
        if template == "{pattern}":
            return once(lambda text: pattern_text(node, text), self.text(node.arguments[0]))
        index = _CONSTANT_ARGUMENTS.get(str(node.detail))
        if index is not None:
            argument = node.arguments[index]
            if not isinstance(argument, e.Constant) or not argument.value:
                raise UnprintableError(
                    f"{node.detail.name} with an argument {index + 1} that is empty or no constant"
                )
        for argument in node.arguments:
            if not isinstance(argument, e.Function):
                duckdb_type(argument.type)
        if _compares_elements(node.detail):
            _check_compared(node.arguments[0].type.parameters[0], node.detail.name, floats=False)

        def fill(*texts: str) -> str:
            sql = self._filled(template, texts, node.type)
            if "{fail:" not in template or len(texts) == 1:
                return sql
            # NULL is returned before any check.
            is_constant = (
                isinstance(part, e.Constant) and part.value is not None for part in node.arguments
            )
            checks = [
                f"{text} IS NOT NULL"
                for text, is_known in zip(texts, is_constant, strict=True)
                if not is_known
            ]
            return f"CASE WHEN {' AND '.join(checks)} THEN {sql} END" if checks else sql

        texts = self.all(node.arguments)
        # A lambda cannot be bound to a parameter.
        return (
            fill(*texts)
            if any(isinstance(part, e.Function) for part in node.arguments)
            else once(fill, *texts)
        )

    def _filled(self, template: str, texts: Sequence[str], sql_type: Type) -> str:
        def filled(match: re.Match[str]) -> str:
            mark = match[1]
            if mark == "type":
                return duckdb_type(sql_type)
            if mark == "*":
                return ", ".join(texts)
            if mark.startswith("fail:"):
                _, code, message = mark.split(":", 2)
                parts = _ARGUMENT.split(message)
                return self.failure(
                    code,
                    *(
                        f"CAST({texts[int(part)]} AS VARCHAR)" if odd % 2 else text_literal(part)
                        for odd, part in enumerate(parts)
                    ),
                )
            return texts[int(mark)]

        return _MARK.sub(filled, template)

    def written(self, node: e.Apply) -> str:
        return moment_text(node, self.all, self.failure)

    def subquery(self, node: e.Subquery) -> str:
        if node.kind == "in" and node.value is not None:
            return self.in_query(node, node.value)
        return self.page.numbered(node)

    def in_query(self, node: e.Subquery, value: e.Typed) -> str:
        """Read the answer that is looked up for each row, unless the value may fail: then it must
        not be computed for every row.
        """
        _check_compared(value.type, "IN")
        if is_float(value.type):
            # Trino's semi join finds NaN in a list with NaN, an index by equal values does not.
            raise UnprintableError("IN a query of floating point numbers")
        if node.outer:
            return self.page.numbered(node)
        in_lambda = any(isinstance(part, e.Variable) for part in e.walk(value))
        if not (in_lambda or may_fail(value) or e.has_subquery(value)) and e.is_deterministic(
            value
        ):
            return self.page.numbered(node)
        return self.sought(value, self.page.numbered(replace(node, type=value.type, value=None)))

    def sought(self, value: e.Typed, table: str) -> str:
        """Look a value up by a join, which computes it for all rows; a value that may fail is NULL
        there, and computed again.
        """
        text = self.text(value)
        if self.safe or not may_fail(value):
            return f"({text} IN (SELECT v FROM {table}))"
        if any(isinstance(part, e.Subquery) and part.kind == "in" for part in e.walk(value)):
            raise UnprintableError("IN for a value that has IN a query and may fail")
        is_in_table = (
            f"({_Printer(self.page, safe=True, so_far=self.so_far).text(value)} IN (SELECT v FROM"
            f" {table}))"
        )
        return (
            f"CASE WHEN {text} IS NULL THEN CASE WHEN (SELECT count(*) FROM {table}) = 0 THEN false"
            f" END ELSE {is_in_table} END"
        )


def may_fail(node: e.Typed) -> bool:
    return any(_fails(part) for part in e.walk(node) if isinstance(part, e.Apply))


def _fails(node: e.Apply) -> bool:
    if node.name == "arithmetic":
        kinds = [checks.type for checks in node.arguments]
        if node.type.base == "decimal" and node.detail in {"+", "-", "*"}:
            return bool(exact_precision(str(node.detail), *kinds) > node.type.parameters[0])
        return not (is_float(node.type) or _has_safe_divisor(node))
    if node.name == "negate":
        return is_integer(node.type)
    if node.name == "cast":
        return node.detail != "try" and not is_total(node.arguments[0].type, node.type)
    if node.name == "function":
        return "{fail" in node.detail.duckdb
    return node.name in {"written", "like", "subscript"} and (
        node.name != "like" or len(node.arguments) > 2
    )


def _has_safe_divisor(node: e.Apply) -> bool:
    if node.detail not in {"/", "%"} or not is_integer(node.type):
        return False
    divisor = node.arguments[1]
    if isinstance(divisor, e.Apply) and divisor.name == "cast":
        [divisor] = divisor.arguments
    return (
        isinstance(divisor, e.Constant)
        and is_integer(divisor.type)
        and divisor.value is not None
        and int(divisor.value) not in {0, -1}
    )


def _compares_elements(function: Overload) -> bool:
    """Return whether a function compares elements or keys, for which the engines may differ."""
    return (
        function.constraints.endswith((":comparable", ":orderable"))
        or str(function) == "element_at(map(K,V), K) K, V"
    )


def _check_compared(sql_type: Type, subject: str, *, floats: bool = True) -> None:
    if (
        (sql_type.base not in _COMPARED and sql_type != UNKNOWN)
        or is_zoned(sql_type)
        or (is_float(sql_type) and not floats)
    ):
        raise UnprintableError(f"{subject} of {sql_type}")


def _without_pairs(pattern: str, mark: str) -> str:
    return pattern.replace(mark + mark, "")


def _described(node: e.Typed) -> str:
    if isinstance(node, e.Apply) and node.name in {"function", "written"}:
        return (
            "the function"
            f" {node.detail.name}({', '.join(str(checks.type) for checks in node.arguments)})"
        )
    if isinstance(node, e.Apply):
        return f"the operation '{node.name}' that gives {node.type}"
    return f"an expression of kind {type(node).__name__}"


_WRITERS: Final[dict[str, Callable[[_Printer, Any], str]]] = {
    "arithmetic": _Printer.arithmetic,
    "chain": _Printer.chain,
    "negate": _Printer.negate,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _Printer.compare),
    "distinct": _Printer.distinct,
    "and": _Printer.logical,
    "or": _Printer.logical,
    "not": lambda printer, node: f"(NOT {printer.text(node.arguments[0])})",
    "is null": lambda printer, node: (
        f"({printer.text(node.arguments[0])} IS {'NOT ' if node.detail else ''}NULL)"
    ),
    "like": _Printer.like,
    "in": _Printer.in_list,
    "in set": _Printer.in_set,
    "case": lambda printer, node: e.case_text(printer.all(node.arguments)),
    "coalesce": lambda printer, node: f"coalesce({', '.join(printer.all(node.arguments))})",
    "concat": _Printer.concat,
    "nullif": _Printer.nullif,
    "greatest": _Printer.extreme,
    "least": _Printer.extreme,
    "array": _Printer.array,
    "row": _Printer.row,
    "field": _Printer.field,
    "subscript": _Printer.subscript,
    "cast": _Printer.cast,
    "try": _Printer.tried,
    "function": _Printer.function,
    "written": _Printer.written,
}
