"""The table of a record in the connector of a replay."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, message_of
from rowmerge_nb.replays.replayed_statement import LocalStatement
from rowmerge_nb.replays.rows import NOT_FOUND, data_of, places_in
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.replays.origin import ReplayOrigin
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.trace.record import Record

_LOCATION: Final = re.compile("location|path|directory|folder", re.IGNORECASE)


@dataclass(frozen=True)
class Prepared:
    """A table for a replay.

    Args:
        is_own: whether it has no rows of others, so that changes may be committed.
    """

    name: SchemaTableName
    has_rows: bool
    is_own: bool
    is_temporary: bool = False
    notice: str = ""

    def drop(self, connector: Connector, record: Record) -> str:
        if not self.is_temporary:
            return ""
        try:
            statement = LocalStatement(connector, self.name, record.session)
            try:
                if statement.handle is None:
                    statement.rollback()
                    return ""
                statement.metadata.drop_table(statement.session, statement.handle)
                statement.commit()
            except BaseException:
                statement.rollback()
                raise
        except Exception as error:  # noqa: BLE001 - reported as a notice: the replay is over
            return (
                f"The table {self.name}, created for the replay, could not be dropped:"
                f" {message_of(error)}"
            )
        return ""


def check_make_table(make_table: Any) -> None:
    checked(
        make_table,
        "make_table",
        lambda value: value is None or callable(value),
        "a function of connector, metadata and rows",
    )


def prepared_table(
    connector: Connector, record: Record, make_table: Any, origin: ReplayOrigin
) -> Prepared:
    """Find or create a table with a record's rows, or raise NOT_SUPPORTED."""
    is_own = origin.is_own
    schema = _schema_in(connector, record, creates=origin.may_create_schema)
    name = SchemaTableName(schema, record.name[2])
    if record.rows is None:
        return Prepared(
            name,
            has_rows=False,
            is_own=is_own,
            notice="The record does not have the rows of the target",
        )
    rows = data_of(record, record.rows)
    existing = _rows_of(connector, record, name)
    if existing is not None and _are_in(rows, existing, whole=record.row_count == rows.num_rows):
        return Prepared(name, has_rows=True, is_own=is_own)
    problem = ""
    if existing is None or not is_own or make_table is None:
        new_name = (
            name
            if existing is None and is_own
            else SchemaTableName(name.schema, f"{name.table}_replay_{uuid.uuid4().hex[:8]}")
        )
        problem = _make(connector, record, new_name, rows, make_table)
        if not problem:
            return Prepared(new_name, has_rows=True, is_own=True, is_temporary=not is_own)
        if not is_own:
            # It may exist without its rows.
            Prepared(new_name, has_rows=False, is_own=True, is_temporary=True).drop(
                connector, record
            )
    elif make_table is not None:
        problem = _make(connector, record, name, rows, make_table)
        if not problem:
            return Prepared(name, has_rows=True, is_own=True)
    if existing is None:
        raise RowMergeError.unsupported(
            f"{type(connector).__name__} has no table {name}, and it cannot be created: {problem}",
            hint="Pass make_table=..., a function of connector, metadata and rows.",
        )
    if is_own and _refill(connector, record, name, rows):
        return Prepared(name, has_rows=True, is_own=True)
    why = (
        f"The table {name} of the connector has other rows than that of the record,"
        f" and a table cannot be created: {problem}"
    )
    return Prepared(name, has_rows=False, is_own=is_own, notice=why)


def _schema_in(connector: Connector, record: Record, *, creates: bool) -> str:
    """Return the record's schema, or the connector's first one.

    With ``creates``, a connector without schemas gets the record's one.
    """
    schema = record.name[1]
    statement = LocalStatement(
        connector, SchemaTableName(schema, record.name[2]), record.session, looked_up=False
    )
    try:
        metadata, session = statement.metadata, statement.session
        if metadata.schema_exists(session, schema):
            return schema
        others = metadata.list_schemas(session)
        if others or not creates:
            return next(iter(others), schema)
    finally:
        with suppress(Exception):
            statement.rollback()
    with suppress(Exception):
        # Otherwise the table cannot be created either, whose error is reported.
        _in_statement(
            connector,
            record,
            SchemaTableName(schema, record.name[2]),
            lambda s: s.metadata.create_schema(s.session, schema),
            looked_up=False,
        )
    return schema


def _rows_of(connector: Connector, record: Record, name: SchemaTableName) -> Page | None:
    statement = LocalStatement(connector, name, record.session)
    try:
        if statement.handle is None:
            return None
        columns = statement.columns
        if [column.name for column in columns] != [column.name for column in record.columns]:
            return None
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return data_of(record, statement.rows())
        return None
    finally:
        with suppress(Exception):
            statement.rollback()


