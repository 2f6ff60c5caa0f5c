"""The explorer as one file: script, styles and state in it, and nothing that is asked of a server."""

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
    """Return the front end's module, whose default export has `render`."""
    return files("rowmerge_nb.report.explorer").joinpath("explorer.mjs").read_text("utf-8")


@cache
def explorer_styles() -> str:
    """Return the style sheets of the explorer: the report's, and its own."""
    own = files("rowmerge_nb.report.explorer").joinpath("explorer.css").read_text("utf-8")
    return f"{style_sheet()}\n{own}"


def opening(state: Mapping[str, Any]) -> tuple[int, str]:
    """Return the row and the step at which the explorer opens: the first row that is updated, at the CASE, since "why" comes before "how".

    Of a statement that failed it is the step that failed.
    """
    keys = [step["key"] for step in state["steps"]]
    if state["failed"]:
        return (0 if state["rows"] else -1), keys[-1]
    row = next((index for index, row in enumerate(state["rows"]) if row["fate"] == "UPDATE"), 0)
    return row, "case" if "case" in keys else keys[0]


def _with_clauses(state: Mapping[str, Any]) -> Markup:
    """Write the statement line by line, with the clauses in its margin under the names that they have below; who copies it copies no margin."""
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
    return Markup("\n").join(line.format(labels.get(at, ""), text) for at, text in enumerate(statement.split("\n"), start=1))


def _label(numbers: Sequence[int]) -> str:
    """Name the clauses that begin in one line.

    >>> _label([2]), _label([0, 1, 2])
    ('clause 2', 'clauses 0–2')
    """
    return f"clause {numbers[0]}" if len(numbers) == 1 else f"clauses {numbers[0]}\N{EN DASH}{numbers[-1]}"


def explorer_page(trace: Trace, untouched: pa.Table | None = None, variants: Variants | None = None) -> str:
    """Write an HTML document with the explorer of a statement; without scripts it shows the report.

    Args:
        trace: the statement's trace.
        untouched: rows of the target that were not joined, where they are known.
        variants: what would have come of its rows under other options; None where nobody has derived it.

    Raises:
        RowMergeError: NOT_SUPPORTED, as `rowmerge_nb.report.explorer.explorer_state.explorer_state` says.
    """
    from markupsafe import escape

    state = explorer_state(trace, untouched)
    if variants is not None:
        state["otherwise"] = otherwise(state, variants, untouched)
    # Within a script nothing is escaped, but its end is looked for.
    told = json.dumps(state).replace("<", "\\u003c")
    row, step = opening(state)
    script = explorer_module().replace(_EXPORT, _START.replace("ROW", str(row)).replace("STEP", json.dumps(step)))
    return _SHELL.format(
        title=escape(f"{trace.kind} {trace.target}"),
        styles=explorer_styles(),
        statement=_with_clauses(state),
        report=render_html(build_report(trace)),
        state=told,
        script=script,
    )
