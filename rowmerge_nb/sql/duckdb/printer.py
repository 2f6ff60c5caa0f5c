"""Prints typed expressions as DuckDB SQL that has Trino's meaning, for pages that are filtered and projected within a task.

Only what is known to mean the same is printed. All else raises `UnprintableError`: a statement is refused rather than answered differently.
Two habits of DuckDB are worked around everywhere: AND and OR look at all their terms, so that a term which may fail stands in a CASE
behind those that guard it; and errors of ours are raised by its function ``error``, marked as they are for Spark.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, Type
from rowmerge_nb.sql.duckdb.date_arithmetic import moment_text, shifted
from rowmerge_nb.sql.duckdb.decimals import decimal_quotient, widened
from rowmerge_nb.sql.duckdb.duckdb_casts import cast_text, is_total
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, duckdb_type, failure, literal, once, text_literal
from rowmerge_nb.sql.duckdb.nested import array_text, arrays_joined, row_text, subscript_text
from rowmerge_nb.sql.duckdb.regular_expressions import pattern_text
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MAX_PRECISION,
    exact_precision,
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
_LOWEST: Final = {"tinyint": 2**7, "smallint": 2**15, "integer": 2**31, "bigint": 2**63}
_COMPARED: Final = frozenset(
    {
        *("boolean", "decimal", "real", "double", "varchar", "char", "uuid", "varbinary"),
        *("date", "time", "timestamp", "timestamp with time zone"),
        *_LOWEST,
    }
)
"""Types whose values DuckDB compares as Trino does (numbers with a NaN are seen to)."""
_CONSTANT_ARGUMENTS: Final = {"array_join(array(varchar), varchar)": 1}
"""The argument that must be a constant and not empty, for the template to have Trino's meaning."""
_LONGEST: Final = 4_000_000
_MOST_STEPS: Final = 250
"""DuckDB reads 1000 levels of nesting, of which an operator with its cast and its parentheses is up to three."""
_WIDE: Final = 50
_MARK: Final = re.compile(r"\{(\d|\*|type|fail:[^{}]+)\}")
_ARGUMENT: Final = re.compile(r"\$(\d)")


class PagePrinter:
    """Prints the expressions of one statement.

    Args:
        columns: the names of the page's columns.

    Attributes:
        subqueries: the subqueries of the expressions, each once. In the text the first one is ``$q0``: a column with a value for each row,
            or a table with the column ``v`` for a list.
        lists: the long lists of constants that the expressions look values up in, by the names of the tables, with the column ``v``, that they
            are in the text; equal names are equal lists.
    """

    def __init__(self, columns: Collection[str] = ()) -> None:
        self.subqueries: list[e.Subquery] = []
        self.lists: dict[str, pa.Array] = {}
        self._prefix = "$q"
        while any(column.lower().startswith(self._prefix) for column in columns):
            self._prefix = f"${self._prefix}"

    def symbol(self, index: int) -> str:
        """Return the name of a query's answer, which no column of the page has.

        >>> PagePrinter().symbol(1), PagePrinter(["id", "$Q1"]).symbol(1)
        ('$q1', '$$q1')
        """
        return f"{self._prefix}{index}"

    def text(self, node: e.Typed, *, condition: bool) -> str:
        """Print a whole expression: a column as its name and NULL of whatever type as ``NULL``, for which there is nothing to compute.

        Args:
            node: the expression.
            condition: it is to keep rows.

        Raises:
            UnprintableError: DuckDB has no form of it that is known to mean the same.
        """
        if isinstance(node, e.Column):
            return quoted(node.symbol)
        if is_null(node):
            return "NULL"
        return self.condition(node) if condition else self.value(node)

    def condition(self, node: e.Typed) -> str:
        """Print the condition that keeps rows; the terms of AND are looked at in their order, and only while all before are true.

        Raises:
            UnprintableError: DuckDB has no form of it that is known to mean the same.
        """
        if isinstance(node, e.Apply) and node.name == "and":
            *first, last = (self.condition(term) for term in node.arguments)
            left_out = " ".join(f"WHEN ({term}) IS NOT TRUE THEN false" for term in first)
            return self._bounded(f"CASE {left_out} ELSE {last} END")
        return self.value(node)

    def value(self, node: e.Typed) -> str:
        """Print an expression.

        Raises:
            UnprintableError: DuckDB has no form of it that is known to mean the same.

        >>> from rowmerge_nb.spi.types import INTEGER
        >>> PagePrinter().value(e.Apply(BOOLEAN, "=", (e.Column(INTEGER, "a"), e.Constant(INTEGER, "1"))))
        '("a" = CAST(1 AS INTEGER))'
        """
        return self._bounded(_Printer(self, safe=False).text(node))

    def numbered(self, query: e.Subquery) -> str:
        """Return the name under which texts speak of a query."""
        if query not in self.subqueries:
            self.subqueries.append(query)
        return quoted(self.symbol(self.subqueries.index(query)))

    def lookups(self, node: e.Typed) -> frozenset[str]:
        """Return the names of the subqueries of an expression that are looked up for each row."""
        asked = (part for part in e.walk(node) if isinstance(part, e.Subquery) and (part.outer or part.value is not None))
        return frozenset(self.symbol(self.subqueries.index(part)) for part in asked if part in self.subqueries)

    def listed(self, known: ConstantSet) -> str:
        """Return the name under which texts speak of a list."""
        self.lists[known.name] = known.whole
        return quoted(known.name)

    def _bounded(self, text: str) -> str:
        if len(text) > _LONGEST:
            raise UnprintableError("an expression as deep as this one")
        return text


