"""Why a row went the way it did: what its conditions and their parts came to, computed once more of the values that the trace has of it.

The conditions are those that the tasks were asked, and what computes them is what tasks ask. Where it comes to something else than what
the engine has done with the row, nothing is told of that condition.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.engine.spark.in_task import page_expression
from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator, PageExpression, PageProgram
from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.names import quoted
from rowmerge_nb.sql.analyzer.analysis import DeleteAnalysis, MergeAnalysis, UpdateAnalysis
from rowmerge_nb.sql.duckdb.printer import PagePrinter, UnprintableError
from rowmerge_nb.sql.typed.expressions import Apply, Column, Constant, children, has_subquery, is_deterministic, references, walk
from rowmerge_nb.trace.journeys import NO_CLAUSE, case_numbers, could_fire, join_of_row, sides_of
from rowmerge_nb.trace.trace import Term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.sql.analyzer.analysis import ConditionTerm, RowChangeAnalysis
    from rowmerge_nb.sql.typed.expressions import Typed
    from rowmerge_nb.trace.trace import PageSample

__all__ = ["term_of", "with_truths"]

ATTEMPTS: Final = 64
"""So often a part of a condition is computed at most where it cannot be computed for some rows."""
ON: Final = "on"
_LETTERS: Final = {True: "t", False: "f", None: "u"}
_FAILED, _NOT_KNOWN = "e", "?"
_STRICT: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "arithmetic"})
MOST_NODES: Final = 400
"""Nothing is told of a condition with more: to look at it would take longer than the statement."""


def term_of(term: ConditionTerm, target: Named, source: Named) -> Term:
    """Give a condition as a trace keeps it.

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
    """Tell whether a NULL in any column makes it NULL, and nothing else does."""
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
    terms = {name: list(_walk(term)) for name, (term, _) in asked.items()}
    computed = _computed(_values(pages, target, source), {name: (terms[name], rows) for name, (_, rows) in asked.items()})
    truths = {name: _agreeing(letters, pages, name, analysis) for name, letters in computed.items()}
    return replace(pages, truths=pa.RecordBatch.from_pydict(truths, pa.schema([(name, pa.string()) for name in truths])))


def _conditions(pages: PageSample, analysis: RowChangeAnalysis) -> Iterator[tuple[str, tuple[ConditionTerm, list[bool]]]]:
    """Give the conditions, and of which rows each was asked."""
    sides = sides_of(pages)
    if isinstance(analysis, UpdateAnalysis | DeleteAnalysis):
        if analysis.where is not None and analysis.where.condition is not None:
            yield "0", (analysis.where.condition, [True] * len(sides))
        return
    assert isinstance(analysis, MergeAnalysis)
    joins, cases = [join_of_row(source, target) for _, source, target in sides], case_numbers(pages)
    if analysis.on.condition is not None:
        yield ON, (analysis.on.condition, [join == "matched" for join in joins])
    for clause in analysis.clauses:
        if clause.condition is not None and clause.condition.condition is not None:
            reached = [
                could_fire(clause, join) and (case == NO_CLAUSE or case >= clause.number)
                for join, case in zip(joins, cases, strict=True)
            ]
            yield str(clause.number), (clause.condition.condition, reached)


def _walk(term: ConditionTerm) -> Iterator[ConditionTerm]:
    yield term
    for part in term.terms:
        yield from _walk(part)


def _values(pages: PageSample, target: Named, source: Named) -> pa.RecordBatch:
    """Give the rows' values by the plan's symbols."""
    assert pages.witness is not None
    arrays, names = [], []
    for side, columns in (("target", target), ("source", source)):
        if side in pages.witness.schema.names:
            arrays += pages.witness.column(side).flatten()
            names += [symbol.name for _, symbol in columns]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _computed(page: pa.RecordBatch, asked: Mapping[str, tuple[list[ConditionTerm], list[bool]]]) -> dict[str, list[str | None]]:
    """Compute all parts of all conditions, each for the rows of which it was asked, together or, if one fails, one by one."""
    reached = {f"$reached_{name}": pa.array(rows) for name, (_, rows) in asked.items()}
    whole = pa.RecordBatch.from_arrays([*page.columns, *reached.values()], names=[*page.schema.names, *reached])
    programs = {name: [_program(term, f"$reached_{name}") for term in terms] for name, (terms, _) in asked.items()}
    known = [program for program in chain.from_iterable(programs.values()) if program is not None]
    letters = dict(zip(map(id, known), _letters(PageEvaluator(PageProgram()), known, whole), strict=True))
    unknown = [_NOT_KNOWN] * page.num_rows
    return {
        name: [
            "".join(letters.get(id(program), unknown)[row] for program in programs[name]) if was_asked else None
            for row, was_asked in enumerate(rows)
        ]
        for name, (_, rows) in asked.items()
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


def _letters(evaluator: PageEvaluator, programs: Sequence[AssignedColumn], page: pa.RecordBatch) -> list[list[str]]:
    """Compute parts of conditions for all rows; where one fails, part by part, and of the part that fails by halves."""
    try:
        return [[_LETTERS[value] for value in array.to_pylist()] for array in evaluator.values_of(programs, page)]
    except RowMergeError:
        return [_one_by_one(evaluator, program, page) for program in programs]


def _one_by_one(evaluator: PageEvaluator, program: AssignedColumn, page: pa.RecordBatch) -> list[str]:
    """Compute a part of a condition for all rows, of which it fails for some; what would take too many attempts is not known."""
    letters = [_NOT_KNOWN] * page.num_rows
    waiting = [(0, page.num_rows)]
    for _ in range(ATTEMPTS):
        if not waiting:
            break
        start, rows = waiting.pop()
        try:
            [found] = evaluator.values_of([program], page.slice(start, rows))
            letters[start : start + rows] = [_LETTERS[value] for value in found.to_pylist()]
        except RowMergeError:
            if rows == 1:
                letters[start] = _FAILED
            else:
                waiting += [(start + rows // 2, rows - rows // 2), (start, rows // 2)]
    return letters


def _agreeing(letters: Sequence[str | None], pages: PageSample, name: str, analysis: RowChangeAnalysis) -> list[str | None]:
    """Take back what does not go with what was done to the row: a matched row's ON is true, a clause that fired too, one that was passed is not."""
    cases = case_numbers(pages) if isinstance(analysis, MergeAnalysis) else [0] * len(letters)
    agreed: list[str | None] = []
    for known, case in zip(letters, cases, strict=True):
        true = name == ON or case == int(name)
        fits = known is None or known[0] == _NOT_KNOWN or (known[0] == "t") == true
        agreed.append(known if fits or known is None else _NOT_KNOWN * len(known))
    return agreed
