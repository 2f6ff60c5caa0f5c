"""Changed rows, derived from a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_rows, python_values

if TYPE_CHECKING:
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace


def changed_rows(trace: Trace) -> list[dict[str, Any]]:
    """Return an entry per sampled row for which a clause fired.

    Its keys are ``operation``, ``case_number``, ``source_row``, and per table column ``old.<name>``
    and ``new.<name>``. Old values are None if rows did not carry them.
    """
    pages = trace.samples.pages
    if pages is None:
        return []
    if not pages.transformed:
        return _without_merge_rows(pages)
    layout, merge_row = pages.layout.merge_row, pages.before.column(pages.layout.before.merge_row)
    fields = [python_values(merge_row.field(index)) for index in range(layout.count)]
    names = [merge_row.type.field(index).name for index in layout.columns]
    valid = merge_row.is_valid().to_pylist()
    witnesses = python_rows(pages.witness) if pages.witness is not None else [{} for _ in valid]
    changes = []
    for index, witness in enumerate(witnesses):
        number, case = fields[layout.operation][index], fields[layout.case_number][index]
        if not valid[index] or number == Operation.NONE:
            continue
        operation, target = Operation(number), witness.get("target") or {}
        entry = {
            "operation": operation.name,
            "case_number": case,
            "source_row": witness.get("source_row"),
        }
        for name, values in zip(names, fields, strict=False):
            entry[f"old.{name}"] = target.get(name)
            entry[f"new.{name}"] = None if operation is Operation.DELETE else values[index]
        changes.append(entry)
    return changes


def _without_merge_rows(pages: PageSample) -> list[dict[str, Any]]:
    channels = pages.layout.after
    names = [pages.after.schema.names[index] for index in channels.columns]
    witnesses = (
        python_rows(pages.witness)
        if pages.witness is not None
        else [{} for _ in range(pages.after.num_rows)]
    )
    operations = pages.after.column(channels.operation).to_pylist()
    values = zip(
        *(python_values(pages.after.column(index)) for index in channels.columns), strict=True
    )
    changes = []
    for witness, number, row in zip(witnesses, operations, values, strict=True):
        operation, target = Operation(number), witness.get("target") or {}
        entry: dict[str, Any] = {"operation": operation.name, "case_number": 0, "source_row": None}
        for name, value in zip(names, row, strict=True):
            entry |= {
                f"old.{name}": target.get(name),
                f"new.{name}": None if operation is Operation.DELETE else value,
            }
        changes.append(entry)
    return changes
