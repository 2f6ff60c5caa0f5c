"""The calls of the contract for display: arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import join, plural
from rowmerge_nb.report.model.placing import writers_phrase
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.spi.operations import Era, Operation

if TYPE_CHECKING:
    from rowmerge_nb.trace.contract_calls import Call
    from rowmerge_nb.trace.trace import Trace

_TABLE_HANDLE: Final = "the table handle"
_MERGE_HANDLE: Final = "the merge handle"


@dataclass(frozen=True)
class CallRow:
    """A logged call of the contract: ``given`` has its arguments without the session, ``gave`` its
    result.
    """

    order: int
    where: str
    method: str
    given: str
    gave: str
    rows: int | None
    bytes: int | None
    error: str
    at_ms: float
    took_ms: float


@dataclass(frozen=True)
class Calls:
    """The calls of the contract, and their time span."""

    rows: tuple[CallRow, ...]
    summary: str
    span_ms: float


def build_calls(trace: Trace) -> Calls | None:
    if not trace.calls:
        return None
    rows = tuple(_row(trace, call) for call in sorted(trace.calls, key=lambda call: call.order))
    workers = {call.where: call.caller for call in trace.calls if call.number is not None}
    stored_rows = sum(
        row.rows or 0 for row in rows if not row.error and row.method != "get_next_page"
    )
    parts = [plural(len(rows), "call")]
    if workers:
        caller = next(iter(workers.values()))
        all_writers = caller == "writer" and len(workers) == len(trace.writers)
        parts.append(writers_phrase(trace) if all_writers else plural(len(workers), caller))
    parts += [f"{plural(stored_rows, 'row')} stored"] if stored_rows else []
    return Calls(rows, ", ".join(parts), max(row.at_ms + row.took_ms for row in rows))


def _row(trace: Trace, call: Call) -> CallRow:
    arguments, gave = given_and_gave(trace, call)
    if call.injected:
        gave = ", ".join(filter(None, [gave, f"injected: {visible(call.injected)}"]))
    return CallRow(
        order=call.order,
        where=call.where,
        method=call.method,
        given=arguments,
        gave="" if call.error else gave,
        rows=call.rows,
        bytes=call.bytes,
        error=visible(call.error or ""),
        at_ms=call.started * 1000,
        took_ms=call.seconds * 1000,
    )


def given_and_gave(trace: Trace, call: Call) -> tuple[str, str]:
    method, arguments, gave = call.method, visible(call.given), visible(call.gave)
    if method.startswith("get_") and method.endswith(
        ("_row_id_column_handle", "_paradigm", "_layout")
    ):
        return _TABLE_HANDLE, gave
    if method == "begin_merge":
        return begun_with(trace), f"{_MERGE_HANDLE}{f', a {gave}' if gave else ''}"
    if method == "create_merge_sink":
        return _MERGE_HANDLE, "the sink"
    if method.startswith("finish_"):
        return finished_with(method, arguments), gave
    if method in {"store_merged_rows", "append_page"}:
        return stored_with(arguments), gave
    if method in {"commit", "rollback"}:
        return arguments or "the transaction", gave
    return arguments, gave


def begun_with(trace: Trace) -> str:
    """Describe the arguments of ``begin_merge``; only the current era has updated columns."""
    handle = f"{_TABLE_HANDLE} of {visible(trace.target.qualified_name or trace.target.name)}"
    if trace.settings.era != Era.CURRENT:
        return handle
    updates = [clause for clause in trace.clauses if clause.operation is Operation.UPDATE]
    updated_columns = [
        f"{visible(join([name for name, _ in clause.values]))} by clause {clause.number}"
        for clause in updates
    ]
    return f"{handle}, and the columns that are updated: {'; '.join(updated_columns) or 'none'}"


def stored_with(rows: str) -> str:
    return f"a page: {rows}" if rows else "a page"


def finished_with(method: str, fragments: str) -> str:
    handle = f"{_MERGE_HANDLE}, " if method == "finish_merge" else ""
    return f"{handle}{fragments}"
