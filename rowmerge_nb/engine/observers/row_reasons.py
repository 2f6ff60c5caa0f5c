"""The reasons for the path of a row: its conditions and their parts, recomputed from the values in
the trace.

The conditions are those of the tasks, computed as tasks do. If the answer contradicts what the
engine did with the row, the condition is not explained.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.engine.spark.page_lowering import page_expression
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.engine.tasks.page_program import (
    AssignedColumn,
    PageEvaluator,
    PageExpression,
    PageProgram,
)
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, MergeAnalysis, UpdateAnalysis
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed.expressions import has_subquery, is_deterministic, walk
from rowmerge_nb.trace.journeys import (
    NO_CLAUSE,
    ON,
    JoinResult,
    case_numbers,
    join_of_clause,
    joins_of,
)
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.statements.action import Action
    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.sql.analyzer.analysis import ConditionTerm, RowChangeAnalysis
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

    Mask = npt.NDArray[np.bool_]

ATTEMPTS: Final = 64
"""The attempts to compute a part of a condition that fails for some rows."""
MOST_NODES: Final = 400
"""Larger conditions are not explained: that would take longer than the statement."""


class RowReasons(RunObserver):
    def __init__(self, analysis: RowChangeAnalysis) -> None:
        self._analysis = analysis
        self._truths: pa.RecordBatch | None = None

    def after_action(self, run: StatementRun, action: Action) -> None:
        pages = action.account.pages
        if pages is None:
            return
        with suppress(Exception), room():
            self._truths = with_truths(pages, self._analysis, *run.shown).truths

    def add_to_trace(self, trace: Trace) -> Trace:
        if trace.samples.pages is None or self._truths is None:
            return trace
        pages = replace(trace.samples.pages, truths=self._truths)
        return replace(trace, samples=replace(trace.samples, pages=pages))


def with_truths(
    pages: PageSample, analysis: RowChangeAnalysis, target: Named, source: Named
) -> PageSample:
    if pages.witness is None or not pages.before.num_rows:
        return pages
    conditions = dict(_conditions(pages, analysis))
    computed = _computed(_values(pages, target, source), conditions)
    truths = {name: _agreeing(letters, pages, name, analysis) for name, letters in computed.items()}
    return replace(
        pages,
        truths=pa.RecordBatch.from_pydict(
            truths, pa.schema([(name, pa.string()) for name in truths])
        ),
    )


def _conditions(
    pages: PageSample, analysis: RowChangeAnalysis
) -> Iterator[tuple[str, tuple[ConditionTerm, Mask]]]:
    if isinstance(analysis, UpdateAnalysis | DeleteAnalysis):
        if analysis.where is not None and analysis.where.condition is not None:
            yield "0", (analysis.where.condition, np.ones(pages.before.num_rows, np.bool_))
        return
    assert isinstance(analysis, MergeAnalysis)
    joins, cases = joins_of(pages), case_numbers(pages)
    if analysis.on.condition is not None:
        yield ON, (analysis.on.condition, joins == JoinResult.MATCHED)
    for clause in analysis.clauses:
        if clause.condition is not None and clause.condition.condition is not None:
            reached = (joins == join_of_clause(clause)) & (
                (cases == NO_CLAUSE) | (cases >= clause.number)
            )
            yield str(clause.number), (clause.condition.condition, reached)


def _values(pages: PageSample, target: Named, source: Named) -> pa.RecordBatch:
    assert pages.witness is not None
    arrays, names = [], []
    for side, columns in (("target", target), ("source", source)):
        if side in pages.witness.schema.names:
            arrays += pages.witness.column(side).flatten()
            names += [symbol.name for _, symbol in columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _computed(
    page: pa.RecordBatch, conditions: Mapping[str, tuple[ConditionTerm, Mask]]
) -> dict[str, pa.Array]:
    """Compute all parts of all conditions for the rows that reached them; one by one if the whole
    fails.
    """
    reached = {f"$reached_{name}": pa.array(rows) for name, (_, rows) in conditions.items()}
    whole = pa.RecordBatch.from_arrays(
        [*page.columns, *reached.values()], names=[*page.schema.names, *reached]
    )
    programs = {
        name: [_program(part, f"$reached_{name}") for part in term.walk()]
        for name, (term, _) in conditions.items()
    }
    printable = [
        program for program in chain.from_iterable(programs.values()) if program is not None
    ]
    letters = dict(
        zip(
            map(id, printable),
            _letters(PageEvaluator(PageProgram()), printable, whole),
            strict=True,
        )
    )
    not_known = pa.repeat(str(Answer.NOT_KNOWN), page.num_rows)
    return {
        name: pc.if_else(
            reached[f"$reached_{name}"],
            pc.binary_join_element_wise(
                *(letters.get(id(program), not_known) for program in parts), ""
            ),
            pa.scalar(None, pa.string()),
        )
        for name, parts in programs.items()
    }


def _program(term: ConditionTerm, reached: str) -> AssignedColumn | None:
    """Print a part of a condition for pages; None if pages cannot compute it, or its value changes
    from call to call.
    """
    if (
        has_subquery(term.tree)
        or not is_deterministic(term.tree)
        or len(list(islice(walk(term.tree), MOST_NODES + 1))) > MOST_NODES
    ):
        return None
    printer = PagePrinter()
    try:
        printed = page_expression(term.tree, printer, condition=False)
    except UnprintableError:
        return None
    if printer.subqueries:
        return None
    text = f"CASE WHEN {quoted(reached)} THEN {printed.text} END"
    return AssignedColumn(
        term.text,
        pa.bool_(),
        PageExpression(text, None, "", reads=printed.reads | {reached}, lists=printed.lists),
    )


def _letters(
    evaluator: PageEvaluator, programs: Sequence[AssignedColumn], page: pa.RecordBatch
) -> list[pa.Array]:
    try:
        return [_answers(array) for array in evaluator.values_of(programs, page)]
    except RowMergeError:
        return [_one_by_one(evaluator, program, page) for program in programs]


def _answers(truths: pa.Array) -> pa.Array:
    return pc.if_else(truths, str(Answer.TRUE), str(Answer.FALSE)).fill_null(str(Answer.UNKNOWN))


def _one_by_one(
    evaluator: PageEvaluator, program: AssignedColumn, page: pa.RecordBatch
) -> pa.Array:
    """Compute a part of a condition that fails for some rows; rows that take too many attempts stay
    unknown.
    """
    answers: dict[int, pa.Array] = {}
    waiting = [(0, page.num_rows)]
    for _ in range(ATTEMPTS):
        if not waiting:
            break
        start, rows = waiting.pop()
        try:
            [truths] = evaluator.values_of([program], page.slice(start, rows))
            answers[start] = _answers(truths)
        except RowMergeError:
            if rows == 1:
                answers[start] = pa.array([str(Answer.FAILED)])
            else:
                waiting += [(start + rows // 2, rows - rows // 2), (start, rows // 2)]
    answers |= {start: pa.repeat(str(Answer.NOT_KNOWN), rows) for start, rows in waiting}
    return pa.concat_arrays([answers[start] for start in sorted(answers)])


def _agreeing(
    letters: pa.Array, pages: PageSample, name: str, analysis: RowChangeAnalysis
) -> pa.Array:
    """Discard answers that contradict the row's path: ON of a matched row and a clause that fired
    are true, a clause that was passed is not.
    """
    fired = np.ones(len(letters), np.bool_)
    if name != ON and isinstance(analysis, MergeAnalysis):
        fired = case_numbers(pages) == int(name)
    whole = pc.utf8_slice_codeunits(letters, 0, 1)
    fits = pc.or_(
        pc.equal(whole, str(Answer.NOT_KNOWN)),
        pc.equal(pc.equal(whole, str(Answer.TRUE)), pa.array(fired)),
    )
    return pc.if_else(
        fits, letters, pc.replace_substring_regex(letters, ".", str(Answer.NOT_KNOWN))
    )
