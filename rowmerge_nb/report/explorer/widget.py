"""The explorer as a widget of notebooks: what is chosen in it can be read, set and watched from Python.

It is loaded when a widget is asked for: the libraries of widgets take their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from rowmerge_nb.errors import checked
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.explorer.page import explorer_module, explorer_styles, opening
from rowmerge_nb.report.explorer.state import explorer_state

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace

__all__ = ["Explorer"]


class Explorer(anywidget.AnyWidget):
    """A statement seen row by row and step by step.

    Args:
        trace: that of a MERGE, UPDATE or DELETE that ran by merge sinks, with the values of both sides.

    Raises:
        RowMergeError: NOT_SUPPORTED for another trace; INVALID_ARGUMENTS where a row, step or clause is set that is not there.

    Attributes:
        state: what is shown, see `rowmerge_nb.report.explorer.state`.
        row: the chosen row, from 0 in the order of the list; -1 for none.
        step: the key of the step: ``read``, ``join``, ``case``, ``distinct``, ``transform``, ``exchange``, ``sinks``, ``finish``, ``commit``,
            as far as the statement has it.
        clause: the clause whose rows are marked; None for all.
        picks: what the learner has chosen for each row, in the mode Predict; ``score`` how many of them were right, once that is told.
    """

    _esm = explorer_module()
    _css = explorer_styles()
    state = traitlets.Dict().tag(sync=True)
    row = traitlets.Int(-1).tag(sync=True)
    step = traitlets.Unicode("").tag(sync=True)
    clause = traitlets.Int(None, allow_none=True).tag(sync=True)
    picks = traitlets.Dict().tag(sync=True)
    score = traitlets.Int(None, allow_none=True).tag(sync=True)

    def __init__(self, trace: Trace) -> None:
        state = explorer_state(trace)
        self._trace = trace
        row, step = opening(state)
        super().__init__(state=state, row=row, step=step)

    @traitlets.validate("row")
    def _row_there(self, proposal: Any) -> int:
        rows = len(self.state["rows"])
        row: int = checked(proposal["value"], "row", lambda row: -1 <= row < rows, f"a row from 0 to {rows - 1}, or -1 for none")
        return row

    @traitlets.validate("step")
    def _step_there(self, proposal: Any) -> str:
        keys = [step["key"] for step in self.state["steps"]]
        step: str = checked(proposal["value"], "step", keys.__contains__, f"one of {', '.join(keys)}")
        return step

    @traitlets.validate("clause")
    def _clause_there(self, proposal: Any) -> int | None:
        numbers = [clause["number"] for clause in self.state["clauses"]]
        known = f"one of {', '.join(map(str, numbers))}, or None for all"
        clause: int | None = checked(proposal["value"], "clause", [None, *numbers].__contains__, known)
        return clause

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Show the widget; where a front end has no widgets, or the notebook is not trusted, the report."""
        found = super()._repr_mimebundle_(**kwargs)
        data, metadata = found if isinstance(found, tuple) else (found or {}, {})
        return {**data, **mime_bundle(self._trace)}, metadata
