"""Observers of users: metrics, lineage, or a log of statements in a few lines of Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace


@dataclass(frozen=True, kw_only=True)
class ObservedStatement:
    """A statement as an observer gets it: plain data, and a copy of its own in every call.

    Args:
        id: the statement's id, the same in all calls about it.
        text: its text, with the values of parameters.
        kind: its first words, as ``MERGE`` or ``CREATE TABLE AS``.
        table: catalog, schema and name of the table that it changes; empty for a query.
        sources: the names of the other tables and the DataFrames that it reads; a DataFrame has one
            part.
        connector: the kind of store of the table; ``""`` for a query.
        is_rehearsal: whether it is rolled back in the end.
        counts: the rows so far, from ``after_action`` on: ``changed``, and for MERGE, UPDATE and
            DELETE ``joined`` and ``matched``.
        seconds: the duration of each step so far.
        trace: the trace, in the last call about the statement; None before.
    """

    id: str
    text: str
    kind: str
    table: tuple[str, ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    connector: str = ""
    is_rehearsal: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    trace: Trace | None = None


class Observer:
    """Watches the statements of an engine. Subclasses override the hooks that they need.

    A hook cannot change what happens: it gets plain data, an exception becomes a notice of the
    statement, and it cannot run statements. ``before_begin`` is called first. Exactly one of
    ``after_commit``, ``after_rehearsal`` and ``on_failure`` is called last.

    Attributes:
        name: the name in notices; by default that of the class.

    >>> from rowmerge_nb import Engine, Observer
    >>> class Log(Observer):
    ...     def before_begin(self, statement):
    ...         print("begin", statement.kind)
    ...     def after_commit(self, statement):
    ...         print("committed", statement.trace.state)
    >>> engine = Engine(observers=[Log()])
    >>> result = engine.run("SHOW TABLES")
    begin SHOW TABLES
    committed finished
    """

    name: str = ""

    def before_begin(self, statement: ObservedStatement) -> None:
        """Called when the statement is analyzed, and nothing has begun."""

    def after_action(self, statement: ObservedStatement) -> None:
        """Called when the tasks of a statement that writes rows have ended, before their account is
        checked.
        """

    def before_finish(self, statement: ObservedStatement) -> None:
        """Called before the statement is committed or, for a rehearsal, rolled back."""

    def after_commit(self, statement: ObservedStatement) -> None:
        """Called when the statement is committed."""

    def after_rehearsal(self, statement: ObservedStatement) -> None:
        """Called when a rehearsal is rolled back."""

    def on_failure(self, statement: ObservedStatement) -> None:
        """Called when the statement has failed and is rolled back; ``statement.trace.error`` is the
        error.
        """
