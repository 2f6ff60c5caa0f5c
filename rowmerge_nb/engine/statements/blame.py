"""Where in the statement a run-time error comes from: the mark of an expression, which its message
or Spark's query context leads to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ExecutionError, error_text
from rowmerge_nb.sql.spark.marks import origin_at
from rowmerge_nb.sql.typed.expressions import Subquery, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.base.errors import RowMergeError
    from rowmerge_nb.sql.typed.expressions import Origin, Typed


def blame(
    error: RowMergeError,
    failure: BaseException,
    texts: Iterable[str],
    origins: Sequence[Origin],
    trees: Iterable[Typed] = (),
) -> int | None:
    """Set an error's position to that of its expression, and describe that in its hint; an unknown
    expression changes nothing.
    """
    number = error.origin if isinstance(error, ExecutionError) else None
    if number is None:
        number = _failing(failure, texts)
    if number is None and error.code == "SUBQUERY_MULTIPLE_ROWS":
        # Spark reports no position for an answer that is sent to tasks; a single such expression is
        # the one.
        asking = {
            tree.origin.number
            for tree in trees
            if tree.origin is not None and any(map(_is_scalar, walk(tree)))
        }
        number = asking.pop() if len(asking) == 1 else None
    if number is None:
        return None
    origin = origins[number]
    span = origin.span
    error.line, error.column, error.length = span.line, span.column, span.end - span.start
    if origin.words:
        error.hint = f"It happened {origin.words}.{f' {error.hint}' if error.hint else ''}"
    return number


def _is_scalar(part: Typed) -> bool:
    return isinstance(part, Subquery) and part.kind == "scalar"


def _failing(failure: BaseException, texts: Iterable[str]) -> int | None:
    context = _context(failure)
    if context is None:
        return None
    start, fragment = context
    numbers = (origin_at(text, start) for text in texts if text.startswith(fragment, start))
    return next((number for number in numbers if number is not None), None)


def _context(failure: BaseException | None) -> tuple[int, str] | None:
    while failure is not None:
        contexts: Any = getattr(failure, "getQueryContext", lambda: None)()
        # Errors before execution point at a line of Python and have no position within a text.
        if contexts and contexts[0].contextType().name == "SQL":
            return contexts[0].startIndex(), contexts[0].fragment()
        drawing = _DRAWN.search(error_text(failure)) if not contexts else None
        if drawing is not None:
            # A failure in a subquery reaches Python only as text.
            position, line, blank, carets = drawing.groups()
            return int(position) - 1, line[len(blank) : len(blank) + len(carets)]
        failure = failure.__cause__
    return None


_DRAWN: Final = re.compile(r"== SQL \(line 1, position (\d+)\) ==\n(.*)\n( *)(\^+)")
"""The drawing of an error's position in a message of Spark."""
