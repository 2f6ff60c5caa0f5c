"""Transport and application of a memory table's changes.

A fragment is one line of JSON (``{"kind": "insert"|"delete"|"update"|"values", "rows": n}``)
followed by an Arrow stream.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa

from rowmerge_nb.spi import Page, row_ids_of

FRAGMENT_BYTES = 32 * 1024 * 1024


def encode(change_kind: str, pages: Sequence[Page]) -> Iterator[bytes]:
    """Pack pages into fragments of up to about 32 MB."""
    waiting: list[Page] = []
    for page in pages:
        waiting.append(page)
        if sum(p.nbytes for p in waiting) >= FRAGMENT_BYTES:
            yield _pack(change_kind, waiting)
            waiting = []
    if waiting:
        yield _pack(change_kind, waiting)


def _pack(change_kind: str, pages: Sequence[Page]) -> bytes:
    sink = pa.BufferOutputStream()
    sink.write(
        json.dumps({"kind": change_kind, "rows": sum(page.num_rows for page in pages)}).encode()
        + b"\n"
    )
    with pa.ipc.new_stream(sink, pages[0].schema) as writer:
        for page in pages:
            writer.write_batch(page)
    return bytes(sink.getvalue())


def positions_of(row_ids: pa.Array) -> pa.Array:
    """Return the positions (int64) in row ids.

    >>> positions_of(pa.array([{"bucket": 1, "position": 7}])).to_pylist()
    [7]
    """
    return row_ids.field("position") if pa.types.is_struct(row_ids.type) else row_ids


def apply_changes(data: pa.Table, fragments: Collection[bytes]) -> pa.Table:
    """Build the next version of a table.

    Returns:
        Unchanged and updated rows in their order, then the new rows in the order of the fragments.
    """
    parts: dict[str, list[pa.Table]] = {"insert": [], "delete": [], "update": [], "values": []}
    for fragment in fragments:
        header, stream = fragment.split(b"\n", 1)
        with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
            parts[json.loads(header)["kind"]].append(reader.read_all())
    parts["update"] += [_completed(data, table) for table in parts["values"]]
    result = data
    positions_now = np.arange(data.num_rows)
    if parts["update"]:
        updates = pa.concat_tables(parts["update"])
        positions = _positions(updates)
        positions_now[positions] = data.num_rows + np.arange(len(positions))
        result = pa.concat_tables([data, _like(data, updates)])
    if parts["delete"]:
        keep = np.ones(data.num_rows, bool)
        keep[_positions(pa.concat_tables(parts["delete"]))] = False
        positions_now = positions_now[keep]
    if parts["update"]:
        result = result.take(pa.array(positions_now))
    elif parts["delete"]:
        result = result.filter(pa.array(keep))
    new = [_like(data, table) for table in parts["insert"]]
    return pa.concat_tables([result, *new]).combine_chunks()


def appended_rows(columns: pa.Schema, fragments: Collection[bytes]) -> pa.Table:
    return apply_changes(columns.empty_table(), fragments)


def _completed(data: pa.Table, values: pa.Table) -> pa.Table:
    """Complete updated columns, named by index, with the others. Positions come last."""
    positions, (*numbers, _) = row_ids_of(values), values.column_names
    rows = data.take(positions)
    for number, column in zip(numbers, values.columns, strict=False):
        rows = rows.set_column(int(number), data.schema.field(int(number)), column)
    return rows.append_column("position", positions)


def _positions(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    positions: np.ndarray[tuple[int], np.dtype[np.int64]] = row_ids_of(table).to_numpy()
    return positions


def _like(data: pa.Table, changes: pa.Table) -> pa.Table:
    return changes.select(list(range(data.num_columns))).cast(data.schema)
