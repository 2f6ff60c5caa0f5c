"""Procedures: what a connector offers to ``CALL catalog.schema.name(...)`` and to ``ALTER TABLE t EXECUTE name(...)``."""

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
        name: its name in lower case.
        type: its type; what is given is brought to it, where that needs no cast.
        required: a call must give it.
        default: the value that a call without it means.
    """

    name: str
    type: Type
    required: bool = True
    default: Any = None


@dataclass(frozen=True)
class Procedure:
    """A procedure: it has no rows to give, and begins and ends transactions of its own.

    Args:
        schema: the schema that it is called in; of those that look after tables it is ``system``.
        name: its name in lower case.
        arguments: its arguments in order, required ones first.
        call: gets the session, and by name a plain value for every argument, as Arrow's ``as_py`` gives them. What it cannot do
            with them is a ConnectorError; INVALID_PROCEDURE_ARGUMENT is the code of values that make no sense. Interrupts are put off
            while it runs, as in a commit. An error of ours says by its ``changed`` whether something was changed: False unless it is set.
            After any other error this is not known.

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
    """An argument of a procedure of a table; none has to be given.

    Args:
        name: its name in lower case.
        type: the type of what is given; the value must have it, or come to it without a cast.
        default: the value that a statement without it means, as ``read`` gives them.
        read: makes the value that the connector wants of a value that is not NULL; what it cannot read is a ValueError, whose words
            readers are told.
    """

    name: str
    type: Type
    default: Any = None
    read: Callable[[Any], Any] = _as_it_is


@dataclass(frozen=True)
class TableProcedure:
    """What ``ALTER TABLE t EXECUTE name(argument => value)`` does; in Trino a ``TableProcedureMetadata``.

    `ConnectorMetadata.get_table_handle_for_execute` is asked before anything is done. Then there are two ways.
    One that does not rewrite is done by ``execute_table_execute``, on the driver. For one that does, the connector says by
    ``begin_table_execute`` which of its rows are read and where they are written (`TableExecution`); the engine does so in tasks, and
    ``finish_table_execute`` gets the fragments. Both become visible with the commit.

    Args:
        name: its name in capitals, as a name without quotes is taken.
        arguments: its arguments in the order in which they are given without names.
        rewrites: rows are read and written anew; then it may have a WHERE, which says whole files or partitions.

    >>> from rowmerge_nb.spi.types import VARCHAR
    >>> TableProcedure("OPTIMIZE", (TableProcedureArgument("file_size_threshold", VARCHAR, "100MB"),), rewrites=True).name
    'OPTIMIZE'
    """

    name: str
    arguments: tuple[TableProcedureArgument, ...] = ()
    rewrites: bool = False


@dataclass(frozen=True)
class TableExecution:
    """What a procedure that rewrites rows reads and writes; in Trino a ``BeginTableExecuteResult``.

    Args:
        insert_handle: what page sinks are made for, as for an INSERT.
        source: the table with no other rows than those to be read, all of which are written again.
        writers: so many tasks are to write at most, or there would be as many small files again; None for as many as there are.

    >>> from rowmerge_nb.spi.handles import ConnectorInsertTableHandle, ConnectorTableHandle
    >>> TableExecution(ConnectorInsertTableHandle(), ConnectorTableHandle(), writers=1).writers
    1
    """

    insert_handle: ConnectorInsertTableHandle
    source: ConnectorTableHandle
    writers: int | None = None


@dataclass
class ProcedureOutcome:
    """What a procedure of a table has done. Its connector fills it, until its commit has returned.

    Args:
        metrics: counts by name, which are the rows that the statement answers.
        notices: sentences for the report.

    >>> ProcedureOutcome({"deleted_files_count": 2}).metrics
    {'deleted_files_count': 2}
    """

    metrics: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
