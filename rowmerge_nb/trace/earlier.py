"""Traces in earlier formats, brought into the present one."""

from __future__ import annotations

from typing import Any, Final

from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.page import MERGE_ROW, PageLayout
from rowmerge_nb.trace.schema import decoded_page, encoded

__all__ = ["FORMAT", "of_present_format"]

FORMAT: Final = "rowmerge_nb trace 2"
_FIRST: Final = "rowmerge_nb trace 1"


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
    return _with_layouts(_from_first(content[_FIRST])) if _FIRST in content else content.get(FORMAT)


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
    """Branches of the CASE were those of the plan, with Spark's text beside the reader's."""
    if isinstance(value, list):
        return [_from_first(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("is") == "CaseBranch" and isinstance(fields := value.get("fields"), dict):
        kept = {name: field for name, field in fields.items() if name not in {"spark_condition", "spark_values"}}
        return {"is": "BranchRecord", "fields": {**kept, "present": _present(fields)}}
    return {name: _from_first(item) for name, item in value.items()}


def _present(fields: dict[str, Any]) -> str:
    if fields.get("matched") is None:
        return "present IS NOT NULL"
    return "true" if fields["matched"] or fields.get("by_source") else "false"
