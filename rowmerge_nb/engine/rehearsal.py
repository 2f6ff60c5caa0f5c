"""Running both sides of a comparison: on the target itself, or on a copy of it in memory where the store has one way only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.memory import MemoryConnector
from rowmerge_nb.engine.comparison import WAYS, Comparison, Side, check_comparison
from rowmerge_nb.engine.result import Result
from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.engine.trace import Trace
    from rowmerge_nb.spi.connector import Connector

__all__ = ["compare"]

COPIES: Final = "$copies"
"""The catalog of copies; no statement can name it."""
KEPT: Final = ("partitioned_by", "bucketed_by", "bucket_count", "primary_key")
"""Table properties that a copy takes over."""
WHOLE_ROWS: Final = 100_000
"""Of tables up to this size all changed rows are traced, where nothing else tells what they are."""


def compare(engine: Engine, sql: str, by: str, options: Mapping[str, Any]) -> Comparison:
    """Run a statement in two ways; see `rowmerge_nb.engine.engine.Engine.compare`."""
    check_comparison(by, "MERGE" if by == "duplicates" else "UPDATE", options)
    # The engine's own default may be the flow that has no MERGE, or no paradigms.
    options = {**options, "flow": "merge"}
    planned = engine.run(sql, dry_run=True, **options).trace
    check_comparison(by, "EXPLAIN" if planned.state == "explained" else planned.kind, {})
    option, names = WAYS[by]
    notice = ""
    if by == "paradigms" and planned.connector != "memory":
        engine = _with_copy(engine, planned)
        notice = f"Connector '{planned.connector}' works by {planned.paradigm} only: both sides ran on a copy of {planned.qualified} in memory."
    if by == "flows":
        notice = "Calls that read are counted in the flow updatable alone: there the page sources that read are those that write."
    left, right = (_side(engine, sql, {**options, option: name}, name) for name in names)
    compared = Comparison(by, sql, _columns(planned), left, right, notice)
    if compared.same is None and not left.failed and not right.failed and (planned.rows_before or 0) <= WHOLE_ROWS:
        # Only what the rows are is taken from these; the numbers stay those of the plans that would run.
        whole = [_side(engine, sql, {**options, option: name, "trace": "full"}, name).result.trace for name in names]
        left, right = (replace(side, whole=trace) for side, trace in zip((left, right), whole, strict=True))
        compared = Comparison(by, sql, _columns(planned), left, right, notice)
    return compared


def _side(engine: Engine, sql: str, options: Mapping[str, Any], name: str) -> Side:
    try:
        result = engine.run(sql, **{**options, "rehearse": True})
    except RowMergeError as error:
        if not isinstance(error.result, Result):
            raise
        return Side(name, error.result)
    return Side(name, result, result.rehearsed)


def _columns(planned: Trace) -> tuple[str, ...]:
    writer = next((node for node in planned.plan if node.kind in {"MergeProcessor", "DeleteProject"}), None)
    if writer is None:
        return ()
    return tuple(name for name, _ in writer.layout[: [name for name, _ in writer.layout].index("operation")])


def _with_copy(engine: Engine, planned: Trace) -> Engine:
    """Copy the target into memory."""
    catalog, schema, table = planned.qualified.split(".", 2)
    quoted = ".".join(f'"{part}"' for part in (catalog, schema, table))
    rows = engine.run(f"SELECT * FROM {quoted}").table
    known = engine.table_metadata(catalog, schema, table)
    if rows is None or known is None:
        msg = f"A query of {planned.qualified} gave no rows"
        raise RuntimeError(msg)
    memory = MemoryConnector()
    properties = {name: known.properties[name] for name in KEPT if known.properties.get(name)}
    name = SchemaTableName(schema, table)
    memory.put(ConnectorTableMetadata(name, known.columns, properties), rows)
    connectors: dict[str, Connector] = {COPIES: memory}
    return engine.with_copies(connectors, {(catalog, schema, table): (COPIES, schema, table)})