def is_null(tree: e.Typed) -> bool:
    """Return whether an expression is NULL as it stands; of whatever type, since nothing is computed.

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
        """Write what DuckDB itself may refuse to compute."""
        return f"TRY({text})" if self.safe else text

    # -- numbers --------------------------------------------------------------------------------------------------

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
        if operator == "*" and left.type.parameters[1] + right.type.parameters[1] > node.type.parameters[1]:
            raise UnprintableError(f"a product of {left.type} and {right.type}")
        return self.native(f"CAST(({widened(a, left.type, right.type, operator)} {operator} {b}) AS {duckdb_type(node.type)})")

    def chain(self, node: e.Apply) -> str:
        first, *steps = node.arguments
        if len(steps) > _MOST_STEPS:
            raise UnprintableError(f"a run of {len(steps)} operators, of which it takes {_MOST_STEPS}")
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
        kind = duckdb_type(node.type)
        sign = "//" if operator == "/" else "%"
        divisor = node.arguments[1]
        if isinstance(divisor, e.Constant) and divisor.value is not None and divisor.value.strip("-0.") not in {"", "1"}:
            return self.native(f"CAST(({a} {sign} {b}) AS {kind})")

        def write(x: str, y: str) -> str:
            by_zero = f"WHEN {y} = 0 THEN CASE WHEN {x} IS NOT NULL THEN {zero} END"
            # DuckDB calls the remainder of the lowest number by -1 an overflow.
            by_one = f" WHEN {y} = -1 THEN {x} - {x}" if sign == "%" and is_integer(node.type) else ""
            return f"CASE {by_zero}{by_one} ELSE {self.native(f'CAST(({x} {sign} {y}) AS {kind})')} END"

        return once(write, a, b)

    def negate(self, node: e.Apply) -> str:
        (text,) = self.all(node.arguments)
        kind = node.type
        if kind in _INTERVALS:
            raise UnprintableError("an interval that is computed")
        argument = node.arguments[0]
        if not is_integer(kind) or (isinstance(argument, e.Constant) and (argument.value or "").isdigit()):
            return f"CAST((- {text}) AS {duckdb_type(kind)})"
        lowest = f"CAST('-{_LOWEST[kind.base]}' AS {duckdb_type(kind)})"
        message = self.failure("NUMERIC_VALUE_OUT_OF_RANGE", f"'{kind} negation overflow: '", f"CAST({lowest} AS VARCHAR)")
        return once(lambda x: f"CASE WHEN {x} = {lowest} THEN {message} ELSE CAST((- {x}) AS {duckdb_type(kind)}) END", text)

    def moved(self, node: e.Apply) -> str:
        left, right = node.arguments
        operator = str(node.detail)
        if operator == "+" and left.type in _INTERVALS:
            left, right = right, left
        if operator in "+-" and isinstance(right, e.Constant) and right.type in _INTERVALS and left.type not in _INTERVALS:
            return shifted(operator, self.text(left), left.type, right, self.failure)
        raise UnprintableError(f"{left.type} {operator} {right.type}")

    # -- truth ----------------------------------------------------------------------------------------------------

    def compare(self, node: e.Apply) -> str:
        kind = node.arguments[0].type
        _check_compared(kind, node.name)
        left, right = self.all(node.arguments)
        if kind == UNKNOWN:
            return "CAST(NULL AS BOOLEAN)"
        if not is_float(kind):
            return f"({left} {node.name} {right})"
        operator, result = node.name, "true" if node.name == "<>" else "false"

        def nan_aware(a: str, b: str) -> str:
            """For DuckDB NaN equals NaN and is the largest number; for Trino every comparison with NaN is false, <> is true."""
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
        # Where no term but the last decides, all have been computed without an error, and can be looked at together.
        word = "WHEN NOT {} THEN false" if node.name == "and" else "WHEN {} THEN true"
        decided = " ".join(word.format(text) for text in texts[:-1])
        return f"CASE {decided} ELSE ({f' {node.name.upper()} '.join(texts)}) END"

    def in_list(self, node: e.Apply) -> str:
        value, *items = node.arguments
        _check_compared(value.type, "IN")
        if is_float(value.type) or any(may_fail(item) for item in items):
            terms = tuple(e.Apply(BOOLEAN, "=", (value, item)) for item in items)
            found = self.text(e.Apply(BOOLEAN, "or", terms) if len(terms) > 1 else terms[0])
            return f"(NOT {found})" if node.detail else found
        return f"({self.text(value)} {'NOT ' if node.detail else ''}IN ({', '.join(self.all(items))}))"

    def in_set(self, node: e.Apply) -> str:
        (sought,), (known, negated) = node.arguments, node.detail
        _check_compared(sought.type, "IN")
        table, value = self.page.listed(known), self.text(sought)
        found = self.sought(sought, table)
        if is_float(sought.type):
            found = f"CASE WHEN isnan({value}) THEN {'NULL' if known.has_null else 'false'} ELSE {found} END"
        return f"(NOT {found})" if negated else found

    def like(self, node: e.Apply) -> str:
        value, pattern, *escape = node.arguments
        if any(part.type.base not in {"varchar", "unknown"} for part in node.arguments):
            raise UnprintableError("LIKE of char")
        negated = "NOT " if node.detail else ""
        if not escape:
            return f"({self.text(value)} {negated}LIKE {self.text(pattern)})"
        mark = escape[0]
        if not isinstance(mark, e.Constant) or not isinstance(pattern, e.Constant) or pattern.value is None or mark.value is None:
            raise UnprintableError("LIKE with a pattern and an escape character that are no constants")
        text = self.text(value)
        if len(mark.value.encode("utf-16-le")) != 2:
            said = "'Escape string must be a single character'"
        elif re.search(f"{re.escape(mark.value)}(?![%_{re.escape(mark.value)}])", _without_pairs(pattern.value, mark.value)):
            said = "'Escape character must be followed by ''%'', ''_'' or the escape character itself'"
        else:
            return f"({text} {negated}LIKE {self.text(pattern)} ESCAPE {self.text(mark)})"
        return f"CASE WHEN {text} IS NOT NULL THEN {self.failure('INVALID_FUNCTION_ARGUMENT', said)} END"

    def case(self, node: e.Apply) -> str:
        texts = self.all(node.arguments)
        default = f" ELSE {texts.pop()}" if len(texts) % 2 else ""
        pairs = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(texts[::2], texts[1::2], strict=True))
        return f"CASE {pairs}{default} END"

    def nullif(self, node: e.Apply) -> str:
        value, same = self.all(node.arguments)
        return f"CASE WHEN {same} THEN NULL ELSE {value} END"

    def extreme(self, node: e.Apply) -> str:
        """GREATEST and LEAST give NULL when an argument is NULL, where DuckDB's skip it; NaN is the last that they choose."""
        _check_compared(node.type, node.name.upper())
        texts = self.all(node.arguments)

        def write(*values: str) -> str:
            nulls = " OR ".join(f"{value} IS NULL" for value in values)
            found = f"{node.name}({', '.join(values)})"
            if is_float(node.type) and node.name == "greatest" and len(values) > 1:
                numbers = ", ".join(f"CASE WHEN NOT isnan({value}) THEN {value} END" for value in values)
                found = f"coalesce(greatest({numbers}), {values[0]})"
            return f"CASE WHEN {nulls} THEN NULL ELSE {found} END"

        return once(write, *texts)

    # -- the rest -------------------------------------------------------------------------------------------------

    def array(self, node: e.Apply) -> str:
        return array_text(self.all(node.arguments), node.type)

    def row(self, node: e.Apply) -> str:
        return row_text(self.all(node.arguments), node.type)

    def subscript(self, node: e.Apply) -> str:
        kind = node.arguments[0].type
        if kind.base == "map":
            _check_compared(kind.parameters[0], "subscript", floats=False)
        return subscript_text(self.all(node.arguments), kind, self.failure)

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
            texts = [f"({' || '.join(texts[start : start + _WIDE])})" for start in range(0, len(texts), _WIDE)]
        return f"({' || '.join(texts)})"

    def function(self, node: e.Apply) -> str:
        template = node.detail.duckdb
        if not template:
            raise UnprintableError(_described(node))
        if template == "{pattern}":
            return once(lambda text: pattern_text(node, text), self.text(node.arguments[0]))
        index = _CONSTANT_ARGUMENTS.get(str(node.detail))
        if index is not None:
            needed = node.arguments[index]
            if not isinstance(needed, e.Constant) or not needed.value:
                raise UnprintableError(f"{node.detail.name} with an argument {index + 1} that is empty or no constant")
        for argument in node.arguments:
            if not isinstance(argument, e.Function):
                duckdb_type(argument.type)
        if _compares_elements(node.detail):
            _check_compared(node.arguments[0].type.parameters[0], node.detail.name, floats=False)

        def fill(*texts: str) -> str:
            written = self._filled(template, texts, node.type)
            if "{fail:" not in template or len(texts) == 1:
                return written
            # NULL gives NULL before anything is checked.
            known = (isinstance(part, e.Constant) and part.value is not None for part in node.arguments)
            needed = [f"{text} IS NOT NULL" for text, is_known in zip(texts, known, strict=True) if not is_known]
            return f"CASE WHEN {' AND '.join(needed)} THEN {written} END" if needed else written

        texts = self.all(node.arguments)
        # A lambda is no value that a parameter could stand for.
        return fill(*texts) if any(isinstance(part, e.Function) for part in node.arguments) else once(fill, *texts)

    def _filled(self, template: str, texts: Sequence[str], kind: Type) -> str:
        def filled(match: re.Match[str]) -> str:
            mark = match[1]
            if mark == "type":
                return duckdb_type(kind)
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
        if node.outer and node.kind == "in":
            raise UnprintableError("a correlated subquery with IN")
        if node.kind == "in" and node.value is not None:
            return self.in_query(node, node.value)
        return self.page.numbered(node)

    def in_query(self, node: e.Subquery, value: e.Typed) -> str:
        """Read the answer that is looked up for each row, unless the value may fail: then it must not be computed for every row."""
        _check_compared(value.type, "IN")
        if is_float(value.type):
            # Trino's semi join finds NaN in a list with NaN, an index by equal values does not.
            raise UnprintableError("IN a query of floating point numbers")
        in_lambda = any(isinstance(part, e.Variable) for part in e.walk(value))
        if not (in_lambda or may_fail(value) or e.has_subquery(value)) and e.is_deterministic(value):
            return self.page.numbered(node)
        return self.sought(value, self.page.numbered(replace(node, type=value.type, value=None)))

    def sought(self, value: e.Typed, table: str) -> str:
        """Look a value up in a table, by a join.

        The join computes the value for all rows, whatever guards it. So a value that may fail is NULL there if it fails, and is computed
        beside it, where it does fail.
        """
        text = self.text(value)
        if self.safe or not may_fail(value):
            return f"({text} IN (SELECT v FROM {table}))"
        if any(isinstance(part, e.Subquery) and part.kind == "in" for part in e.walk(value)):
            raise UnprintableError("IN for a value that has IN a query and may fail")
        sought = f"({_Printer(self.page, safe=True, so_far=self.so_far).text(value)} IN (SELECT v FROM {table}))"
        return f"CASE WHEN {text} IS NULL THEN CASE WHEN (SELECT count(*) FROM {table}) = 0 THEN false END ELSE {sought} END"


