"""What reports and results know of a statement that can run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.trace.trace import Trace

Answer_co = TypeVar("Answer_co", covariant=True)


class RunResult(Protocol):
    """The result of a run."""

    @property
    def trace(self) -> Trace: ...

    @property
    def count(self) -> int | None:
        """The number of changed rows."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of rows for each operation."""


class Rerun(Protocol[Answer_co]):
    """A statement that can run again on the rows that it had."""

    @property
    def trace(self) -> Trace: ...

    @property
    def no_cells(self) -> str:
        """Why cells of its source cannot be edited; ``""`` if they can."""

    @property
    def missing(self) -> str:
        """A sentence about the rows that the copy of the target lacks; ``""`` if it has all."""

    def run(
        self,
        sql: str | None = None,
        source: Mapping[int, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> Answer_co:
        """Rehearse it, with another text, cells of its source, or options."""

    def asked(self, row: Any, source_row: Any, columns: Mapping[str, Any]) -> Trace:
        """Look up rows that the trace does not have."""

    def untouched(self, trace: Trace) -> pa.Table | None:
        """Return the target's rows that were not joined, if they are known."""

    def checked_cells(self, edits: object) -> Mapping[int, Mapping[str, Any]]:
        """Return edited cells that have the right form, or raise INVALID_ARGUMENTS."""

    def target_metadata(self) -> ConnectorTableMetadata | None:
        """Return the columns of the target; None if it does not exist anymore."""

    def target_rows(self) -> pa.Table:
        """Read the target in its current state."""
