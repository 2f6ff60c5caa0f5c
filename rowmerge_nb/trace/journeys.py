"""Row journeys: the path of each joined row through join, clauses, processor and sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import ROW_CHANGES, StatementState
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.page_samples import Answer
from rowmerge_nb.trace.samples import rows_of, source_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.trace.clause_record import ClauseRecord, Term
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

NO_CLAUSE: Final = -1
"""The case number of rows for which no clause fired."""
ON: Final = "on"
"""The channel of ON in `PageSample.truths`; clauses use their numbers."""


class JoinResult(StrEnum):
    """A row's result in the join; CHOSEN for rows selected by the WHERE of UPDATE or DELETE."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"
    CHOSEN = "chosen"


class Fate(StrEnum):
    """A clause's result for a row."""

    FIRES = "fires"
    FALSE = "false"
    UNKNOWN = "unknown"
    NOT_TRUE = "not true"
    """False or unknown: which of both is not known."""
    NOT_REACHED = "not reached"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class TermTruth:
    """A condition's or part's result for one row.

    Args:
        values: the columns it reads: side, column, value.
    """

    term: Term
    answer: Answer
    # Values of rows and lists have no hash.
    values: tuple[tuple[str, str, Any], ...] = field(default=(), hash=False)
    terms: tuple[TermTruth, ...] = ()

    @property
    def deciding(self) -> tuple[TermTruth, ...]:
        """The smallest parts that determine the result; the whole condition if a part's result is
        not known.

        >>> from rowmerge_nb.trace.clause_record import Term
        >>> parts = (TermTruth(Term("a"), Answer.TRUE), TermTruth(Term("b"), Answer.UNKNOWN))
        >>> [part.term.text for part in TermTruth(Term("a AND b", "AND"), Answer.UNKNOWN, (), parts).deciding]
        ['b']
        """
        alike = (
            tuple(part for part in self.terms if part.answer is self.answer)
            if self.term.operator != "NOT"
            else self.terms
        )
        if any(part.answer is Answer.NOT_KNOWN for part in self.terms):
            return (self,)
        return tuple(inner for part in alike for inner in part.deciding) or (self,)


@dataclass(frozen=True)
class Verdict:
    """A clause's result for a row.

    Args:
        condition: its condition's result; None without one, or if not known or not evaluated.
    """

    clause: ClauseRecord
    fate: Fate
    condition: TermTruth | None = None


@dataclass(frozen=True)
class Journey:
    """The path of one joined row.

    Args:
        source: the source values by column, and ``target`` the target's; None without such a row.
        case_number: the clause that fired; -1 for none.
        becomes: the letters of the output rows; ``""`` if it changes nothing.
        writers: the writer of each output row; -1 if unknown.
        on: ON's result; None for an unmatched row or if unknown.
        barred: for an unmatched source row, the part of ON that its own NULL makes unknown for
            every target row.
    """

    source_row: int | None
    source: Mapping[str, Any] | None
    target: Mapping[str, Any] | None
    join: JoinResult
    passed: tuple[int, ...]
    case_number: int
    clause: str
    operation: Operation
    becomes: str
    writers: tuple[int, ...]
    on: TermTruth | None = None
    verdicts: tuple[Verdict, ...] = ()
    made: Mapping[str, Any] | None = None
    page_row: int = 0
    barred: TermTruth | None = None


def journeys_of(trace: Trace, limit: int | None = None) -> tuple[Journey, ...] | None:
    """Return the recorded journeys in source order; None if both sides' values were not
    recorded.
    """
    return None if trace.samples.pages is None else _of_pages(trace, trace.samples.pages, limit)


def journeys_at(
    trace: Trace, rows: npt.NDArray[np.bool_], limit: int | None = None
) -> tuple[Journey, ...] | None:
    """Return the journeys of selected rows of `PageSample.before`; see `journeys_of`."""
    pages = trace.samples.pages
    return None if pages is None else _of_pages(trace, pages, limit, rows)


def asked_journeys(trace: Trace) -> tuple[Journey, ...]:
    request = trace.samples.requested_rows
    pages = None if request is None else request.pages
    return () if pages is None else _of_pages(trace, pages) or ()


