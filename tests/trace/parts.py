"""Traces with other values in their parts."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any

from rowmerge_nb.trace.trace import Trace


def with_parts(trace: Trace, **changes: Any) -> Trace:
    """Return a trace with changed fields; a dictionary changes fields of a part or of the error.

    >>> from rowmerge_nb.base.choices import StatementState
    >>> trace = Trace(statement="DROP TABLE t", kind="DROP TABLE", state=StatementState.FINISHED)
    >>> with_parts(trace, target={"name": "t"}).target.name
    't'
    """
    fields: dict[str, Any] = {}
    for name, value in changes.items():
        part: Any = getattr(trace, name)
        is_nested = is_dataclass(part) and isinstance(value, dict)
        fields[name] = replace(part, **value) if is_nested else value
    return replace(trace, **fields)
