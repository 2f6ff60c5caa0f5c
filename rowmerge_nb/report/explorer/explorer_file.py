"""The explorer as one self-contained file, and within the output of a notebook."""

from __future__ import annotations

import base64
import gzip
import hashlib
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
const traits = { state, row: ROW, step: STEP, clause: null, picks: {}, score: null, beneath: BENEATH, predict: PREDICT, trouble: "", asrun: state.options, ...state.options };
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


_SAVED: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title><style>:root{{color-scheme:light dark}}body{{margin:0;padding:2px;background:light-dark(#fff,#111)}}</style></head>
<body><div id="explorer"></div><script type="module">
// The notebook's theme is that of the text around this frame; its height is that of the explorer.
const frame = window.frameElement;
if (frame) {{
  const theme = () => {{
    const [red, green, blue] = getComputedStyle(frame).color.match(/[\\d.]+/g).map(Number);
    const name = red * 3 + green * 6 + blue > 1280 ? "dark" : "light";
    document.documentElement.setAttribute("theme", name);
    document.documentElement.style.colorScheme = name;
  }};
  theme();
  new MutationObserver(theme).observe(frame.ownerDocument.body, {{ attributes: true }});
  new ResizeObserver(() => {{ frame.style.height = `${{document.body.scrollHeight}}px`; }}).observe(document.body);
}}
const bytes = Uint8Array.from(atob("{content}"), (one) => one.charCodeAt(0));
const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
for (const [tag, attributes, content] of JSON.parse(text)) {{
  const node = document.createElement(tag);
  for (const [name, one] of Object.entries(attributes)) node.setAttribute(name, one);
  node.textContent = content;
  document.head.append(node);
}}
</script></body></html>
"""
_FRAME: Final = """<div class="rx-saved rx-saved-{key}">
<style>.rx-saved .rx-still{{display:none}}.jp-OutputArea-child:not(:has(.rx)):has(+ .jp-OutputArea-child .rx-saved-{key}){{display:none}}</style>
<div class="rx-still">{still}</div>
<iframe title="{title}" loading="lazy" style="display:block;width:100%;height:900px;border:0" srcdoc="{page}"></iframe>
</div>"""
_SCRIPT_NEEDED: Final = "Predicting the outcomes needs a browser that runs scripts."
_STILL: Final = "The explorer needs a trusted notebook, or a viewer that runs its script."


@cache
def explorer_module() -> str:
    return files("rowmerge_nb.report.explorer").joinpath("explorer.mjs").read_text("utf-8")


@cache
def explorer_styles() -> str:
    own = files("rowmerge_nb.report.explorer").joinpath("explorer.css").read_text("utf-8")
    return f"{style_sheet()}\n{own}"


def has_predict(state: Mapping[str, Any]) -> bool:
    """Return whether rows of a state have outcomes to guess: an UPDATE and a DELETE need those that
    they have not chosen.
    """
    hides = state["kind"] == "MERGE" or bool(state["others"])
    return hides and not state["failed"] and bool(state["rows"])


def opening(state: Mapping[str, Any], *, predict: bool = False) -> tuple[int, str]:
    """Return the initial row and step: the first updated row at the CASE, or the failed step; with
    ``predict``, no row, at the join if there is one.
    """
    keys = [step["key"] for step in state["steps"]]
    if predict:
        return -1, "join" if "join" in keys else keys[0]
    if state["failed"]:
        return (0 if state["rows"] else -1), keys[-1]
    row = next((index for index, row in enumerate(state["rows"]) if row["fate"] == "UPDATE"), 0)
    return row, "case" if "case" in keys else keys[0]


def _with_clauses(state: Mapping[str, Any]) -> Markup:
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
    trace: Trace,
    untouched: pa.Table | None = None,
    variants: Variants | None = None,
    *,
    predict: bool = False,
) -> str:
    """Return an HTML document with the explorer of a statement; without scripts it shows the
    report, which ``predict`` omits because it has the outcomes.
    """
    from markupsafe import escape

    state = explorer_state(trace, untouched)
    is_guessed = predict and has_predict(state)
    if variants is not None:
        state["otherwise"] = otherwise(state, variants, untouched)
    # Entities are not decoded within a script, but its end tag must not occur.
    state_json = json.dumps(state).replace("<", "\\u003c")
    return _SHELL.format(
        title=escape(f"{trace.kind} {trace.target.name}"),
        styles=explorer_styles(),
        statement=_with_clauses(state),
        report=_SCRIPT_NEEDED if is_guessed else render_html(build_report(trace)),
        state=state_json,
        script=_script(state, predict=is_guessed),
    )


def _script(state: Mapping[str, Any], *, beneath: bool = False, predict: bool = False) -> str:
    row, step = opening(state, predict=predict)
    start = (
        _START.replace("ROW", str(row))
        .replace("STEP", json.dumps(step))
        .replace("BENEATH", json.dumps(beneath))
        .replace("PREDICT", json.dumps(predict))
    )
    return explorer_module().replace(_EXPORT, start)


def saved_explorer(
    state: Mapping[str, Any], *, beneath: bool = False, predict: bool = False
) -> tuple[str, dict[str, str]]:
    """Return a name for an explorer, and a mime bundle with it that works without a kernel.

    The HTML is a frame whose page is compressed, since every output has its own copy of the script.
    Viewers that remove frames show a table of the rows instead.
    """
    from markupsafe import Markup, escape

    content = [
        ["style", {}, explorer_styles()],
        ["script", {"id": "state", "type": "application/json"}, json.dumps(state)],
        ["script", {"type": "module"}, _script(state, beneath=beneath, predict=predict)],
    ]
    data = json.dumps(content).encode("utf-8", "backslashreplace")
    key = hashlib.sha256(data).hexdigest()[:12]
    title = f"Explorer of {state['kind']} {state['target']}"
    page = _SAVED.format(
        title=escape(title),
        content=base64.b64encode(gzip.compress(data, mtime=0)).decode("ascii"),
    )
    still = Markup("<p>{}</p>{}").format(_STILL, "" if predict else _table_of(state))
    html = _FRAME.format(key=key, still=still, title=escape(title), page=escape(page))
    text = f"{title}: it needs a notebook. result.save_html('explorer.html') writes it as a page."
    return key, {
        "text/plain": text,
        "text/html": html.encode("utf-8", "backslashreplace").decode("utf-8"),
    }


def _table_of(state: Mapping[str, Any]) -> Markup:
    from markupsafe import Markup

    # JupyterLab aligns cells to the right, and keeps this style of an untrusted notebook.
    cell = Markup('<{tag} style="text-align:left">{{}}</{tag}>')
    line, head = (Markup("<tr>{}</tr>").format(cell.format(tag=tag) * 3) for tag in ("td", "th"))
    rows = Markup("").join(
        line.format(
            ", ".join(
                "NULL" if value is None else value for value in row["source"] or row["target"] or ()
            ),
            row["fate"],
            row["gist"],
        )
        for row in state["rows"]
    )
    return Markup("<table>{}{}</table>").format(head.format("row", "becomes", "why"), rows)
