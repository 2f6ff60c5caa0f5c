"""The explorer as a widget of notebooks: what is chosen in it can be read, set and watched from Python.

It is loaded when a widget is asked for: the libraries of widgets take their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from rowmerge_nb.base.choices import CHOSEN_RULES
from rowmerge_nb.base.errors import RowMergeError, checked
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.explorer.explorer_file import explorer_module, explorer_styles, opening
from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.report.explorer.otherwise import BETWEEN, otherwise
from rowmerge_nb.report.explorer.trial import editable_cells, moved_since, trial_state
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.spi.operations import Era, RowChangeParadigm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.reruns.rerun import Again
    from rowmerge_nb.engine.result import Result
    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.what_if_answers import Variants

_CHOICES: Final = {
    "paradigm": tuple(RowChangeParadigm.__members__),
    "era": tuple(map(str, Era)),
    "duplicates": tuple(map(str, CHOSEN_RULES)),
}
"""The options that can be set otherwise, and their values."""
_OF_JSON: Final = (str, int, float)


class _Given(traitlets.Any):
    """A trait that is set from Python: the widget's checks tell of all that it cannot be, None and other types too, as of wrong arguments."""

    allow_none = False


class Explorer(anywidget.AnyWidget):
    """A statement seen row by row and step by step.

    Args:
        trace: that of a MERGE, UPDATE or DELETE that ran by merge sinks, with the values of both sides.
        again: runs the statement once more, see `rowmerge_nb.engine.reruns.rerun.Again`; None where that cannot be.
        variants: what would have come of its rows under other options; None where nobody has derived it.

    Raises:
        RowMergeError: NOT_SUPPORTED for another trace; INVALID_ARGUMENTS where a row, step, clause or option is set that is not there.

    Attributes:
        state: what is shown, see `rowmerge_nb.report.explorer.explorer_state`.
        row: the chosen row, from 0 in the order of the list; -1 for none.
        step: the key of the step: ``read``, ``join``, ``case``, ``distinct``, ``transform``, ``exchange``, ``sinks``, ``finish``, ``commit``,
            as far as the statement has it.
        clause: the clause whose rows are marked; None for all.
        paradigm, era, duplicates: how the statement was run. Where one is set, what the rows would have become is shown, as ``variants`` has it;
            where these have it not, the statement is rehearsed that way on the rows that it had. Where all are as they were, the run is shown again.
        statement: its text. Where another one is set, that is rehearsed, with these options.
        cells: cells of the source that are to have other values, by the row's number and the column: ``{3: {"price": 2}}``, see
            `rowmerge_nb.engine.result.Result.what_if`.
        tried: the result of the last trial; None where it failed, where nothing was to be run, and before one.
        trouble: why a trial failed; ``""`` if it did not. ``tries`` counts them, and ``asrun`` is how the statement ran.
        picks: what the learner has chosen for each row, in the mode Predict; ``score`` how many of them were right, once that is told.
    """

    _esm = explorer_module()
    _css = explorer_styles()
    state = traitlets.Dict().tag(sync=True)
    row = _Given(-1).tag(sync=True)
    step = _Given("").tag(sync=True)
    clause = _Given(None).tag(sync=True)
    picks = traitlets.Dict().tag(sync=True)
    score = traitlets.Int(None, allow_none=True).tag(sync=True)
    paradigm = _Given("").tag(sync=True)
    era = _Given("").tag(sync=True)
    duplicates = _Given("").tag(sync=True)
    statement = _Given("").tag(sync=True)
    cells = _Given().tag(sync=True)
    asrun = traitlets.Dict().tag(sync=True)
    trouble = traitlets.Unicode("").tag(sync=True)
    tries = traitlets.Int(0).tag(sync=True)

    def __init__(self, trace: Trace, again: Again | None = None, variants: Variants | None = None) -> None:
        untouched = None if again is None else again.untouched(trace)
        run = explorer_state(trace, untouched)
        self._trace = trace
        self._again = again
        self._run = {
            **run,
            "choices": {name: list(choices) for name, choices in _CHOICES.items()} if again is not None else None,
            "cells": self._cells(run),
            "otherwise": otherwise(run, variants, untouched) if variants is not None else None,
        }
        self._as_it_was: dict[str, Any] = {
            "statement": trace.statement,
            **{name: str(run["options"][name]) for name in _CHOICES},
            "cells": {},
        }
        self._same: dict[str, Any] | None = None
        self.tried: Result | None = None
        row, step = opening(run)
        super().__init__(state=self._run, row=row, step=step, asrun=self._as_it_was, **self._as_it_was)
        self.observe(self._try, list(self._as_it_was))

    def _cells(self, run: dict[str, Any]) -> dict[str, Any]:
        """Return the cells that can be edited, or why there are none."""
        if self._again is None or run["kind"] != "MERGE":
            return {"why": ""}
        why = self._again.no_cells
        if why:
            return {"why": visible(why)}
        return editable_cells(run)

    def _try(self, change: Any) -> None:
        """Run the statement the way that is set, and show that; what keeps it from running is told, and what was shown stays."""
        self._tell({name: getattr(self, name) for name in self._as_it_was})
        # The front end waits for it.
        self.tries += 1

    def _tell(self, wanted: dict[str, Any]) -> None:
        self.tried, self.trouble = None, ""
        if wanted == self._as_it_was or self._is_derived(wanted):
            self._show(self._run)
            return
        if self._again is None:
            self.trouble = "The statement cannot be run once more: there is no engine that has run it."
            return
        try:
            if self._same is None:
                self._same = explorer_state(self._again.run().trace)
            statement, cells = wanted.pop("statement"), wanted.pop("cells")
            self.tried = self._again.run(
                None if statement == self._as_it_was["statement"] else statement, cells or None, **wanted
            )
            state = trial_state(self.tried.trace, self._again.untouched(self.tried.trace), self._same)
        except RowMergeError as error:
            self.tried = None
            self.trouble = visible(str(error))
            return
        state["trial"]["note"] = " ".join(filter(None, [moved_since(self._run, self._same), visible(self._again.missing)]))
        self._show({**state, "choices": self._run["choices"], "cells": self._run["cells"]})

    def _is_derived(self, wanted: Mapping[str, Any]) -> bool:
        """Return whether the state of the run says what comes of it: the front end shows that."""
        known = self._run["otherwise"] or {"choices": (), "changes": ()}
        others = [name for name in self._as_it_was if name not in known["choices"]]
        same = all(wanted[name] == self._as_it_was[name] for name in others)
        return same and BETWEEN.join(wanted[name] for name in known["choices"]) in known["changes"]

    def _show(self, state: dict[str, Any]) -> None:
        """Show a state; the row, the step and the clause stay, where it has them."""
        with self.hold_trait_notifications():
            self.state = state
            self.row = min(self.row, len(state["rows"]) - 1)
            if self.step not in [step["key"] for step in state["steps"]]:
                self.step = opening(state)[1]
            if self.clause not in [clause["number"] for clause in state["clauses"]]:
                self.clause = None

    @traitlets.validate("paradigm", "era", "duplicates")
    def _option_there(self, proposal: Any) -> str:
        name = proposal["trait"].name
        option: str = checked(proposal["value"], name, _CHOICES[name].__contains__, f"one of {', '.join(_CHOICES[name])}")
        return option

    @traitlets.validate("statement")
    def _statement_given(self, proposal: Any) -> str:
        statement: str = checked(proposal["value"], "statement", str, "the text of a statement")
        return statement

    @traitlets.validate("cells")
    def _cells_of_form(self, proposal: Any) -> dict[str, dict[str, Any]]:
        if self._again is None:
            return {}
        # As JSON has it: what comes from the front end and what is set in Python is then the same.
        return {
            str(row): {
                column: value if value is None or isinstance(value, _OF_JSON) else str(value) for column, value in cells.items()
            }
            for row, cells in self._again.checked_cells(proposal["value"]).items()
            if cells
        }

    @traitlets.validate("row")
    def _row_there(self, proposal: Any) -> int:
        rows = len(self.state["rows"])
        row: int = checked(
            proposal["value"],
            "row",
            lambda row: type(row) is int and -1 <= row < rows,
            f"a row from 0 to {rows - 1}, or -1 for none",
        )
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
