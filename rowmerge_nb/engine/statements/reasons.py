"""Why a row went the way it did: what its conditions and their parts came to, computed once more of the values that the trace has of it.

The conditions are those that the tasks were asked, and what computes them is what tasks ask. Where it comes to something else than what
the engine has done with the row, nothing is told of that condition.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.engine.spark.page_lowering import page_expression
from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator, PageExpression, PageProgram
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, MergeAnalysis, UpdateAnalysis
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.typed.expressions import Apply, Column, Constant, children, has_subquery, is_deterministic, references, walk
from rowmerge_nb.trace.journeys import NO_CLAUSE, ON, Answer, Join, case_numbers, join_of_clause, joins_of
from rowmerge_nb.trace.trace import Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.sql.analyzer.analysis import ConditionTerm, RowChangeAnalysis
    from rowmerge_nb.sql.typed.expressions import Typed
    from rowmerge_nb.trace.trace import PageSample

    Mask = npt.NDArray[np.bool_]

ATTEMPTS: Final = 64
"""So often a part of a condition is computed at most where it cannot be computed for some rows."""
_STRICT: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "arithmetic"})
MOST_NODES: Final = 400
"""Nothing is told of a condition with more: to look at it would take longer than the statement."""


def term_of(term: ConditionTerm, target: Named, source: Named) -> Term:
    """Return a condition as a trace keeps it.

    Args:
        term: the condition.
        target: the target's columns, by the names that the witness has them under.
        source: those of the source.
    """
    names = {symbol.name: (side, name) for side, columns in (("target", target), ("source", source)) for name, symbol in columns}
    parts = tuple(term_of(part, target, source) for part in term.terms)
    read = () if parts else tuple(sorted(names[symbol] for symbol in references(term.tree) if symbol in names))
    return Term(term.text, term.operator, parts, read, strict=not parts and _is_strict(term.tree))


def _is_strict(tree: Typed) -> bool:
    """Return whether a NULL in any column makes it NULL, and nothing else does."""
    if isinstance(tree, Column):
        return True
    if isinstance(tree, Constant):
        return tree.value is not None
    strict = isinstance(tree, Apply) and (tree.name in _STRICT or (tree.name == "cast" and tree.detail != "try"))
    return strict and all(map(_is_strict, children(tree)))


def with_truths(pages: PageSample, analysis: RowChangeAnalysis, target: Named, source: Named) -> PageSample:
    """Add to sampled rows what their conditions came to.

    Args:
        pages: the rows.
        analysis: the statement.
        target: the target's columns, by the names that the witness has them under.
        source: those of the source.
    """
    if pages.witness is None or not pages.before.num_rows:
        return pages
    asked = dict(_conditions(pages, analysis))
    computed = _computed(_values(pages, target, source), asked)
    truths = {name: _agreeing(letters, pages, name, analysis) for name, letters in computed.items()}
    return replace(pages, truths=pa.RecordBatch.from_pydict(truths, pa.schema([(name, pa.string()) for name in truths])))


def _conditions(pages: PageSample, analysis: RowChangeAnalysis) -> Iterator[tuple[str, tuple[ConditionTerm, Mask]]]:
    """Yield the conditions, and of which rows each was asked."""
    if isinstance(analysis, UpdateAnalysis | DeleteAnalysis):
        if analysis.where is not None and analysis.where.condition is not None:
            yield "0", (analysis.where.condition, np.ones(pages.before.num_rows, np.bool_))
        return
    assert isinstance(analysis, MergeAnalysis)
    joins, cases = joins_of(pages), case_numbers(pages)
    if analysis.on.condition is not None:
        yield ON, (analysis.on.condition, joins == Join.MATCHED)
    for clause in analysis.clauses:
        if clause.condition is not None and clause.condition.condition is not None:
            reached = (joins == join_of_clause(clause)) & ((cases == NO_CLAUSE) | (cases >= clause.number))
            yield str(clause.number), (clause.condition.condition, reached)


def _values(pages: PageSample, target: Named, source: Named) -> pa.RecordBatch:
    """Return the rows' values by the plan's symbols."""
    assert pages.witness is not None
    arrays, names = [], []
    for side, columns in (("target", target), ("source", source)):
        if side in pages.witness.schema.names:
            arrays += pages.witness.column(side).flatten()
            names += [symbol.name for _, symbol in columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _computed(page: pa.RecordBatch, asked: Mapping[str, tuple[ConditionTerm, Mask]]) -> dict[str, pa.Array]:
    """Compute all parts of all conditions, each for the rows of which it was asked, together or, if one fails, one by one."""
    reached = {f"$reached_{name}": pa.array(rows) for name, (_, rows) in asked.items()}
    whole = pa.RecordBatch.from_arrays([*page.columns, *reached.values()], names=[*page.schema.names, *reached])
    programs = {name: [_program(part, f"$reached_{name}") for part in term.walk()] for name, (term, _) in asked.items()}
    known = [program for program in chain.from_iterable(programs.values()) if program is not None]
    letters = dict(zip(map(id, known), _letters(PageEvaluator(PageProgram()), known, whole), strict=True))
    not_known = pa.repeat(str(Answer.NOT_KNOWN), page.num_rows)
    return {
        name: pc.if_else(
            reached[f"$reached_{name}"],
            pc.binary_join_element_wise(*(letters.get(id(program), not_known) for program in parts), ""),
            pa.scalar(None, pa.string()),
        )
        for name, parts in programs.items()
    }


def _program(term: ConditionTerm, reached: str) -> AssignedColumn | None:
    """Print a part of a condition for pages; None where pages cannot be asked for it, or would answer otherwise each time."""
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
        term.text, pa.bool_(), PageExpression(text, None, "", reads=printed.reads | {reached}, lists=printed.lists)
    )


def _letters(evaluator: PageEvaluator, programs: Sequence[AssignedColumn], page: pa.RecordBatch) -> list[pa.Array]:
    """Compute parts of conditions for all rows; where one fails, part by part, and of the part that fails by halves."""
    try:
        return [_answers(array) for array in evaluator.values_of(programs, page)]
    except RowMergeError:
        return [_one_by_one(evaluator, program, page) for program in programs]


def _answers(truths: pa.Array) -> pa.Array:
    return pc.if_else(truths, str(Answer.TRUE), str(Answer.FALSE)).fill_null(str(Answer.UNKNOWN))


def _one_by_one(evaluator: PageEvaluator, program: AssignedColumn, page: pa.RecordBatch) -> pa.Array:
    """Compute a part of a condition for all rows, of which it fails for some; what would take too many attempts is not known."""
    found: dict[int, pa.Array] = {}
    waiting = [(0, page.num_rows)]
    for _ in range(ATTEMPTS):
        if not waiting:
            break
        start, rows = waiting.pop()
        try:
            [truths] = evaluator.values_of([program], page.slice(start, rows))
            found[start] = _answers(truths)
        except RowMergeError:
            if rows == 1:
                found[start] = pa.array([str(Answer.FAILED)])
            else:
                waiting += [(start + rows // 2, rows - rows // 2), (start, rows // 2)]
    found |= {start: pa.repeat(str(Answer.NOT_KNOWN), rows) for start, rows in waiting}
    return pa.concat_arrays([found[start] for start in sorted(found)])


def _agreeing(letters: pa.Array, pages: PageSample, name: str, analysis: RowChangeAnalysis) -> pa.Array:
    """Take back what does not go with what was done to the row: a matched row's ON is true, a clause that fired too, one that was passed is not."""
    fired = np.ones(len(letters), np.bool_)
    if name != ON and isinstance(analysis, MergeAnalysis):
        fired = case_numbers(pages) == int(name)
    whole = pc.utf8_slice_codeunits(letters, 0, 1)
    fits = pc.or_(pc.equal(whole, str(Answer.NOT_KNOWN)), pc.equal(pc.equal(whole, str(Answer.TRUE)), pa.array(fired)))
    return pc.if_else(fits, letters, pc.replace_substring_regex(letters, ".", str(Answer.NOT_KNOWN)))
