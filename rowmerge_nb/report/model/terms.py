"""Short definitions of the terms that a report uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, Flow, StatementState
from rowmerge_nb.base.words import TRINO_VERSION
from rowmerge_nb.report.words.display_values import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.trace.trace import Trace

SINKS: Final = (
    "A writer is the engine's, and has one sink, which is the connector's: the writer counts the"
    " rows of its pages and hands them over, the sink stores them."
)
_FRAGMENT: Final = (
    "What a sink gives at its end, for the connector's finish call: what it has stored. How many"
    " there are is the store's affair: tables in memory give one per kind of change (rows to"
    " delete, rows to insert), Iceberg one per file."
)
_VERSION: Final = (
    "The store's number of a state of the table, here {}. Each commit makes a new one; a store may"
    " number those of all its tables together."
)


@dataclass(frozen=True)
class TermDefinitions:
    """Terms with their definitions."""

    rows: tuple[tuple[str, str], ...]

    @property
    def summary(self) -> str:
        return ", ".join(word for word, _ in self.rows)


def build_terms(trace: Trace) -> TermDefinitions | None:
    if trace.kind not in ROW_CHANGES or trace.state != StatementState.FINISHED:
        return None
    return TermDefinitions(tuple(_terms(trace)))


def _terms(trace: Trace) -> Iterator[tuple[str, str]]:
    yield (
        "engine, connector, store",
        "The engine runs a statement, by a connector's code, on tables that a store keeps.",
    )
    yield (
        "coordinator, task",
        "The coordinator plans a statement and ends it; tasks do the work side by side.",
    )
    yield (
        "page, channel",
        "A page is some rows in columns, called channels and known by their numbers.",
    )
    yield "row_id", "By it the store finds a row again; the engine does not look inside."
    if trace.kind == "MERGE":
        yield "unique_id", "The engine's own number of a target row while the statement runs."
    if trace.settings.flow == Flow.UPDATABLE:
        yield (
            "split, page source",
            (
                "A split is the part of the table that one task reads, by a page source, which"
                " changes its rows as well."
            ),
        )
    else:
        yield (
            "row change paradigm",
            "The form in which the connector takes changes; transform_page brings rows into it.",
        )
        yield (
            "era",
            (
                "Whose pages these are: of the design documents of Trino's MERGE (documents), or"
                f" of {TRINO_VERSION} (current). Here: {trace.settings.era}."
            ),
        )
        yield (
            "layout",
            (
                "What the connector wants rows spread over the writers by: the insert layout is for"
                " rows to insert, the update layout for others."
            ),
        )
        yield "writer (MergeWriter), sink (ConnectorMergeSink)", SINKS
    yield (
        "handle",
        (
            "The connector's own note of a table, or of this change of it; the engine only hands"
            " it on."
        ),
    )
    yield "fragment", _FRAGMENT
    if trace.target.version_after is not None:
        yield "version", _VERSION.format(visible(str(trace.target.version_after)))
    yield (
        "commit",
        (
            "It ends the transaction: before it readers see nothing of the change, and then all of"
            " it at once."
        ),
    )
