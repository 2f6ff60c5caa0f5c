"""The calls of the connector's contract, and the work of each writer, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """One call of the connector's contract.

    Args:
        order: position in the log, from 1: the coordinator's calls before the tasks, the tasks' by
            writer, the coordinator's after.
        given: the arguments besides session and handles, abbreviated: ``2 fragments``, ``D 3, I
            2``.
        gave: the result, abbreviated: ``DELETE_ROW_AND_INSERT_ROW``, ``1 fragment``; ``""`` for
            nothing or unknown.
        bytes: size of the page or of the fragments.
        injected: the injected fault if it raised nothing, as in the option ``fault``.

    >>> Call(1, "writer", "finish", number=0).where
    'writer 0'
    """

    order: int
    caller: str
    method: str
    given: str = ""
    gave: str = ""
    rows: int | None = None
    bytes: int | None = None
    seconds: float = 0.0
    started: float = 0.0
    error: str | None = None
    number: int | None = None
    injected: str = ""

    @property
    def where(self) -> str:
        """The caller in words: ``coordinator``, ``writer 0``, ``split 3``."""
        return self.caller if self.number is None else f"{self.caller} {self.number}"


@dataclass(frozen=True)
class WriterRecord:
    """One writer's work.

    Args:
        counted: changed rows: positions minus the sum of insert_from_update.
    """

    writer: int
    rows: Mapping[int, int]
    pages: int
    fragments: int
    fragment_bytes: int
    counted: int
    state: str = "finished"
