"""A record that is written by hand or in a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.trace.record import HandedPage, Record, RecordedColumn

ROW_ID_COLUMN = RecordedColumn("$row", "bigint")
"""The row id in a case: the index of the target's row; a replay finds the connector's own row ids
by the rows.
"""
KINDS = ("MERGE", "UPDATE", "DELETE", "INSERT")


def case(
    *,
    columns: Mapping[str, str],
    rows: Sequence[Sequence[Any]],
    pages: Sequence[tuple[int, Sequence[Sequence[Any]]]],
    kind: str = "MERGE",
    table: str = "default.replayed",
    properties: Mapping[str, Any] | None = None,
    session: Mapping[str, Any] | None = None,
    not_null: Sequence[str] = (),
    redistribution: Sequence[int] = (),
    updated: Mapping[int, Sequence[str]] | None = None,
    channels: Sequence[int] = (),
    flow: str = "merge",
) -> Record:
    """Build a record from literals, or raise INVALID_ARGUMENTS.

    Args:
        columns: the table's columns with their SQL types.
        rows: the target's rows before the statement.
        pages: pairs of a writer's number (in the older flow a split's) and rows. A row has an
            operation, the index of the target row or None, the values of all columns, and in the
            current era the case number. Operations are ``INSERT``, ``DELETE``, ``UPDATE``, and in
            the current era ``UPDATE_INSERT`` and ``UPDATE_DELETE``.
        kind: ``MERGE``, ``UPDATE``, ``DELETE`` or ``INSERT``.
        table: schema and name.
        properties: table properties.
        session: session properties, including ``era``.
        not_null: columns that reject NULL.
        redistribution: the indexes of the insert layout's columns.
        updated: the columns of an UPDATE, by case number in the current era, under 0 in the older
            flow.
        channels: in the older flow, the channels of an UPDATE's columns and row id.
        flow: ``merge`` or ``updatable``.

    >>> record = case(columns={"id": "bigint", "name": "varchar"}, rows=[(1, "a")],
    ...               pages=[(0, [("DELETE", 0, (None, None)), ("INSERT", None, (1, "b"))])])
    >>> record.pages[0].page.to_pydict()
    {'id': [None, 1], 'name': [None, 'b'], 'operation': [2, 1], 'row_id': [0, None]}
    """
    if kind not in KINDS:
        raise RowMergeError.invalid(
            f"kind = {kind!r} is not possible",
            hint=f"There are: {', '.join(KINDS)}.",
        )
    schema, _, name = table.rpartition(".")
    empty = Record(
        statement="",
        kind=kind,
        name=("", schema or "default", name),
        connector="",
        columns=tuple(
            RecordedColumn(column, sql_type, column not in not_null)
            for column, sql_type in columns.items()
        ),
        row_id=None if kind == "INSERT" else ROW_ID_COLUMN,
        properties=dict(properties or {}),
        session=dict(session or {}),
        era=Era((session or {}).get("era", Era.DOCUMENTS)),
        flow=Flow(flow),
        redistribution=tuple(redistribution),
        updated={number: tuple(names) for number, names in (updated or {}).items()},
        channels=tuple(channels),
        row_count=len(rows),
    )
    return _with_rows(empty, rows, pages)


def _with_rows(
    record: Record,
    rows: Sequence[Sequence[Any]],
    pages: Sequence[tuple[int, Sequence[Sequence[Any]]]],
) -> Record:
    values = [[*row, *([] if record.row_id is None else [index])] for index, row in enumerate(rows)]
    try:
        handed_pages = tuple(
            HandedPage(number, _page(record, page, len(rows))) for number, page in pages
        )
        return replace(record, pages=handed_pages, rows=_batch(values, record.schema))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise RowMergeError.invalid(
            "The values do not form pages of the columns"
            f" {', '.join(f'{c.name} {c.type}' for c in record.columns)}: {error_text(error)}",
            hint="A row has a value for every column.",
        ) from error


def _page(record: Record, rows: Sequence[Sequence[Any]], count: int) -> pa.RecordBatch:
    page_rows = []
    for operation, index, values, *numbers in rows:
        if operation not in Operation.__members__:
            msg = f"There is no operation '{operation}'"
            operations = list(Operation.__members__)
            raise RowMergeError.invalid(
                msg,
                hint=did_you_mean(str(operation), operations)
                or f"There are: {', '.join(operations)}.",
            )
        if index is not None and not (type(index) is int and 0 <= index < count):
            raise RowMergeError.invalid(
                f"Row {index!r} of the target does not exist: it has {count}, counted from 0",
                hint="Pass the index of a row, or None for a row to insert.",
            )
        if record.row_id is None:
            page_rows.append([*values])
        elif record.flow is Flow.UPDATABLE:
            page_rows.append([index, *values])
        else:
            number = (numbers or [0]) if record.era is Era.CURRENT else []
            page_rows.append([*values, int(Operation[operation]), *number, index])
    return _batch(page_rows, record.page_schema)


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    for row in rows:
        if len(row) != len(schema):
            raise ValueError(
                f"{tuple(row)} has {len(row)} values, and there are {len(schema)}:"
                f" {', '.join(schema.names)}"
            )
    arrays = [
        pa.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
