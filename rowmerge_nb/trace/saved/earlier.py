"""Traces in earlier formats, brought into the present one.

The first format kept as text what are fields today: this is the one place where such texts are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import MERGE_ROW, PageLayout
from rowmerge_nb.trace.nodes import JoinType
from rowmerge_nb.trace.saved.schema import decoded_page, encoded
from rowmerge_nb.trace.trace import CHANGED_TWICE

FORMAT: Final = "rowmerge_nb trace 9"
_EIGHTH: Final = "rowmerge_nb trace 8"
_SEVENTH: Final = "rowmerge_nb trace 7"
_SIXTH: Final = "rowmerge_nb trace 6"
_FIFTH: Final = "rowmerge_nb trace 5"
_FOURTH: Final = "rowmerge_nb trace 4"
_THIRD: Final = "rowmerge_nb trace 3"
_SECOND: Final = "rowmerge_nb trace 2"
_FIRST: Final = "rowmerge_nb trace 1"
_TOLD_BY_CLAUSES: Final = ("clause", "line")


def of_present_format(content: Any) -> Any:
    """Give what is kept under a format's name as the present format has it; None if there is no format that is known.

    Nothing but the samples' pages is checked here: what else is not as its format says is left for the reader of the present format to find.

    Raises:
        TraceSchemaError: a sample's page is none.

    >>> of_present_format({FORMAT: 1}), of_present_format({"rowmerge_nb trace 0": 1})
    (1, None)
    """
    if not isinstance(content, dict) or len(content) != 1:
        return None
    for name, steps in _FORMATS.items():
        if name in content:
            value = content[name]
            for step in steps:
                value = step(value)
            return value
    return content.get(FORMAT)


def _without_what_came_ninth(value: Any) -> Any:
    """Calls told all in one text, and connectors gave no sentences of their own."""
    output = _fields(_fields(value, "Trace").get("output"), "ConnectorOutputMetadata")
    if output:
        output["notices"] = encoded(())
    return with_parted_calls(value, "Trace")


def with_parted_calls(value: Any, kind: str) -> Any:
    """Part the text that told of a call what it was called with, what it gave, and what a fault had done to it.

    Args:
        value: what is kept, which is changed.
        kind: what it is: ``Trace``, or ``Record``.
    """
    for fields in _fields_of(_fields(value, kind).get("calls")):
        if "carries" not in fields:
            continue
        told, mark, injected = _text(fields.pop("carries")).rpartition("injected: ")
        told = told.removesuffix(", ") if mark else injected
        given, gave = _given_and_gave(_text(fields.get("method")), told)
        fields |= {"given": given, "gave": gave, "injected": injected if mark else ""}
    return value


def _given_and_gave(method: str, told: str) -> tuple[str, str]:
    """Part what is told of a call of a method.

    >>> _given_and_gave("finish_merge", "2 fragments, 1 delta file"), _given_and_gave("finish", "2 fragments")
    (('2 fragments', '1 delta file'), ('', '2 fragments'))
    """
    if method == "begin_merge":
        table, _, handle = told.partition("; gives ")
        return table, handle
    if method.startswith("finish_"):
        fragments, _, written = told.partition(", ")
        return fragments, written
    if method == "commit":
        transaction, _, version = told.partition(", gives ")
        return transaction, version
    asked = method.startswith("get_") and method.endswith(("_row_id_column_handle", "_paradigm", "_layout", "_splits", "_page"))
    return ("", told) if asked or method == "finish" else (told, "")


def _without_what_came_seventh(value: Any) -> Any:
    """No statement added columns; nothing was told of the tasks that had made the rows, nor of how an exchange found the writers."""
    trace = _fields(value, "Trace")
    if trace:
        trace["added"] = encoded(())
    for whole in (trace, _fields(trace.get("asked"), "AskedRows")):
        pages = _fields(whole.get("pages"), "PageSample")
        if pages:
            pages["tasks"] = encoded(())
            pages["placement"] = None
    return value


def _without_what_came_sixth(value: Any) -> Any:
    """Nothing was told of what a connector's code has raised, nor of the rows that a plan would have that was not run."""
    trace = _fields(value, "Trace")
    if trace:
        trace["raised"] = encoded(())
    plan = trace.get("plan")
    items = plan.get("items") if isinstance(plan, dict) else None
    for item in items if isinstance(items, list) else ():
        node = _fields(item, "NodeRecord")
        if node:
            node["would"] = None
    return value