def untouched_journeys(trace: Trace) -> tuple[Journey, ...]:
    """Return the journeys of target rows that no source row matches; none if they are not known."""
    if trace.samples.untouched_rows is None or trace.kind != "MERGE":
        return ()
    verdicts = tuple(
        Verdict(clause, Fate.NOT_APPLICABLE) for clause in trace.clauses if clause.number >= 0
    )
    names = trace.samples.untouched_rows.schema.names
    columns = [python_values(column) for column in trace.samples.untouched_rows.columns]
    return tuple(
        Journey(
            source_row=None,
            source=None,
            target=dict(zip(names, row, strict=True)),
            join=JoinResult.NOT_MATCHED_BY_SOURCE,
            passed=(),
            case_number=NO_CLAUSE,
            clause="",
            operation=Operation.NONE,
            becomes="",
            writers=(),
            verdicts=verdicts,
        )
        for row in zip(*columns, strict=True)
    )


def _of_pages(
    trace: Trace,
    whole: PageSample,
    limit: int | None = None,
    rows: npt.NDArray[np.bool_] | None = None,
) -> tuple[Journey, ...] | None:
    if whole.witness is None:
        return None
    merged = trace.kind == "MERGE"
    selected_rows = source_order(whole)
    selected_rows = (
        selected_rows[:limit] if rows is None else selected_rows[rows[selected_rows]][:limit]
    )
    pages, order = rows_of(whole, selected_rows), selected_rows.tolist()
    clauses = {clause.number: clause for clause in trace.clauses}
    cases = case_numbers(pages) if merged else np.zeros(len(order), np.int64)
    joins = joins_of(pages)
    letters = [
        Operation(number).letter
        for number in pages.after.column(pages.layout.after.operation).to_pylist()
    ]
    after = _new_rows(pages)
    journeys: list[Journey] = []
    start = 0
    for index, ((at, source, target), number) in enumerate(
        zip(sides_of(pages), cases.tolist(), strict=True)
    ):
        end = start + pages.produced[index]
        join = JoinResult(joins[index]) if merged else JoinResult.CHOSEN
        clause = clauses.get(number)
        sides = {"source": source, "target": target}
        verdicts = tuple(_verdicts(trace, pages, index, join, number, sides))
        journey = Journey(
            source_row=at,
            source=source,
            target=target,
            join=join,
            passed=tuple(v.clause.number for v in verdicts if v.fate in _PASSED),
            case_number=number,
            clause=clause.text if clause is not None else "",
            operation=clause.operation if clause is not None else Operation.NONE,
            becomes="".join(letters[start:end]),
            writers=pages.writers[start:end],
            on=_answered(pages, index, ON, trace.join.on, sides),
            verdicts=verdicts,
            made=next((row for row in after[start:end] if row is not None), None),
            page_row=order[index],
            barred=(
                _barred(trace.join.on, source)
                if join is JoinResult.NOT_MATCHED and source is not None
                else None
            ),
        )
        journeys.append(journey)
        start = end
    return tuple(journeys)


def journey_columns(trace: Trace) -> dict[str, list[Any]]:
    """Return the recorded journeys column by column, in source order.

    The columns are those of `Journey` without the conditions' answers; the values of source and
    target are ``source.<name>`` and ``target.<name>``. A side that no row has is missing.

    Raises:
        RowMergeError: NOT_SUPPORTED if there are none.
    """
    request = trace.samples.requested_rows
    for pages in (trace.samples.pages, None if request is None else request.pages):
        if pages is not None and pages.witness is not None and pages.before.num_rows:
            return _columns_of(trace, rows_of(pages, source_order(pages)))
    raise _no_journeys(trace)


def _columns_of(trace: Trace, pages: PageSample) -> dict[str, list[Any]]:
    joins, cases = [JoinResult.CHOSEN], np.zeros(pages.before.num_rows, np.int64)
    join_of_row = np.zeros(pages.before.num_rows, np.int64)
    if trace.kind == "MERGE":
        names, join_of_row = np.unique(joins_of(pages), return_inverse=True)
        joins, cases = [JoinResult(name) for name in names], case_numbers(pages)
    codes = join_of_row * (cases.max() + 2) + cases - NO_CLAUSE
    _, first, path_of_row = np.unique(codes, return_index=True, return_inverse=True)
    paths = [(joins[join_of_row[row]], int(cases[row])) for row in first.tolist()]
    operations = {clause.number: clause.operation.name for clause in trace.clauses}
    sizes = np.array(pages.produced, np.int64)
    numbers = pages.after.column(pages.layout.after.operation).to_numpy(zero_copy_only=False)
    produced, produced_of_row = _distinct_spans(numbers, sizes)
    writers, writers_of_row = _distinct_spans(
        np.array(pages.writers, np.int64), sizes if pages.writers else sizes * 0
    )
    letters = ["".join(Operation(number).letter for number in span) for span in produced]
    return {
        "source_row": _source_rows(pages),
        **_side_columns(pages, "source"),
        "join": _each([join for join, _ in paths], path_of_row),
        **_side_columns(pages, "target"),
        "passed": _each([_passed(trace, *path) for path in paths], path_of_row),
        "case_number": cases.tolist(),
        "operation": _each(
            [operations.get(case, Operation.NONE.name) for _, case in paths], path_of_row
        ),
        "becomes": _each(letters, produced_of_row),
        "writers": _each(writers, writers_of_row),
    }


