"""The errors of `rowmerge_nb`, for programs and connectors that raise and catch them.

>>> from rowmerge_nb.errors import ConnectorError, RowMergeError
>>> issubclass(ConnectorError, RowMergeError)
True
"""

from __future__ import annotations

from rowmerge_nb.base.errors import (
    AnalysisError,
    ConnectorError,
    DuplicateMatchError,
    ExecutionError,
    ParseError,
    RowMergeError,
    SetupError,
    StatementInterrupted,
)

__all__ = [
    "AnalysisError",
    "ConnectorError",
    "DuplicateMatchError",
    "ExecutionError",
    "ParseError",
    "RowMergeError",
    "SetupError",
    "StatementInterrupted",
]
