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
    "A writer belongs to the engine and has one sink, which belongs to the connector. The writer"
    " counts the rows of its pages and passes the pages to the sink, which stores them."
)
_FRAGMENT: Final = (
    "The sink's description of what it stored, for the connector's finish call. The"
    " store decides how many there are: tables in memory return one for the deleted and one"
    " for the inserted rows, Iceberg returns one for each file."
)
_VERSION: Final = (
    "The store's number of a state of the table, here {}. Each commit makes a new one; some stores"
    " number the states of all their tables together."
)


@dataclass(frozen=True)
class TermDefinitions:
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
        "The engine runs statements. A connector is the code by which it uses a store of tables.",
    )
    yield (
        "coordinator, task",
        "The coordinator plans and commits a statement; tasks process its rows in parallel.",
    )
    yield (
        "page, channel",
        "A page is a block of rows. Its columns are called channels and have numbers.",
    )
    yield "row_id", "The store's identifier of a row; the engine does not interpret it."
    if trace.kind == "MERGE":
        yield "unique_id", "The engine's own number of a target row during the statement."
    if trace.settings.flow == Flow.UPDATABLE:
        yield (
            "split, page source",
            (
                "A split is the part of a table that one task reads. Its page source reads the rows,"
                " and changes them too."
            ),
        )
    else:
        yield (
            "row change paradigm",
            "The form of changes that the connector accepts; transform_page converts rows to it.",
        )
        yield (
            "era",
            (
                "The version of the page layouts: those of the design documents of Trino's MERGE"
                f" (documents), or of {TRINO_VERSION} (current). Here: {trace.settings.era}."
            ),
        )
        yield (
            "layout",
            (
                "How the connector wants rows distributed over the writers: the insert layout for"
                " rows to insert, the update layout for the others."
            ),
        )
        yield "writer (MergeWriter), sink (ConnectorMergeSink)", SINKS
    yield (
        "handle",
        "The connector's description of a table or of a change; the engine only passes it on.",
    )
    yield "fragment", _FRAGMENT
    if trace.target.version_after is not None:
        yield "version", _VERSION.format(visible(str(trace.target.version_after)))
    yield (
        "commit",
        (
            "The end of the transaction. Before it, readers see nothing of the change; after it,"
            " they see the whole change."
        ),
    )
