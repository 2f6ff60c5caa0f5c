"""Translation of statements and types for `rowmerge_nb.engine.observers.verify.verification`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type

_DIALECTS: Final = {"duckdb": "duckdb", "postgresql": "postgres"}
_PLAIN: Final = {"boolean", "smallint", "integer", "bigint", "real", "decimal", "date"}
_OWN: Final = {
    "duckdb": {
        "tinyint": "tinyint",
        "varchar": "varchar",
        "double": "double",
        "varbinary": "blob",
        "timestamp": "timestamp",
    },
    "postgresql": {
        "tinyint": "smallint",
        # Texts are ordered by their code points, whatever the database's own order is.
        "varchar": 'varchar COLLATE "C"',
        "double": "double precision",
        "varbinary": "bytea",
        "timestamp": "timestamp",
    },
}


class UntranslatableError(Exception):
    """The other engine cannot express it with the same meaning; the message is a sentence."""


def column_type(sql_type: Type, engine: str) -> str:
    if sql_type.base in _PLAIN:
        return str(sql_type)
    if sql_type.base not in _OWN[engine]:
        raise UntranslatableError(f"columns of type {sql_type} are not compared")
    return _OWN[engine][sql_type.base]


def translate(text: str, engine: str) -> str:
    """Translate a statement from Trino's SQL, with unqualified table names and lower-case names.

    Raises:
        UntranslatableError: it cannot be expressed there with the same meaning.
        SetupError: sqlglot is not installed.
    """
    try:
        from sqlglot import ErrorLevel, exp, parse_one
        from sqlglot.errors import SqlglotError
    except ModuleNotFoundError as error:
        raise SetupError(
            "sqlglot is not installed, which translates statements",
            hint=f"Run: {install_command('verify')}",
        ) from error
    try:
        tree = parse_one(text, read="trino")
        # Only tables and row counts are compared, and RETURNING has another syntax there.
        tree.set("returning", None)
        _refuse(tree, engine)
        for table in tree.find_all(exp.Table):
            table.set("catalog", None)
            table.set("db", None)
        for identifier in tree.find_all(exp.Identifier):
            identifier.replace(exp.to_identifier(identifier.name.lower(), quoted=True))
        adapted = tree.transform(_adapted, engine)
        return str(adapted.sql(dialect=_DIALECTS[engine], unsupported_level=ErrorLevel.RAISE))
    except SqlglotError as error:
        raise UntranslatableError(
            f"the statement cannot be translated: {str(error).splitlines()[0]}"
        ) from error


def _refuse(tree: Any, engine: str) -> None:
    from sqlglot import exp

    # Trino rounds decimals to the larger scale and truncates integers; DuckDB returns a double,
    # PostgreSQL more digits.
    if tree.find(exp.Div):
        raise UntranslatableError("a division has different digits there")
    if engine == "postgresql" and tree.find(exp.Greatest, exp.Least):
        raise UntranslatableError("greatest and least ignore NULL there")


def _adapted(node: Any, engine: str) -> Any:
    from sqlglot import exp

    if (
        isinstance(node, exp.Literal)
        and node.is_number
        and "e" in node.name.lower()
        and not isinstance(node.parent, exp.Cast)
    ):
        # 2.5E0 is a double in Trino, and a decimal in PostgreSQL.
        return exp.cast(node.copy(), "double")
    # Trino's LIKE has no escape character unless it is given one; PostgreSQL's has.
    if (
        engine == "postgresql"
        and isinstance(node, exp.Like)
        and not isinstance(node.parent, exp.Escape)
    ):
        return exp.Escape(this=node.copy(), expression=exp.Literal.string(""))
    return node