def _are_in(rows: Page, table_rows: Page, *, whole: bool) -> bool:
    if whole and rows.num_rows != table_rows.num_rows:
        return False
    return bool((places_in(table_rows, rows) != NOT_FOUND).all())


def _make(
    connector: Connector, record: Record, name: SchemaTableName, rows: Page, make_table: Any
) -> str:
    columns = tuple(
        ColumnMetadata(column.name, column.sql_type, column.nullable) for column in record.columns
    )
    metadata = ConnectorTableMetadata(name, columns, _properties(connector, record))
    try:
        if make_table is not None:
            make_table(
                connector, metadata, list(zip(*map(python_values, rows.columns), strict=True))
            )
        else:
            _in_statement(
                connector, record, name, lambda s: s.metadata.create_table(s.session, metadata)
            )
            if rows.num_rows:
                _in_statement(connector, record, name, lambda s: _insert(s, rows))
        actual = _rows_of(connector, record, name)
    except Exception as error:  # noqa: BLE001 - whatever a connector raises here, the replay goes as far as it can without the table
        return message_of(error)
    if actual is None or not _are_in(rows, actual, whole=True):
        return "the rows that are read differ from the inserted rows"
    return ""


def _properties(connector: Connector, record: Record) -> dict[str, Any]:
    supported = connector.get_table_properties()
    return {
        name: value for name, value in unlocated_properties(record).items() if name in supported
    }


def unlocated_properties(record: Record) -> dict[str, Any]:
    properties = {}
    for name, value in record.properties.items():
        flat = value if isinstance(value, tuple) else (value,)
        is_location = any(
            isinstance(one, str) and ("/" in one or "\\" in one) for one in flat
        ) or _LOCATION.search(name)
        if value not in (None, ()) and not is_location:
            properties[name] = list(value) if isinstance(value, tuple) else value
    return properties


def _insert(statement: LocalStatement, rows: Page) -> None:
    try:
        statement.begin_insert()
    except ConnectorError as error:
        if error.code != "NOT_SUPPORTED":
            raise
        _change(statement, rows, keep=True)
        return
    work = statement.insert([rows])
    if work.error is not None:
        raise work.error
    statement.finish_insert(work.fragments)


def _refill(connector: Connector, record: Record, name: SchemaTableName, rows: Page) -> bool:
    with suppress(Exception):
        _in_statement(
            connector, record, name, lambda statement: _change(statement, rows, keep=False)
        )
        actual = _rows_of(connector, record, name)
        return actual is not None and _are_in(rows, actual, whole=True)
    return False


def _change(statement: LocalStatement, rows: Page, *, keep: bool) -> None:
    era = Era(str(statement.session.properties.get("era", Era.DOCUMENTS)))
    row_id = statement.begin_merge({} if era is Era.CURRENT else None)
    existing = statement.rows(statement.merge_handle.get_table_handle(), row_id)
    layout = PageLayout(rows.num_columns, era=era)
    schema = layout.output_schema(pa.schema([*rows.schema, pa.field("row_id", row_id.type.arrow)]))
    pages = []
    for page, operation in (
        (None if keep else existing, Operation.DELETE),
        (rows, Operation.INSERT),
    ):
        if page is not None and page.num_rows:
            count, ids = page.num_rows, existing.column(existing.num_columns - 1)
            control = {
                layout.after.operation: int(operation),
                layout.after.insert_from_update: 0,
                layout.after.case_number: 0,
            }
            arrays = [*page.columns[: rows.num_columns]]
            for index in range(rows.num_columns, len(schema)):
                if index == layout.after.row_id:
                    arrays.append(
                        ids if operation is Operation.DELETE else pa.nulls(count, row_id.type.arrow)
                    )
                else:
                    arrays.append(
                        pa.array(np.full(count, control[index])).cast(schema.field(index).type)
                    )
            pages.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    work = statement.merge(0, pages, layout)
    if work.error is not None:
        raise work.error
    statement.finish_merge(work.fragments)


def _in_statement(
    connector: Connector,
    record: Record,
    name: SchemaTableName,
    do: Callable[[LocalStatement], object],
    *,
    looked_up: bool = True,
) -> None:
    statement = LocalStatement(connector, name, record.session, looked_up=looked_up)
    try:
        do(statement)
        statement.commit()
    except BaseException:
        with suppress(Exception):
            statement.rollback()
        raise
