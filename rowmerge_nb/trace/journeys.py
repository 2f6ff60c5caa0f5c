"""Row journeys: which way each joined row went, through join, clauses, processor and sinks; put together from what a trace holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.trace.trace import ClauseRecord, PageSample, Trace

__all__ = ["Journey", "journeys_of"]


@dataclass(frozen=True)
class Journey:
    """The way of one joined row.

    Args:
        source_row: position of the source row; None without one.
        source: its values by column, and ``target`` those of the target row; None where there is no such row.
        join: ``matched``, ``not matched``, ``not matched by source``; of UPDATE and DELETE ``chosen`` by the WHERE condition.
        passed: numbers of the clauses that could have fired, and whose conditions were not true.
        case_number: the clause that fired; -1 for none.
        clause: its text.
        operation: what it does; NONE if no clause fired.
        becomes: letters of the rows that the processor made of it, in their order; ``""`` if it was dropped.
        writers: per such row the writer that stored it; -1 where that is not known.
    """

    source_row: int | None
    source: Mapping[str, Any] | None
    target: Mapping[str, Any] | None
    join: str
    passed: tuple[int, ...]
    case_number: int
    clause: str
    operation: Operation
    becomes: str
    writers: tuple[int, ...]


def journeys_of(trace: Trace) -> tuple[Journey, ...] | None:
    """Give the journeys of the rows that a trace holds, in the order of the source; None where rows were not kept with both sides.

    Of small statements these are all joined rows, of large ones the first per clause (``trace="full"`` keeps all).
    """
    pages = trace.pages
    if pages is None or pages.witness is None:
        return None
    clauses = {clause.number: clause for clause in trace.clauses}
    merged = trace.kind == "MERGE"
    found: list[tuple[int | None, Journey]] = []
    letters = [Operation(number).letter for number in pages.after.column(pages.layout.after.operation).to_pylist()]
    start = 0
    for index, (at, source, target) in enumerate(_sides(pages)):
        end = start + pages.produced[index]
        number = _case(pages, index) if merged else 0
        join = _join(source, target) if merged else "chosen"
        clause = clauses.get(number)
        journey = Journey(
            source_row=at,
            source=source,
            target=target,
            join=join,
            passed=tuple(
                c.number for c in trace.clauses if merged and _could_fire(c, join) and (number < 0 or c.number < number)
            ),
            case_number=number,
            clause=clause.text if clause is not None else "",
            operation=clause.operation if clause is not None else Operation.NONE,
            becomes="".join(letters[start:end]),
            writers=pages.writers[start:end],
        )
        found.append((at, journey))
        start = end
    return tuple(journey for _, journey in sorted(found, key=lambda pair: (pair[0] is None, pair[0] or 0)))


def _case(pages: PageSample, index: int) -> int:
    number = pages.before.column(pages.layout.before.case_number)[index].as_py()
    return -1 if number is None else int(number)


def _sides(pages: PageSample) -> list[tuple[int | None, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    names = pages.witness.schema.names if pages.witness is not None else []
    empty: list[Any] = [None] * pages.before.num_rows

    def side(name: str) -> list[Any]:
        return python_values(pages.witness.column(name)) if pages.witness is not None and name in names else empty

    return list(zip(side("source_row"), side("source"), side("target"), strict=True))


def _join(source: Mapping[str, Any] | None, target: Mapping[str, Any] | None) -> str:
    if target is None:
        return "not matched"
    return "matched" if source is not None else "not matched by source"


def _could_fire(clause: ClauseRecord, join: str) -> bool:
    """Tell whether a clause is about rows of this kind; the record of "no clause" is about none."""
    if clause.number < 0 or clause.matched is None:
        return False
    kind = "matched" if clause.matched else "not matched by source" if clause.by_source else "not matched"
    return kind == join
