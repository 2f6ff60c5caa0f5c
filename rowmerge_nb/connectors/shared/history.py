"""What stores that keep versions say of one that they do not have."""

from __future__ import annotations

import datetime as dt

from rowmerge_nb.base.errors import ConnectorError


def no_history(table: object, instant: dt.datetime, hint: str) -> ConnectorError:
    """Return the error of a moment before a table's first version, in Trino's words.

    >>> no_history("default.t", dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "").message
    'No version history table default.t at or before 2026-01-31T00:00:00Z'
    """
    shown = instant.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
    return ConnectorError(f"No version history table {table} at or before {shown}Z", code="INVALID_ARGUMENTS", hint=hint)


def unsupported_version(kind: object, hint: str) -> ConnectorError:
    """Return the error of a version of a type that the store does not count by, in Trino's words."""
    return ConnectorError(f"Unsupported type for table version: {kind}", hint=hint)