def _without_what_came_fifth(value: Any) -> Any:
    """Nobody could ask for rows, or for a look after the commit, and of rows that were not joined nothing was told."""
    trace = _fields(value, "Trace")
    if trace:
        trace |= {"asked": None, "untouched": None, "check": None}
    return value


def _without_versions_and_near(value: Any) -> Any:
    """Nothing was told of the versions of the table, and of what rows without a partner are near to."""
    trace = _fields(value, "Trace")
    if trace:
        trace |= {"version_before": None, "version_after": None, "near": None}
    return value


def _without_reasons(value: Any) -> Any:
    """Nothing was told of why a row went the way it did."""
    trace = _fields(value, "Trace")
    if trace:
        trace["on"] = None
    pages = _fields(trace.get("pages"), "PageSample")
    if pages:
        pages["truths"] = None
    clauses = trace.get("clauses")
    items = clauses.get("items") if isinstance(clauses, dict) else None
    for item in items if isinstance(items, list) else ():
        clause = _fields(item, "ClauseRecord")
        if clause:
            clause |= {"condition": None, "values": encoded(())}
    return value


def _with_layouts(value: Any) -> Any:
    """Samples did not say where their channels lie: readers found it out from the trace's era and the pages' channels."""
    trace = _fields(value, "Trace")
    era = Era.CURRENT if trace.get("era") == "current" else Era.DOCUMENTS
    pages = _fields(trace.get("pages"), "PageSample")
    if {"before", "after"} <= pages.keys():
        before, after = (decoded_page(pages[name], f"$.pages.{name}").schema.names for name in ("before", "after"))
        transformed = trace.get("kind") != "DELETE" and MERGE_ROW in before
        layout = PageLayout.of_output(len(after), _redistribution(before, after, era) if transformed else (), era)
        pages |= {"layout": encoded(layout), "transformed": transformed}
    stored = trace.get("stored")
    items = stored.get("items") if isinstance(stored, dict) else None
    for at, item in enumerate(items if isinstance(items, list) else ()):
        sample = _fields(item, "StoredSample")
        if "page" in sample:
            channels = decoded_page(sample["page"], f"$.stored[{at}].page").num_columns
            sample["layout"] = None if trace.get("flow") == "updatable" else encoded(_of_sink(channels, era))
    return value


def _redistribution(before: list[str], after: list[str], era: Era) -> tuple[int, ...]:
    """Find the places in the table of the columns that lead the page before ``transform_page``."""
    leading = len(before) - PageLayout(0).before.count
    hashed = bool(leading) and era is Era.DOCUMENTS
    return tuple(after.index(name) for name in before[: leading - hashed] if name in after)


def _of_sink(channels: int, era: Era) -> PageLayout:
    return PageLayout(channels - PageLayout(0, era=era).after.stored.stop, era=era)


def _fields(value: Any, kind: str) -> dict[str, Any]:
    """Give the fields of a dataclass as they are written; none of what is none of this kind."""
    fields = value.get("fields") if isinstance(value, dict) and value.get("is") == kind else None
    return fields if isinstance(fields, dict) else {}


