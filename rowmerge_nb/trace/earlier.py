"""Traces in earlier formats, brought into the present one."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FORMAT", "of_present_format"]

FORMAT: Final = "rowmerge_nb trace 2"
_FIRST: Final = "rowmerge_nb trace 1"


def of_present_format(content: Any) -> Any:
    """Give what is kept under a format's name as the present format has it; None if there is no format that is known.

    Nothing is checked here: what is not as its format says is left for the reader of the present format to find.

    >>> of_present_format({FORMAT: 1}), of_present_format({"rowmerge_nb trace 0": 1})
    (1, None)
    """
    if not isinstance(content, dict) or len(content) != 1:
        return None
    return _from_first(content[_FIRST]) if _FIRST in content else content.get(FORMAT)


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
