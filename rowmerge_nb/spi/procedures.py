"""Procedures: what a connector offers to ``CALL catalog.schema.name(...)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rowmerge_nb.spi.types import Type

__all__ = ["Procedure", "ProcedureArgument"]


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
            with them is a ConnectorError; INVALID_PROCEDURE_ARGUMENT is the code of values that make no sense.

    >>> from rowmerge_nb.spi.types import VARCHAR
    >>> Procedure("system", "greet", (ProcedureArgument("who", VARCHAR),), lambda session, who: print(f"hello {who}")).name
    'greet'
    """

    schema: str
    name: str
    arguments: tuple[ProcedureArgument, ...]
    call: Callable[..., None]
