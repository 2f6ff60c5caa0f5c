"""Running both sides of a comparison: on the target, or on a copy in memory if the store has only
one way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.choices import Flow, RepeatedMatches, StatementState, TraceLevel
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.reruns.compared_stores import CATALOGS, STORES
from rowmerge_nb.engine.reruns.rerun import with_copy
from rowmerge_nb.engine.reruns.rerun_checks import refuse_branch, refuse_options
from rowmerge_nb.trace.comparison import Comparison, Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.trace.trace import Trace

WAYS: Final[Mapping[str, tuple[str, tuple[str, str]]]] = {
    "flows": ("flow", (Flow.MERGE, Flow.UPDATABLE)),
    "paradigms": ("paradigm", ("DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS")),
    "duplicates": ("duplicates", (RepeatedMatches.TRINO, RepeatedMatches.STANDARD)),
}
"""The comparisons: the option that differs, and its two values."""

DECIDED: Final[Mapping[str, frozenset[str]]] = {
    "flows": frozenset({"flow", "paradigm"}),
    "paradigms": frozenset({"flow", "paradigm"}),
    "duplicates": frozenset({"flow", "duplicates"}),
}
"""Options that a comparison sets itself, or that one side cannot have: the defaults of engine and
notebook do not apply.
"""

WHOLE_ROWS: Final = 100_000
"""The trace has all changed rows of tables up to this size, if nothing else shows them."""


def _check(by: str, statement_kind: str, options: Mapping[str, Any]) -> None:
    if not isinstance(by, str) or by not in WAYS:
        raise RowMergeError.invalid(
            f"by = {by!r} is not possible",
            hint=f"There are: {', '.join((*WAYS, CATALOGS, STORES))}.",
        )
    names = (WAYS[by][0], *sorted(DECIDED[by]), "dry_run", "verify", "rehearse", "record", "fault")
    if by != "flows" and options.get("flow") == Flow.MERGE:
        names = tuple(name for name in names if name != "flow")
    refuse_options(f"A comparison of {by}", names, options)
    if statement_kind not in {"MERGE", "UPDATE", "DELETE"}:
        raise RowMergeError.unsupported(
            f"{statement_kind} cannot be compared: it runs in only one way",
            hint="MERGE, UPDATE and DELETE can.",
        )
    if by == "flows" and statement_kind == "MERGE":
        raise RowMergeError.unsupported(
            "The flows of MERGE cannot be compared: it has only one, since the older"
            " flow supports only UPDATE and DELETE",
            hint="Compare paradigms or duplicates, or write an UPDATE or a DELETE.",
        )
    if by == "duplicates" and statement_kind != "MERGE":
        raise RowMergeError.unsupported(
            "The rules for repeated matches cannot be compared on"
            f" {'an' if statement_kind == 'UPDATE' else 'a'} {statement_kind}: it matches every row"
            " once",
            hint="Compare flows or paradigms, or write a MERGE.",
        )


def compare(engine: RunningEngine, sql: str, by: str, options: Mapping[str, Any]) -> Comparison:
    _check(by, "MERGE" if by == "duplicates" else "UPDATE", options)
    # The engine's default may be the flow without MERGE or paradigms.
    options = {**options, "flow": Flow.MERGE}
    planned = engine.run(sql, dry_run=True, **options).trace
    _check(by, "EXPLAIN" if planned.state == StatementState.EXPLAINED else planned.kind, {})
    option, names = WAYS[by]
    notice = ""
    if by == "paradigms" and planned.target.connector != "memory":
        refuse_branch(planned.target, "This comparison")
        engine, _ = with_copy(engine, planned.target.name_parts)
        notice = (
            f"Connector '{planned.target.connector}' supports only"
            f" {planned.settings.paradigm}: both sides ran on a copy of"
            f" {planned.target.qualified_name} in memory."
        )
    if by == "flows":
        notice = (
            "Reading calls are counted only in the flow updatable: its page sources"
            " both read and write."
        )
    left_side, right_side = (_side(engine, sql, {**options, option: name}, name) for name in names)
    compared = Comparison(by, sql, _columns(planned), left_side, right_side, notice)
    if (
        compared.same is None
        and not left_side.failed
        and not right_side.failed
        and (planned.target.rows_before or 0) <= WHOLE_ROWS
    ):
        # Only the rows are taken from these; the numbers are those of the plans that would run.
        whole = [
            _side(
                engine, sql, {**options, option: name, "trace": TraceLevel.FULL}, name
            ).result.trace
            for name in names
        ]
        left_side, right_side = (
            replace(side, whole=trace)
            for side, trace in zip((left_side, right_side), whole, strict=True)
        )
        compared = Comparison(by, sql, _columns(planned), left_side, right_side, notice)
    return compared


def _side(engine: RunningEngine, sql: str, options: Mapping[str, Any], name: str) -> Side:
    try:
        result = engine.run(sql, **{**options, "rehearse": True})
    except RowMergeError as error:
        if not isinstance(error.result, Result):
            raise
        return Side(name, error.result)
    return Side(name, result, result.rehearsed)


def _columns(planned: Trace) -> tuple[str, ...]:
    writer = next(
        (node for node in planned.plan if node.kind in {"MergeProcessor", "DeleteProject"}), None
    )
    if writer is None:
        return ()
    return tuple(
        name for name, _ in writer.layout[: [name for name, _ in writer.layout].index("operation")]
    )