def _each(values: Sequence[Any], indices: npt.NDArray[np.int64]) -> list[Any]:
    """Return the value at each index; values may be tuples."""
    objects = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        objects[index] = value
    result: list[Any] = objects[indices].tolist()
    return result


def _distinct_spans(
    numbers: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[list[tuple[int, ...]], npt.NDArray[np.int64]]:
    """Return the distinct runs of numbers, and for each run of these sizes its index there.

    >>> _distinct_spans(np.array([2, 1, 3, 2, 1]), np.array([2, 0, 1, 2]))
    ([(), (3,), (2, 1)], array([2, 0, 1, 2]))
    """
    starts = np.cumsum(sizes) - sizes
    codes = sizes
    for step in range(sizes.max(initial=0)):
        part = np.zeros(len(sizes), np.int64)
        longer = sizes > step
        part[longer] = numbers[starts[longer] + step] - numbers.min()
        codes = np.unique(codes * (part.max() + 1) + part, return_inverse=True)[1]
    _, first, indices = np.unique(codes, return_index=True, return_inverse=True)
    spans = [
        tuple(numbers[start : start + size].tolist())
        for start, size in zip(starts[first], sizes[first], strict=True)
    ]
    return spans, indices


def _source_rows(pages: PageSample) -> list[Any]:
    numbers = _witness(pages, "source_row")
    return [None] * pages.before.num_rows if numbers is None else numbers.to_pylist()


def _witness(pages: PageSample, name: str) -> pa.Array | None:
    witness = pages.witness
    return witness.column(name) if witness is not None and name in witness.schema.names else None


def _side_columns(pages: PageSample, side: str) -> dict[str, list[Any]]:
    rows = _witness(pages, side)
    if rows is None or rows.null_count == len(rows):
        return {}
    return {
        f"{side}.{rows.type.field(index).name}": python_values(values)
        for index, values in enumerate(rows.flatten())
    }


def _passed(trace: Trace, join: JoinResult, case: int) -> tuple[int, ...]:
    """Return the clauses whose conditions were evaluated for a row and were not true."""
    return tuple(
        clause.number
        for clause in trace.clauses
        if clause.number >= 0
        and clause.number != case
        and join_of_clause(clause) is join
        and (case == NO_CLAUSE or clause.number < case)
    )


def told_journeys(trace: Trace, limit: int | None = None) -> tuple[Journey, ...]:
    """Return the journeys of a trace; NOT_SUPPORTED if it has none."""
    journeys = journeys_of(trace, limit)
    if journeys:
        return journeys
    raise _no_journeys(trace)


def _no_journeys(trace: Trace) -> RowMergeError:
    msg, hint = _why_none(trace)
    return RowMergeError.unsupported(msg, hint=hint)


def _why_none(trace: Trace) -> tuple[str, str]:
    if trace.kind not in ROW_CHANGES:
        return (
            f"A trace of {trace.kind} has no joined rows",
            "Call it for a MERGE, UPDATE or DELETE.",
        )
    if trace.error is not None:
        return (
            f"This {trace.kind} failed ({trace.error.code}) before its rows were returned",
            "Its error names the cause. Fix it and run the statement again.",
        )
    if trace.state is StatementState.PLANNED:
        return (
            f"This {trace.kind} was planned but not run, so no rows were joined",
            "rehearse=True runs it, and changes nothing.",
        )
    if trace.join.rows == 0:
        return (
            f"This {trace.kind} had no rows to process",
            "Check the source and the conditions that select its rows.",
        )
    return (
        f"The trace of this {trace.kind} has no rows with the values of both sides",
        (
            "Run it with trace='full', or with why=\"customer = 'Dave'\" (--why in a cell) for some"
            " rows."
        ),
    )


def case_numbers(pages: PageSample) -> npt.NDArray[np.int64]:
    """Return the clause of each row; -1 for none."""
    numbers = (
        pages.before.column(pages.layout.before.case_number).cast(pa.int64()).fill_null(NO_CLAUSE)
    )
    cases: npt.NDArray[np.int64] = numbers.to_numpy(zero_copy_only=False)
    return cases


def sides_of(
    pages: PageSample,
) -> list[tuple[int | None, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    names = pages.witness.schema.names if pages.witness is not None else []
    empty: list[Any] = [None] * pages.before.num_rows

    def side(name: str) -> list[Any]:
        return (
            python_values(pages.witness.column(name))
            if pages.witness is not None and name in names
            else empty
        )

    return list(zip(side("source_row"), side("source"), side("target"), strict=True))


def joins_of(pages: PageSample) -> npt.NDArray[np.str_]:
    def is_there(side: str) -> npt.NDArray[np.bool_]:
        if pages.witness is None or side not in pages.witness.schema.names:
            return np.zeros(pages.before.num_rows, np.bool_)
        valid: npt.NDArray[np.bool_] = (
            pages.witness.column(side).is_valid().to_numpy(zero_copy_only=False)
        )
        return valid

    return np.select(
        [~is_there("target"), is_there("source")],
        [JoinResult.NOT_MATCHED, JoinResult.MATCHED],
        JoinResult.NOT_MATCHED_BY_SOURCE,
    )


class WhenClause(Protocol):
    """The attributes that determine a clause's rows, common to the analysis and the trace."""

    @property
    def number(self) -> int:
        """The case number."""

    @property
    def matched(self) -> bool | None:
        """Whether it is WHEN MATCHED."""

    @property
    def by_source(self) -> bool:
        """Whether it is WHEN NOT MATCHED BY SOURCE."""


def join_of_clause(clause: WhenClause) -> JoinResult | None:
    """Return the rows that a clause applies to; None for the record of "no clause"."""
    if clause.number < 0 or clause.matched is None:
        return None
    if clause.matched:
        return JoinResult.MATCHED
    return JoinResult.NOT_MATCHED_BY_SOURCE if clause.by_source else JoinResult.NOT_MATCHED


_PASSED: Final = frozenset({Fate.FALSE, Fate.UNKNOWN, Fate.NOT_TRUE})
FATES: Final = {Answer.FALSE: Fate.FALSE, Answer.UNKNOWN: Fate.UNKNOWN}


def _verdicts(
    trace: Trace,
    pages: PageSample,
    index: int,
    join: JoinResult,
    case: int,
    sides: Mapping[str, Mapping[str, Any] | None],
) -> Iterator[Verdict]:
    for clause in trace.clauses:
        if clause.number < 0:
            continue
        condition = _answered(pages, index, str(clause.number), clause.condition, sides)
        if clause.number == case:
            yield Verdict(clause, Fate.FIRES, condition)
        elif join_of_clause(clause) is not join:
            yield Verdict(clause, Fate.NOT_APPLICABLE)
        elif case != NO_CLAUSE and clause.number > case:
            yield Verdict(clause, Fate.NOT_REACHED)
        else:
            yield Verdict(
                clause,
                Fate.NOT_TRUE if condition is None else FATES.get(condition.answer, Fate.NOT_TRUE),
                condition,
            )


def _answered(
    pages: PageSample,
    index: int,
    name: str,
    condition: Term | None,
    sides: Mapping[str, Mapping[str, Any] | None],
) -> TermTruth | None:
    truths = pages.truths
    letters = (
        truths.column(name)[index].as_py()
        if truths is not None and name in truths.schema.names
        else None
    )
    if condition is None or letters is None or letters[0] == Answer.NOT_KNOWN:
        return None
    return _with_answers(condition, iter(letters), sides)


def _barred(on: Term | None, source: Mapping[str, Any]) -> TermTruth | None:
    if on is None:
        return None
    if on.operator == "AND":
        return next(filter(None, (_barred(term, source) for term in on.terms)), None)
    nulls = tuple(
        (side, name, None)
        for side, name in on.reads
        if side == "source" and source.get(name, "") is None
    )
    return TermTruth(on, Answer.UNKNOWN, nulls) if on.strict and nulls else None


def _with_answers(
    term: Term, letters: Iterator[str], sides: Mapping[str, Mapping[str, Any] | None]
) -> TermTruth:
    answer = Answer(next(letters))
    values = tuple((side, name, (sides[side] or {}).get(name)) for side, name in term.reads)
    return TermTruth(
        term, answer, values, tuple(_with_answers(part, letters, sides) for part in term.terms)
    )


def _new_rows(pages: PageSample) -> Sequence[Mapping[str, Any] | None]:
    count = pages.layout.column_count
    there = {Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT}
    operations = pages.after.column(pages.layout.after.operation).to_pylist()
    names = pages.after.schema.names[:count]
    columns = [python_values(pages.after.column(index)) for index in range(count)]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(operations))
    return [
        dict(zip(names, row, strict=True)) if Operation(o) in there else None
        for o, row in zip(operations, rows, strict=True)
    ]
