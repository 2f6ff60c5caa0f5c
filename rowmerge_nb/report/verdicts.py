"""The result of ``result.verdicts()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.report.html import render_verdicts
from rowmerge_nb.report.plain_text import verdict_lines
from rowmerge_nb.report.sequence import ShownSequence
from rowmerge_nb.trace.verdicts import EngineVerdict, verdicts_of

if TYPE_CHECKING:
    import pandas as pd

    from rowmerge_nb.trace.trace import Trace


class Verdicts(ShownSequence[EngineVerdict]):
    """What ten engines' rules answer to one statement; a sequence of `Verdict` that displays as a
    table.
    """

    @classmethod
    def of(cls, trace: Trace) -> Verdicts:
        rows = verdicts_of(trace)
        if rows is None:
            is_failed = trace.state is StatementState.FAILED
            ending = "failed" if is_failed else f"is {trace.state}"
            raise RowMergeError.unsupported(
                f"There are no joined rows to judge: this {trace.kind} {ending}",
                hint="Verdicts are about a MERGE that ran, or that failed because of its matches.",
            )
        return cls(rows)

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in verdict_lines(self._items))

    def __repr__(self) -> str:
        return f"<Verdicts: {', '.join(f'{row.engine} {row.answer}' for row in self._items)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": render_verdicts(self._items, str(self))}

    def to_pandas(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self._items])
