"""Random values and expressions of the statement model.

Trino, PostgreSQL and DuckDB can all express them, and none of them fails: divisors are never zero,
and numbers are too small to overflow. Only the assignment of a value to a narrower column may fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from proof.oracle.evaluation import coerce
from proof.statements.model import Call, Cast, Column, InSubquery, Literal, ScalarSubquery
from rowmerge_nb.spi.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    decimal_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from proof.statements.model import ColumnDefinition, Expression, Table
    from rowmerge_nb.spi.types import Type

__all__ = ["ASSIGNABLE", "Expressions", "random_type", "random_value"]

TEXTS: Final = ("", "a", "b", "ab", "B", "Berkeley", "é", "it's", " a ", "a_c", "abc", "100%")
PATTERNS: Final = ("%", "a%", "%b", "_", "a_c", "%e%", "", "B%y")
ESCAPED: Final = ("a#_c", "%#%", "#%%")
ASSIGNABLE: Final = {
    "integer": ("integer", "integer", "bigint", "decimal"),
    "bigint": ("bigint", "integer", "decimal"),
    "decimal": ("decimal", "decimal", "integer", "bigint"),
    "double": ("double", "double", "integer", "bigint", "decimal"),
    "varchar": ("varchar",),
    "date": ("date", "date", "timestamp"),
    "timestamp": ("timestamp", "timestamp", "date"),
    "boolean": ("boolean",),
}
"""Per type, the assignable types of expressions, the usual ones more than once."""

COMPARABLE: Final = {
    "integer": ("integer", "bigint", "decimal"),
    "bigint": ("bigint", "integer"),
    "decimal": ("decimal", "integer"),
}
_COMPARISONS: Final = (
    "=",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
)


def random_type(random: Random) -> Type:
    """Return one of the basic types.

    >>> from random import Random
    >>> random_type(Random(1)).base
    'decimal'
    """
    decimals = (decimal_of(5, 2), decimal_of(9, 2), decimal_of(9, 0), decimal_of(12, 3))
    return random.choice(
        (*decimals, INTEGER, INTEGER, BIGINT, VARCHAR, VARCHAR, DOUBLE, DATE, TIMESTAMP, BOOLEAN)
    )


def random_value(random: Random, sql_type: Type) -> Any:
    """Return a non-NULL value of a type from a small set, so that rows match."""
    if sql_type.base == "decimal":
        return coerce(Decimal(random.randint(-9_999, 9_999)) / 100, sql_type)
    if sql_type.base == "integer":
        return random.randint(-20, 20)
    if sql_type.base == "bigint":
        return (
            random.choice((3_000_000_000, -3_000_000_000))
            if random.randint(1, 8) == 8
            else random.randint(-20, 20)
        )
    if sql_type.base == "double":
        return random.randint(-100, 100) / 4
    if sql_type.base == "boolean":
        return random.randint(0, 1) == 1
    if sql_type.base == "varchar":
        return random.choice(TEXTS)
    day = date(2023, 12, 1) + timedelta(days=random.randint(0, 120))
    if sql_type.base == "date":
        return day
    # Sometimes whole days, like converted dates.
    microsecond = random.choice((0, random.randint(0, 86_399_999_999)))
    return datetime.combine(day, datetime.min.time()) + timedelta(microseconds=microsecond)


@dataclass(frozen=True)
class Expressions:
    """Draws expressions over the columns in scope.

    Args:
        random: the source of choices.
        scope: the columns in scope, with their relation's name.
        tables: the tables for subqueries.
        correlated: subqueries may read the columns in scope.
    """

    random: Random
    scope: tuple[tuple[str, ColumnDefinition], ...]
    tables: tuple[Table, ...] = ()
    correlated: bool = True

    def of(self, kind: str, depth: int = 2) -> Expression:
        """Draw an expression of a type, given without parameters, nested up to ``depth``."""
        if depth <= 0 or self._often(2):
            return self.leaf(kind)
        if kind != "boolean" and self._often(3):
            return self._common(kind, depth - 1)
        own: Callable[[int], Expression] = getattr(self, f"_{kind}")
        return own(depth - 1)

    def leaf(self, kind: str) -> Expression:
        """Draw a column or a constant."""
        columns = [
            Column(relation, column.name)
            for relation, column in self.scope
            if column.type.base == kind
        ]
        if columns and not self._often(4):
            return self._one(columns)  # type: ignore[no-any-return]
        read = [
            (table, column)
            for table in self.tables
            for column in table.columns
            if column.type.base == kind
        ]
        if read and kind != "boolean" and self._often(4):
            return self._scalar(*self._one(read))
        return self.literal(kind)

    def literal(self, kind: str) -> Literal:
        """Draw a constant, rarely NULL.

        Numbers are small: some engines fold constants before the statement runs, which must not
        fail.
        """
        declared = _TYPES[kind]
        if self._often(10):
            return Literal(None, declared)
        if kind == "decimal":
            return Literal(Decimal(self.random.randint(-999, 999)) / 100, declared)
        return Literal(
            random_value(self.random, INTEGER if kind == "bigint" else declared), declared
        )

    def condition(self, depth: int = 2) -> Expression:
        """Draw a condition, mostly one that reads a column."""
        return self.of("boolean", 1) if self._often(6) else self._boolean(depth)

    def equality(self, left: Expression, right: Expression) -> Expression:
        """Compare two expressions."""
        return Call(self._one(_COMPARISONS), (left, right))

    # -- choices

    def _one(self, items: Sequence[Any]) -> Any:
        return self.random.choice(items)

    def _often(self, one_in: int) -> bool:
        return self.random.randint(1, one_in) == one_in

    def _scalar(self, table: Table, column: ColumnDefinition) -> Expression:
        # Booleans have no maximum in PostgreSQL.
        function = self._one(("max", "min"))
        keys = [key for key in table.columns if key.type.base == "integer"]
        if not keys or self._often(2) or not self.correlated:
            return ScalarSubquery(function, table.name, column.name)
        outer = Expressions(self.random, self.scope).of("integer", 1)
        return ScalarSubquery(function, table.name, column.name, self._one(keys).name, outer)

    def _common(self, kind: str, depth: int) -> Expression:
        """Draw an expression that exists for all types."""
        name = self._one(("CASE", "COALESCE", "NULLIF", "IF", "GREATEST", "LEAST"))
        first, second = self.of(kind, depth), self.of(kind, depth)
        if name == "CASE":
            branches = [self.of("boolean", depth), first]
            if self._often(2):
                branches += [self.of("boolean", depth), self.of(kind, depth)]
            return Call("CASE", (*branches, second))
        if name == "IF":
            return Call("IF", (self.of("boolean", depth), first, second))
        return Call(name, (first, second))

    # -- one function per type

    def _numbers(self, kind: str, depth: int) -> Expression | None:
        name = self._one(("+", "-", "*", "NEGATE", "ABS", ""))
        if name in {"NEGATE", "ABS"}:
            return Call(name, (self.of(kind, depth),))
        if name == "*":
            # A product of products would overflow.
            right = (
                Literal(self._one((-3, -1, 0, 2, 7)), INTEGER)
                if kind == "bigint"
                else self.leaf(kind)
            )
            return Call(name, (self.leaf(kind), right))
        return Call(name, (self.of(kind, depth), self.of(kind, depth))) if name else None

    def _not_zero(self, kind: str, zero: Literal) -> Expression:
        return Call("NULLIF", (self.leaf(kind), zero))

    def _integer(self, depth: int) -> Expression:
        return self._numbers("integer", depth) or Call(
            self._one(("DIV", "%")),
            (self.of("integer", depth), self._not_zero("integer", Literal(0, INTEGER))),
        )

    def _bigint(self, depth: int) -> Expression:
        choice = self._one(
            (
                "numbers",
                "integer",
                "LENGTH",
                "STRPOS",
                "YEAR",
                "MONTH",
                "QUARTER",
                "DAY OF YEAR",
                "DAYS BETWEEN",
                "DIV",
            )
        )
        if choice in {"LENGTH", "STRPOS"}:
            more = (self.leaf("varchar"),) if choice == "STRPOS" else ()
            return Call(choice, (self.of("varchar", depth), *more))
        if choice in {"YEAR", "MONTH", "QUARTER", "DAY OF YEAR", "DAYS BETWEEN"}:
            more = (self.leaf("date"),) if choice == "DAYS BETWEEN" else ()
            return Call(choice, (self.of("date", depth), *more))
        if choice == "integer":
            return Call(
                self._one(("+", "-")), (self.of("integer", depth), self.of("bigint", depth))
            )
        expression = self._numbers("bigint", depth) if choice == "numbers" else None
        return expression or Call(
            "DIV", (self.of("bigint", depth), self._not_zero("integer", Literal(0, INTEGER)))
        )

    def _decimal(self, depth: int) -> Expression:
        expression = self._numbers("decimal", depth)
        return expression or Call(
            self._one(("+", "-")), (self.of("decimal", depth), self.of("integer", depth))
        )

    def _double(self, depth: int) -> Expression:
        expression = self._numbers("double", depth)
        return expression or Call(
            "/", (self.of("double", depth), self._not_zero("double", Literal(0.0, DOUBLE)))
        )

    def _varchar(self, depth: int) -> Expression:
        name = self._one(
            (
                "||",
                "||",
                "UPPER",
                "LOWER",
                "TRIM",
                "RTRIM",
                "SUBSTR",
                "REPLACE",
                "LPAD",
                "REVERSE",
                "TRANSLATE",
                "CONCAT WS",
                "CAST",
            )
        )
        if name == "CAST":
            return Cast(
                self.of(self._one(("integer", "bigint", "date", "boolean")), depth), VARCHAR
            )
        more: tuple[Expression, ...] = ()
        if name == "||":
            more = (self.of("varchar", depth),)
        elif name == "SUBSTR":
            more = (
                Literal(self._one((1, 2, 3)), INTEGER),
                Literal(self._one((0, 1, 2, 9)), INTEGER),
            )
        elif name == "REPLACE":
            more = (
                Literal(self._one(("a", "b", "er")), VARCHAR),
                Literal(self._one(("", "xy", "a")), VARCHAR),
            )
        elif name == "TRANSLATE":
            more = (
                Literal(self._one(("ab", "era", "x")), VARCHAR),
                Literal(self._one(("", "y", "ba")), VARCHAR),
            )
        elif name == "CONCAT WS":
            more = (self.of("varchar", depth), self.leaf("varchar"))
        elif name == "LPAD":
            more = (
                Literal(self._one((0, 1, 5)), INTEGER),
                Literal(self._one(("-", "xy")), VARCHAR),
            )
        return Call(name, (self.of("varchar", depth), *more))

    def _date(self, depth: int) -> Expression:
        if self._often(2):
            return Cast(self.of("timestamp", depth), DATE)
        return Call("DAYS LATER", (self.of("date", depth), self.leaf("integer")))

    def _timestamp(self, depth: int) -> Expression:
        if self._often(2):
            return Cast(self.of("date", depth), TIMESTAMP)
        return Call("FIRST OF MONTH", (self.of("timestamp", depth),))

    def _boolean(self, depth: int) -> Expression:
        name = self._one(
            (
                "compare",
                "compare",
                "compare",
                "logic",
                "logic",
                "NULL",
                "BETWEEN",
                "IN",
                "LIKE",
                "SUBQUERY",
            )
        )
        if name == "logic":
            name = self._one(("AND", "OR", "NOT"))
            more = () if name == "NOT" else (self.of("boolean", depth),)
            return Call(name, (self.of("boolean", depth), *more))
        if name == "LIKE":
            return self._like(depth)
        compared_type = self._compared_kind()
        first = self.of(compared_type, depth)
        if name == "NULL":
            return Call(self._one(("IS NULL", "IS NOT NULL")), (first,))
        if name == "BETWEEN":
            return Call("BETWEEN", (first, self.leaf(compared_type), self.of(compared_type, depth)))
        if name == "IN":
            items = [self.leaf(compared_type) for _ in range(self.random.randint(1, 4))]
            return Call(self._one(("IN", "NOT IN")), (first, *items))
        read = [
            (table, column)
            for table in self.tables
            for column in table.columns
            if column.type.base == compared_type
        ]
        if name == "SUBQUERY" and read:
            table, column = self._one(read)
            return InSubquery(first, table.name, column.name, self._often(3))
        return self.equality(
            first, self.of(self._one(COMPARABLE.get(compared_type, (compared_type,))), depth)
        )

    def _compared_kind(self) -> str:
        """Draw a type to compare, mostly that of a column in scope."""
        types_in_scope = sorted({column.type.base for _, column in self.scope})
        return (  # type: ignore[no-any-return]
            self._one(types_in_scope)
            if types_in_scope and not self._often(6)
            else self._one(tuple(_TYPES))
        )

    def _like(self, depth: int) -> Expression:
        text = self.of("varchar", depth)
        name = self._one(("LIKE", "LIKE ESCAPE", "STARTS WITH"))
        patterns = {"LIKE": PATTERNS, "LIKE ESCAPE": ESCAPED, "STARTS WITH": TEXTS}[name]
        return Call(name, (text, Literal(self._one(patterns), VARCHAR)))


_TYPES: Final = {
    "integer": INTEGER,
    "bigint": BIGINT,
    "decimal": decimal_of(9, 2),
    "double": DOUBLE,
    "varchar": VARCHAR,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "boolean": BOOLEAN,
}