def _from_first(value: Any) -> Any:
    """Bring every record of the first format into the present one, wherever it stands; what else there is stays as it was."""
    if isinstance(value, list):
        return [_from_first(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = value.get("fields")
    if not isinstance(fields, dict) or (bring := _RECORDS.get(_text(value.get("is")))) is None:
        return {name: _from_first(item) for name, item in value.items()}
    return bring({name: _from_first(item) for name, item in fields.items()})


def _record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"is": name, "fields": dict(fields)}


def _tuple(items: list[Any]) -> dict[str, Any]:
    return {"is": "tuple", "items": items}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _items(value: Any) -> list[Any]:
    items = value.get("items") if isinstance(value, dict) else None
    return items if isinstance(items, list) else []


def _fields_of(records: Any) -> list[dict[str, Any]]:
    found = [record.get("fields") for record in _items(records) if isinstance(record, dict)]
    return [fields for fields in found if isinstance(fields, dict)]


# -- the plan -----------------------------------------------------------------------------------------------------


def _trace(fields: dict[str, Any]) -> dict[str, Any]:
    """Say of the CASE's branches which columns they write, which the layout of another node tells."""
    nodes = _fields_of(fields.get("plan"))
    layouts = [_items(node.get("layout")) for node in nodes if node.get("kind") == "MergeProcessor"]
    names = [_text(next(iter(_items(column)), None)) for layout in layouts[:1] for column in layout]
    for branch in (branch for node in nodes for branch in _fields_of(node.get("branches"))):
        branch["assigned"] = _tuple(_assigned(branch, names))
        for told in _TOLD_BY_CLAUSES:
            branch.pop(told, None)
    qualified = _text(fields.get("qualified")) if _items(fields.get("clauses")) else ""
    return _record("Trace", {**fields, "name": _tuple([*qualified.split(".", 2)] if qualified else [])})


def _assigned(branch: Mapping[str, Any], names: list[str]) -> list[str]:
    operation, values = branch.get("operation"), _items(branch.get("values"))
    number = operation.get("value") if isinstance(operation, dict) else None
    if number == Operation.UPDATE:
        return _set_columns(_text(branch.get("clause"))) or names[: len(values)]
    if number == Operation.INSERT:
        return [name for name, value in zip(names, values, strict=False) if value != "NULL"]
    return []


def _set_columns(clause: str) -> list[str]:
    """Read the columns off the SET list of a clause; none for ``SET *``, which is all of them.

    >>> _set_columns("WHEN MATCHED THEN UPDATE SET a = f(x, 1), b = ', d = 1'")
    ['a', 'b']
    """
    set_list = re.split(r"\bUPDATE\s+SET\b", clause, maxsplit=1, flags=re.IGNORECASE)[-1]
    # Commas inside of parentheses and quotes separate nothing; what stands there is of no interest here.
    plain = re.sub(r"'(?:[^']|'')*'", "''", set_list)
    while plain != (inner := re.sub(r"\([^()]*\)", "", plain)):
        plain = inner
    return [part.partition("=")[0].strip() for part in re.split(r",(?=[^=,]*=)", plain) if "=" in part]


def _branch(fields: dict[str, Any]) -> dict[str, Any]:
    """Branches of the CASE were those of the plan, with Spark's text beside the reader's."""
    kept = {name: field for name, field in fields.items() if name not in {"spark_condition", "spark_values"}}
    if fields.get("matched") is None:
        present = "present IS NOT NULL"
    else:
        present = "true" if fields["matched"] or fields.get("by_source") else "false"
    return _record("BranchRecord", {**kept, "present": present, "assigned": _tuple([])})


def _node(fields: dict[str, Any]) -> dict[str, Any]:
    """What drawings use were texts by name, flags among them."""
    kept = {name: field for name, field in fields.items() if name != "attributes"}
    pairs = [pair for pair in _items(fields.get("attributes")) if isinstance(pair, list) and len(pair) == 2]
    attributes = {_text(name): _text(value) for name, value in pairs}
    facts = _FACTS.get(_text(fields.get("kind")))
    return _record(
        "NodeRecord",
        {
            **kept,
            "facts": (None if facts is None else facts(_text(fields.get("arguments")), attributes)),
            "trino": attributes.get("trino", ""),
        },
    )


def _scan(arguments: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    return _record("ScanFacts", {"target": attributes.get("role") == "target", "name": next(iter(arguments.split()[-1:]), "")})


def _project(arguments: str, _: Mapping[str, str]) -> dict[str, Any]:
    return _record("ProjectFacts", {"assigned": _tuple([arguments.partition(" := ")[0]] if arguments else [])})


def _join(_: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    kept = JoinType.FULL if attributes.get("full") == "yes" else JoinType.RIGHT
    replicated = attributes.get("replicate_target") == "yes"
    facts = {"distribution": attributes.get("distribution", "AUTOMATIC"), "replicate_target": replicated, "type": kept.value}
    return _record("JoinFacts", facts)


def _distinct(_: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    return _record("MarkDistinctFacts", {"exchange": attributes.get("exchange") == "yes"})


def _processor(arguments: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    columns = [name for name in attributes.get("redistribution", "").split(",") if name]
    paradigm = attributes.get("paradigm", arguments)
    return _record("ProcessorFacts", {"paradigm": paradigm, "redistribution_columns": _tuple(list(columns))})


def _writer(_: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    return _record("WriterFacts", {"fused": attributes.get("fused") == "yes"})


_FACTS: Final[Mapping[str, Callable[[str, Mapping[str, str]], dict[str, Any]]]] = {
    "TableScan": _scan,
    "UpdatablePageSourceScan": _scan,
    "Project": _project,
    "Join": _join,
    "MarkDistinct": _distinct,
    "MergeProcessor": _processor,
    "MergeWriter": _writer,
}


# -- what happened ------------------------------------------------------------------------------------------------


def _clause(fields: dict[str, Any]) -> dict[str, Any]:
    """A clause had its text alone to say up to where it tells rows apart, and which rows it is about."""
    words = _text(fields.get("text")).split()
    by_source = "BY SOURCE" in " ".join(words[:5]).upper()
    head = re.match(r".*?\bTHEN (?:UPDATE|DELETE|INSERT)\b", " ".join(words), re.IGNORECASE)
    return _record("ClauseRecord", {**fields, "by_source": by_source, "head": head[0] if head else " ".join(words)})


def _call(fields: dict[str, Any]) -> dict[str, Any]:
    """Who made a call was one text: ``writer 3``."""
    kept = {name: field for name, field in fields.items() if name != "where"}
    caller, _, number = _text(fields.get("where")).partition(" ")
    return _record("Call", {**kept, "caller": caller, "number": int(number) if number.isdecimal() else None})


def _notice(fields: dict[str, Any]) -> dict[str, Any]:
    twice = "by more than one clause" in _text(fields.get("message"))
    return _record("NoticeRecord", {**fields, "kind": CHANGED_TWICE if twice else ""})


def _error(fields: dict[str, Any]) -> dict[str, Any]:
    """What had happened by then were sentences, some of which begin with the name of a method."""
    told = [_consequence(_text(text)) for text in _items(fields.get("consequences"))]
    return _record("ErrorRecord", {**fields, "consequences": _tuple(told)})


def _consequence(text: str) -> dict[str, Any]:
    word, _, rest = text.partition(" ")
    method, said = (word, rest) if "_" in word or word == "commit" else ("", text)
    return _record("Consequence", {"text": said, "method": method})


_RECORDS: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "Trace": _trace,
    "NodeRecord": _node,
    "CaseBranch": _branch,
    "ClauseRecord": _clause,
    "Call": _call,
    "NoticeRecord": _notice,
    "ErrorRecord": _error,
}


_STEPS: Final[tuple[tuple[str, Callable[[Any], Any]], ...]] = (
    (_FIRST, lambda value: _with_layouts(_from_first(value))),
    (_SECOND, _without_reasons),
    (_THIRD, _without_versions_and_near),
    (_FOURTH, _without_what_came_fifth),
    (_FIFTH, _without_what_came_sixth),
    (_SIXTH, _without_what_came_seventh),
    # Of a source query nothing was told, which the present format has too.
    (_SEVENTH, lambda value: value),
    (_EIGHTH, _without_what_came_ninth),
)
"""What brings a format into the next one."""
_FORMATS: Final[Mapping[str, Sequence[Callable[[Any], Any]]]] = {
    name: [step for _, step in _STEPS[at:]] for at, (name, _) in enumerate(_STEPS)
}
