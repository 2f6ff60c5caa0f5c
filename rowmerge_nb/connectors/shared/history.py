"""Errors of versions that a store does not have."""

from __future__ import annotations

import datetime as dt

from rowmerge_nb.base.errors import ConnectorError


def no_history(table: object, instant: dt.datetime, hint: str) -> ConnectorError:
    """Return Trino's error for a time before a table's first version.

    >>> no_history("default.t", dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "").message
    'No version history table default.t at or before 2026-01-31T00:00:00Z'
    """
    timestamp = instant.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
    return ConnectorError.invalid(
        f"No version history table {table} at or before {timestamp}Z",
        hint=hint,
    )


def unsupported_version(version_type: object, hint: str) -> ConnectorError:
    return ConnectorError(f"Unsupported type for table version: {version_type}", hint=hint)
