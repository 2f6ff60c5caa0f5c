"""The explorer as a notebook widget, whose selection can be read, set and observed from Python.

It is imported on demand: widget libraries load slowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import CHOSEN_RULES
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.report.bundle import mime_bundle
from rowmerge_nb.report.explorer.explorer_file import (
    explorer_module,
    explorer_styles,
    has_predict,
    opening,
    saved_explorer,
)
from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.report.explorer.otherwise import BETWEEN, otherwise
from rowmerge_nb.report.explorer.trial import editable_cells, moved_since, trial_state
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.spi.operations import Era, RowChangeParadigm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.trace.rerun import Rerun, RunResult
    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.what_if_answers import Variants

_CHOICES: Final = {
    "paradigm": tuple(RowChangeParadigm.__members__),
    "era": tuple(map(str, Era)),
    "duplicates": tuple(map(str, CHOSEN_RULES)),
}
"""The options that can be changed, and their values."""
_OF_JSON: Final = (str, int, float)


class _CheckedTrait(traitlets.Any):
    """A trait set from Python: the widget's validators report wrong values, None and other types
    too, as wrong arguments.
    """

    allow_none = False


class Explorer(anywidget.AnyWidget):
    """A statement row by row and step by step.

    Args:
        trace: as for `rowmerge_nb.report.explorer.explorer_state.explorer_state`.
        again: reruns the statement; None if that is impossible.
        variants: the derived results under other options.
        predict: begin with hidden outcomes, so that the learner guesses first. A statement that
            failed has no outcome to guess.
        first_line: the statement's line in the cell, from which an error counts.

    Raises:
        RowMergeError: NOT_SUPPORTED for another trace; INVALID_ARGUMENTS for an unknown row, step,
            clause or option, and for a value of another type.

    Attributes:
        state: the displayed state.
        row: the selected row, from 0 in the order of the list; -1 for none.
        step: the key of the step, if the statement has it: ``read``, ``join``, ``case``,
            ``distinct``, ``transform``, ``exchange``, ``sinks``, ``finish`` or ``commit``.
        clause: the clause whose rows are marked; None for all.
        paradigm, era, duplicates: the options. A change shows the derived result, or else rehearses
            the statement on the run's rows.
        statement: its text; another text is rehearsed with these options.
        cells: changed source cells, by row number and column: ``{3: {"price": 2}}``, see
            `rowmerge_nb.engine.api.result.Result.what_if`.
        tried: the result of the last trial; None without one or if it failed.
        trouble: why a trial failed, or ``""``. ``tries`` counts trials, ``asrun`` has the original
            options.
        beneath: the report above has the outcome, so the explorer does not repeat it.
        predict: whether the explorer begins in the mode Predict.
        picks: the learner's answers in the mode Predict; ``score`` is the number of right ones once
            revealed.
    """

    _esm = explorer_module()
    _css = explorer_styles()
    state = traitlets.Dict().tag(sync=True)
    row = _CheckedTrait(-1).tag(sync=True)
    step = _CheckedTrait("").tag(sync=True)
    clause = _CheckedTrait(None).tag(sync=True)
    picks = traitlets.Dict().tag(sync=True)
    score = traitlets.Int(None, allow_none=True).tag(sync=True)
    paradigm = _CheckedTrait("").tag(sync=True)
    era = _CheckedTrait("").tag(sync=True)
    duplicates = _CheckedTrait("").tag(sync=True)
    statement = _CheckedTrait("").tag(sync=True)
    cells = _CheckedTrait().tag(sync=True)
    asrun = traitlets.Dict().tag(sync=True)
    trouble = traitlets.Unicode("").tag(sync=True)
    tries = traitlets.Int(0).tag(sync=True)
    beneath = traitlets.Bool(False).tag(sync=True)
    predict = traitlets.Bool(False).tag(sync=True)
    saved = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        trace: Trace,
        again: Rerun[RunResult] | None = None,
        variants: Variants | None = None,
        *,
        predict: bool = False,
        first_line: int = 1,
    ) -> None:
        checked(predict, "predict", bool, "True or False")
        checked(
            first_line,
            "first_line",
            lambda line: type(line) is int and line > 0,
            "the number of a line, from 1 on",
        )
        untouched = None if again is None else again.untouched(trace)
        run = explorer_state(trace, untouched, first_line)
        self._trace = trace
        self._again = again
        self._run = {
            **run,
            "choices": (
                {name: list(choices) for name, choices in _CHOICES.items()}
                if again is not None
                else None
            ),
            "cells": self._cells(run),
            "otherwise": otherwise(run, variants, untouched) if variants is not None else None,
        }
        self._as_it_was: dict[str, Any] = {
            "statement": trace.statement,
            **{name: str(run["options"][name]) for name in _CHOICES},
            "cells": {},
        }
        self._same: dict[str, Any] | None = None
        self.tried: RunResult | None = None
        is_guessed = predict and has_predict(run)
        row, step = opening(run, predict=is_guessed)
        super().__init__(
            state=self._run,
            row=row,
            step=step,
            asrun=self._as_it_was,
            predict=is_guessed,
            **self._as_it_was,
        )
        self.observe(self._try, list(self._as_it_was))

    def _cells(self, run: dict[str, Any]) -> dict[str, Any]:
        if self._again is None or run["kind"] != "MERGE":
            return {"why": ""}
        why = self._again.no_cells
        if why:
            return {"why": visible(why)}
        return editable_cells(run)

    def _try(self, change: Any) -> None:
        self._rehearse({name: getattr(self, name) for name in self._as_it_was})
        # The front end waits for this change.
        self.tries += 1

    def _rehearse(self, settings: dict[str, Any]) -> None:
        self.tried, self.trouble = None, ""
        if settings == self._as_it_was or self._is_derived(settings):
            self._show(self._run)
            return
        if self._again is None:
            self.trouble = "The statement cannot run again: its engine is not available."
            return
        try:
            if self._same is None:
                self._same = explorer_state(self._again.run().trace)
            statement, cells = settings.pop("statement"), settings.pop("cells")
            self.tried = self._again.run(
                None if statement == self._as_it_was["statement"] else statement,
                cells or None,
                **settings,
            )
            state = trial_state(
                self.tried.trace, self._again.untouched(self.tried.trace), self._same
            )
        except RowMergeError as error:
            self.tried = None
            self.trouble = visible(str(error))
            return
        state["trial"]["note"] = " ".join(
            filter(None, [moved_since(self._run, self._same), visible(self._again.missing)])
        )
        self._show({**state, "choices": self._run["choices"], "cells": self._run["cells"]})

    def _is_derived(self, settings: Mapping[str, Any]) -> bool:
        derived = self._run["otherwise"] or {"choices": (), "changes": ()}
        others = [name for name in self._as_it_was if name not in derived["choices"]]
        same = all(settings[name] == self._as_it_was[name] for name in others)
        return (
            same
            and BETWEEN.join(settings[name] for name in derived["choices"]) in derived["changes"]
        )

    def _show(self, state: dict[str, Any]) -> None:
        with self.hold_trait_notifications():
            self.state = state
            self.row = min(self.row, len(state["rows"]) - 1)
            if self.step not in [step["key"] for step in state["steps"]]:
                self.step = opening(state)[1]
            if self.clause not in [clause["number"] for clause in state["clauses"]]:
                self.clause = None

    @traitlets.validate("paradigm", "era", "duplicates")
    def _option_exists(self, proposal: Any) -> str:
        name = proposal["trait"].name
        option: str = checked(
            proposal["value"],
            name,
            _CHOICES[name].__contains__,
            f"one of {', '.join(_CHOICES[name])}",
        )
        return option

    @traitlets.validate("statement")
    def _statement_is_text(self, proposal: Any) -> str:
        statement: str = checked(proposal["value"], "statement", str, "the text of a statement")
        return statement

    @traitlets.validate("cells")
    def _cells_of_form(self, proposal: Any) -> dict[str, dict[str, Any]]:
        if self._again is None:
            return {}
        # Normalize to JSON, as values from the front end are.
        return {
            str(row): {
                column: value if value is None or isinstance(value, _OF_JSON) else str(value)
                for column, value in cells.items()
            }
            for row, cells in self._again.checked_cells(proposal["value"]).items()
            if cells
        }

    @traitlets.validate("row")
    def _row_exists(self, proposal: Any) -> int:
        rows = len(self.state["rows"])
        row: int = checked(
            proposal["value"],
            "row",
            lambda row: type(row) is int and -1 <= row < rows,
            f"a row from 0 to {rows - 1}, or -1 for none",
        )
        return row

    @traitlets.validate("step")
    def _step_exists(self, proposal: Any) -> str:
        keys = [step["key"] for step in self.state["steps"]]
        step: str = checked(
            proposal["value"], "step", keys.__contains__, f"one of {', '.join(keys)}"
        )
        return step

    @traitlets.validate("clause")
    def _clause_exists(self, proposal: Any) -> int | None:
        numbers = [clause["number"] for clause in self.state["clauses"]]
        choices = f"one of {', '.join(map(str, numbers))}, or None for all"
        clause: int | None = checked(
            proposal["value"], "clause", [None, *numbers].__contains__, choices
        )
        return clause

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Show the widget, or the report in front ends without widgets and untrusted notebooks."""
        data, metadata = self._view(**kwargs)
        return {**data, **mime_bundle(self._trace)}, metadata

    def _view(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle if isinstance(bundle, tuple) else (bundle or {}, {})

    def _ipython_display_(self) -> None:
        """Show the widget, and below it the same explorer as a page for a notebook without its
        kernel; whichever works is visible.
        """
        from IPython.display import display

        data, metadata = self._view()
        key, page = saved_explorer(
            {**self._run, "choices": None},
            beneath=self.beneath,
            predict=self.predict,
        )
        self.saved = key
        # An untrusted notebook shows the page's table, and no second text for the widget.
        display({**data, "text/plain": ""}, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
        display(page, raw=True)  # type: ignore[no-untyped-call]