def may_fail(node: e.Typed) -> bool:
    """Return whether computing an expression may end in an error."""
    return any(_fails(part) for part in e.walk(node) if isinstance(part, e.Apply))


def _fails(node: e.Apply) -> bool:
    if node.name == "arithmetic":
        kinds = [argument.type for argument in node.arguments]
        if node.type.base == "decimal" and node.detail in {"+", "-", "*"}:
            return bool(exact_precision(str(node.detail), *kinds) > node.type.parameters[0])
        return not is_float(node.type)
    if node.name == "negate":
        return is_integer(node.type)
    if node.name == "cast":
        return node.detail != "try" and not is_total(node.arguments[0].type, node.type)
    if node.name == "function":
        return "{fail" in node.detail.duckdb
    return node.name in {"written", "like", "subscript"} and (node.name != "like" or len(node.arguments) > 2)


def _compares_elements(function: Overload) -> bool:
    """Return whether a function compares elements of an array, or keys of a map.

    DuckDB compares values of some types in another way than Trino.
    """
    return function.constraints.endswith((":comparable", ":orderable")) or str(function) == "element_at(map(K,V), K) K, V"


def _check_compared(kind: Type, what: str, *, floats: bool = True) -> None:
    if (kind.base not in _COMPARED and kind != UNKNOWN) or is_zoned(kind) or (is_float(kind) and not floats):
        raise UnprintableError(f"{what} of {kind}")


def _without_pairs(pattern: str, mark: str) -> str:
    return pattern.replace(mark + mark, "")


def _described(node: e.Typed) -> str:
    if isinstance(node, e.Apply) and node.name in {"function", "written"}:
        return f"the function {node.detail.name}({', '.join(str(argument.type) for argument in node.arguments)})"
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
    "is null": lambda printer, node: f"({printer.text(node.arguments[0])} IS {'NOT ' if node.detail else ''}NULL)",
    "like": _Printer.like,
    "in": _Printer.in_list,
    "in set": _Printer.in_set,
    "case": _Printer.case,
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
