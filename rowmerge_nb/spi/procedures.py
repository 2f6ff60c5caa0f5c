"""Procedures of a connector, for ``CALL catalog.schema.name(...)`` and
``ALTER TABLE t EXECUTE name(...)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rowmerge_nb.spi.handles import ConnectorInsertTableHandle, ConnectorTableHandle
from rowmerge_nb.spi.types import Type


@dataclass(frozen=True)
class ProcedureArgument:
    """An argument of a procedure.

    Args:
        type: its type; arguments are coerced to it, but not cast.
    """

    name: str
    type: Type
    required: bool = True
    default: Any = None


@dataclass(frozen=True)
class Procedure:
    """A procedure, which returns no rows and manages its own transactions.

    Args:
        schema: the schema to call it in; ``system`` for table maintenance.
        call: gets the session, and every argument by name as a plain value (as of Arrow's
            ``as_py``). It raises ConnectorError INVALID_PROCEDURE_ARGUMENT for invalid values.
            Interrupts are deferred while it runs. ``changed`` of its RowMergeErrors says whether
            something was changed, False by default; after other errors this is unknown.

    >>> from rowmerge_nb.spi.types import VARCHAR
    >>> Procedure("system", "greet", (ProcedureArgument("who", VARCHAR),), lambda session, who: print(f"hello {who}")).name
    'greet'
    """

    schema: str
    name: str
    arguments: tuple[ProcedureArgument, ...]
    call: Callable[..., None]


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class TableProcedureArgument:
    """An optional argument of a table procedure.

    Args:
        default: its value if omitted, like ``read``'s results.
        read: converts a value; raises ValueError with a message for the user.
    """

    name: str
    type: Type
    default: Any = None
    read: Callable[[Any], Any] = _as_it_is


@dataclass(frozen=True)
class TableProcedure:
    """A procedure for ``ALTER TABLE t EXECUTE name(argument => value)`` (Trino's
    ``TableProcedureMetadata``).

    `ConnectorMetadata.get_table_handle_for_execute` is called first. A procedure that rewrites rows
    then runs like an INSERT from ``begin_table_execute`` to ``finish_table_execute``; any other on
    the driver in ``execute_table_execute``.

    Args:
        name: its name in capitals, like unquoted names.
        arguments: its arguments, in positional order.
        rewrites: it rewrites rows, and may have a WHERE that selects whole files or partitions.

    >>> from rowmerge_nb.spi.types import VARCHAR
    >>> TableProcedure("OPTIMIZE", (TableProcedureArgument("file_size_threshold", VARCHAR, "100MB"),), rewrites=True).name
    'OPTIMIZE'
    """

    name: str
    arguments: tuple[TableProcedureArgument, ...] = ()
    rewrites: bool = False


@dataclass(frozen=True)
class TableExecution:
    """The input and output of a procedure that rewrites rows (Trino's ``BeginTableExecuteResult``).

    Args:
        insert_handle: the handle for page sinks.
        source: the table restricted to the rows to rewrite.
        writers: the maximum number of writing tasks, to avoid many small files.

    >>> from rowmerge_nb.spi.handles import ConnectorInsertTableHandle, ConnectorTableHandle
    >>> TableExecution(ConnectorInsertTableHandle(), ConnectorTableHandle(), writers=1).writers
    1
    """

    insert_handle: ConnectorInsertTableHandle
    source: ConnectorTableHandle
    writers: int | None = None


@dataclass
class ProcedureOutcome:
    """The result of a table procedure; its connector may fill it until the commit has returned.

    Args:
        metrics: counts by name, the statement's result rows.
        notices: sentences for the report.

    >>> ProcedureOutcome({"deleted_files_count": 2}).metrics
    {'deleted_files_count': 2}
    """

    metrics: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
