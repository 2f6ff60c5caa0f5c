"""Changed rows, put together from what a trace holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import CASE_NUMBER, MERGE_ROW, OPERATION

if TYPE_CHECKING:
    from rowmerge_nb.engine.trace import Trace

__all__ = ["changed_rows"]


def changed_rows(trace: Trace) -> list[dict[str, Any]]:
    """Give one entry per sampled row for which a clause fired.

    Returns:
        Entries with ``operation``, ``case_number``, ``source_row`` and, for every table column, ``old.<name>`` and ``new.<name>``;
        old values are None where rows did not carry them (large statements).
    """
    pages = trace.pages
    if pages is None:
        return []
    rows = pages.before.column(MERGE_ROW).to_pylist()
    witnesses: list[dict[str, Any]] = pages.witness.to_pylist() if pages.witness is not None else [{} for _ in rows]
    changes = []
    for row, witness in zip(rows, witnesses, strict=True):
        if row is None or row[OPERATION] == Operation.NONE:
            continue
        names = list(row)[:-3]
        operation, target = Operation(row[OPERATION]), witness.get("target") or {}
        entry = {"operation": operation.name, "case_number": row[CASE_NUMBER], "source_row": witness.get("source_row")}
        for name in names:
            entry[f"old.{name}"] = target.get(name)
            entry[f"new.{name}"] = None if operation is Operation.DELETE else row[name]
        changes.append(entry)
    return changes
