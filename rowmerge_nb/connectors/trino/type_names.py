"""Types as a plugin declares them, and as this project knows them."""

from __future__ import annotations

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.types import Type, parse_type


def type_of(signature: str, column: str) -> Type:
    """Return the type of a plugin's column, or raise NOT_SUPPORTED.

    >>> str(type_of("timestamp(6) with time zone", "created"))
    'timestamp(6) with time zone'
    >>> type_of("HyperLogLog", "visitors")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.ConnectorError: NOT_SUPPORTED: Column 'visitors' has the type HyperLogLog, which pages cannot hold here. ...
    """
    try:
        sql_type = parse_type(signature)
        _ = sql_type.arrow
    except (TypeError, ValueError) as error:
        raise ConnectorError(
            f"Column '{column}' has the type {signature}, which pages cannot hold here",
            hint="Use a table without this column, or change the column's type.",
        ) from error
    return sql_type
