"""The explorer as one self-contained file."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.report.explorer.otherwise import otherwise
from rowmerge_nb.report.html import render_html, style_sheet
from rowmerge_nb.report.model.report import build_report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from markupsafe import Markup

    from rowmerge_nb.trace.trace import Trace
    from rowmerge_nb.trace.what_if_answers import Variants

_EXPORT: Final = "export default { render };"
_START: Final = """
const state = JSON.parse(document.getElementById("state").textContent);
const traits = { state, row: ROW, step: STEP, clause: null, picks: {}, score: null, trouble: "", asrun: state.options, ...state.options };
const listeners = new Map();
const model = {
  get: (name) => traits[name],
  set(name, one) {
    if (traits[name] === one) return;
    traits[name] = one;
    for (const listener of listeners.get(`change:${name}`) ?? []) listener();
  },
  save_changes() {},
  on: (name, listener) => listeners.set(name, [...(listeners.get(name) ?? []), listener]),
  off: (name, listener) => listeners.set(name, (listeners.get(name) ?? []).filter((one) => one !== listener)),
};
render({ model, el: document.getElementById("explorer") });
"""
_SHELL: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{margin:0 auto;padding:24px 16px;max-width:1120px;background:light-dark(#fff,#111)}}
pre.statement{{margin:0 0 16px;padding:8px 12px;background:light-dark(#f3f4f6,#22262b);color:light-dark(#1f2328,#e6e8eb);font:12px/18px Menlo,Consolas,"Liberation Mono",monospace;white-space:pre-wrap;overflow-wrap:anywhere}}
pre.statement [data-clause]::before{{content:attr(data-clause);display:inline-block;min-width:12ch;color:light-dark(#59636e,#9da7b1)}}
</style><style>{styles}</style></head><body>
<pre class="statement">{statement}</pre>
<div id="explorer"></div>
<noscript>{report}</noscript>
<script type="application/json" id="state">{state}</script>
<script type="module">{script}</script>
</body></html>
"""


@cache
def explorer_module() -> str:
    """Return the front end's module, which exports `render` by default."""
    return files("rowmerge_nb.report.explorer").joinpath("explorer.mjs").read_text("utf-8")


@cache
def explorer_styles() -> str:
    """Return the report's style sheet and the explorer's."""
    own = files("rowmerge_nb.report.explorer").joinpath("explorer.css").read_text("utf-8")
    return f"{style_sheet()}\n{own}"


def opening(state: Mapping[str, Any]) -> tuple[int, str]:
    """Return the initial row and step: the first updated row at the CASE, or the failed step."""
    keys = [step["key"] for step in state["steps"]]
    if state["failed"]:
        return (0 if state["rows"] else -1), keys[-1]
    row = next((index for index, row in enumerate(state["rows"]) if row["fate"] == "UPDATE"), 0)
    return row, "case" if "case" in keys else keys[0]


def _with_clauses(state: Mapping[str, Any]) -> Markup:
    """Return the statement with clause labels in its margin."""
    from markupsafe import Markup, escape

    statement: str = state["statement"]
    if state["kind"] != "MERGE":
        return escape(statement)
    labels = {
        line: _label([clause["number"] for clause in clauses])
        for line, clauses in groupby(state["clauses"], key=itemgetter("line"))
        if line
    }
    line = Markup('<span data-clause="{}">{}</span>')
    return Markup("\n").join(
        line.format(labels.get(at, ""), text)
        for at, text in enumerate(statement.split("\n"), start=1)
    )


def _label(numbers: Sequence[int]) -> str:
    return (
        f"clause {numbers[0]}"
        if len(numbers) == 1
        else f"clauses {numbers[0]}\N{EN DASH}{numbers[-1]}"
    )


def explorer_page(
    trace: Trace, untouched: pa.Table | None = None, variants: Variants | None = None
) -> str:
    """Return an HTML document with the explorer of a statement; without scripts it shows the
    report.

    Raises:
        RowMergeError: NOT_SUPPORTED, see
            `rowmerge_nb.report.explorer.explorer_state.explorer_state`.
    """
    from markupsafe import escape

    state = explorer_state(trace, untouched)
    if variants is not None:
        state["otherwise"] = otherwise(state, variants, untouched)
    # Entities are not decoded within a script, but its end tag must not occur.
    state_json = json.dumps(state).replace("<", "\\u003c")
    row, step = opening(state)
    script = explorer_module().replace(
        _EXPORT, _START.replace("ROW", str(row)).replace("STEP", json.dumps(step))
    )
    return _SHELL.format(
        title=escape(f"{trace.kind} {trace.target.name}"),
        styles=explorer_styles(),
        statement=_with_clauses(state),
        report=render_html(build_report(trace)),
        state=state_json,
        script=script,
    )
