"""Edited cells of a MERGE's source, for a trial that leaves the source unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time
from decimal import Context, Decimal
from math import isfinite
from numbers import Number
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean, quoted_path, quoted_text
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.table_properties import schema_of
from rowmerge_nb.engine.api.frames.dataframes import FrameTable, read_frame
from rowmerge_nb.engine.spark.frames import frame_name, is_frame, is_spark_frame
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata
from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 1_000
"""The maximum number of rows of a source with edited cells."""
SOURCES: Final = "$sources"
"""The catalog of tables with edited cells; no statement can name it."""
FORM: Final = "{row: {column: value}}, rows counted from 0 as result.journeys has them"

Edits = Mapping[int, Mapping[str, Any]]
"""New values by source row and column."""


def checked_edits(edits: object) -> Edits:
    """Return edits after a check of their form; row numbers may be texts.

    Raises:
        RowMergeError: INVALID_ARGUMENTS.

    >>> checked_edits({"3": {"price": 2}})
    {3: {'price': 2}}
    """
    mapping: Any = checked(edits, "source", Mapping, FORM)
    checked_rows: dict[int, Mapping[str, Any]] = {}
    for row, values in mapping.items():
        number = int(row) if isinstance(row, str) and row.isascii() and row.isdecimal() else row
        checked(
            number,
            "source row",
            lambda number: type(number) is int and number >= 0,
            "the number of a row in the source, from 0",
        )
        checked(values, f"source[{number}]", Mapping, "{column: value}")
        for column in values:
            checked(column, f"source[{number}], the column", str, "a column's name")
        checked_rows[number] = values
    return checked_rows


@dataclass(frozen=True)
class EditableSource:
    """The source of a MERGE whose cells can be edited: VALUES, a table, or a DataFrame that is not
    Spark's.

    Args:
        rows: the rows of the table or DataFrame, or the computed rows of VALUES.
        values: the expressions of VALUES in the text; none for a table or DataFrame.
        columns: the definition of the table.
        read: the DataFrame as a table.
    """

    text: str
    names: tuple[str, ...]
    rows: pa.Table
    values: tuple[s.Expression, ...] = ()
    frame: str = ""
    table: tuple[str, str, str] | None = None
    columns: ConnectorTableMetadata | None = None
    read: FrameTable | None = None

    def check_rows(self, trace: Trace) -> None:
        """Check that the source has the rows of the run, at the same numbers.

        Raises:
            RowMergeError: TRANSACTION_CONFLICT for other rows.
        """
        pages = trace.samples.pages
        if pages is None or pages.witness is None or "source" not in pages.witness.schema.names:
            return
        numbers = pages.witness.column("source_row").to_pylist()
        current_rows = [
            dict(zip(self.names, row, strict=True))
            for row in zip(*map(python_values, self.rows.columns), strict=True)
        ]
        for number, former_row in zip(
            numbers, python_values(pages.witness.column("source")), strict=True
        ):
            if number is None or former_row is None:
                continue
            current_row = (
                {name: current_rows[number].get(name) for name in former_row if name in self.names}
                if number < len(current_rows)
                else None
            )
            if current_row is None or repr(current_row) != repr(
                {name: former_row[name] for name in current_row}
            ):
                raise RowMergeError(
                    f"Source row {number} has changed since the {trace.kind} ran",
                    code="TRANSACTION_CONFLICT",
                    hint="Run the statement again on the current source.",
                )

    def edited(
        self, engine: RunningEngine, edits: Edits
    ) -> tuple[RunningEngine, str, dict[str, Any]]:
        """Return the engine, text and DataFrames for the statement with edited cells."""
        cells = {
            (row, at): value
            for row, values in edits.items()
            for at, value in self._cells_of_row(row, values)
        }
        if self.values:
            return engine, self._rewritten(cells), {}
        columns = [python_values(column) for column in self.rows.columns]
        for (row, at), value in cells.items():
            columns[at][row] = value
        arrays = [
            pa.array(values, field.type)
            for values, field in zip(columns, self.rows.schema, strict=True)
        ]
        rows = pa.table(arrays, schema=self.rows.schema)
        if self.columns is None:
            assert self.read is not None
            return engine, self.text, {self.frame: replace(self.read, table=rows)}
        assert self.table is not None
        memory = MemoryConnector()
        memory.put(
            ConnectorTableMetadata(SchemaTableName(*self.table[1:]), self.columns.columns), rows
        )
        return (
            engine.with_copies({SOURCES: memory}, {self.table: (SOURCES, *self.table[1:])}),
            self.text,
            {},
        )

    def _cells_of_row(self, row: int, values: Mapping[str, Any]) -> list[tuple[int, Any]]:
        if row >= self.rows.num_rows:
            raise RowMergeError.invalid(
                f"Source row {row} does not exist: the source has"
                f" {plural(self.rows.num_rows, 'row')}",
                hint="Rows are counted from 0, as result.journeys has them.",
            )
        cells = []
        for name, value in values.items():
            column_index = next(
                (
                    index
                    for index, column in enumerate(self.names)
                    if column.lower() == name.lower()
                ),
                None,
            )
            if column_index is None:
                raise RowMergeError.invalid(
                    f"The source has no column '{name}'",
                    hint=did_you_mean(name, self.names) or f"There are: {', '.join(self.names)}.",
                )
            cells.append((column_index, self._typed(row, column_index, value)))
        return cells

    def _typed(self, row: int, column_index: int, value: Any) -> Any:
        arrow_type, name = self.rows.schema.field(column_index).type, self.names[column_index]
        sql = (
            str(self.columns.columns[column_index].type)
            if self.columns is not None
            else str(from_arrow(arrow_type))
        )
        is_plain = (
            pa.types.is_primitive(arrow_type)
            or pa.types.is_decimal(arrow_type)
            or pa.types.is_string(arrow_type)
        )
        if not is_plain or (pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None):
            raise RowMergeError.unsupported(
                f"Column '{name}' of the source is of type {sql}, whose values cannot"
                " be edited by cell",
                hint="Edit the statement instead.",
            )
        wide_type = (
            pa.decimal128(38, arrow_type.scale)
            if self.values and pa.types.is_decimal(arrow_type)
            else arrow_type
        )
        try:
            array = _array_of(value, arrow_type)
            typed = python_values(array.cast(wide_type))[0]
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
            value_text = repr(value) if len(repr(value)) < 60 else f"a {type(value).__name__}"
            raise RowMergeError.invalid(
                f"{value_text} is no {sql}, the type of column '{name}' of the source (row {row})",
                hint=f"Write {_example(value, arrow_type)}, or None for NULL.",
            ) from error
        return (
            self._fitting(name, self.columns.columns[column_index].type, typed)
            if self.columns is not None
            else typed
        )

    @staticmethod
    def _fitting(name: str, sql_type: Type, value: Any) -> Any:
        """Check the length of a text, and pad it if the column has type char, as stores do."""
        if not isinstance(value, str) or not sql_type.parameters:
            return value
        length = int(str(sql_type.parameters[0]))
        if len(value) > length:
            raise RowMergeError.invalid(
                f"{value[:40]!r} has {plural(len(value), 'character')}, more than {sql_type}, the"
                f" type of column '{name}' of the source, holds",
                hint="Give a shorter text.",
            )
        return value.ljust(length) if sql_type.base == "char" else value

    def _rewritten(self, cells: Mapping[tuple[int, int], Any]) -> str:
        """Return the statement with other literals in its VALUES, replaced from the end so that
        earlier positions stay valid.
        """
        text = self.text
        for (row, column_index), value in sorted(cells.items(), reverse=True):
            row_expression = self.values[row]
            item = (
                row_expression.items[column_index]
                if isinstance(row_expression, s.RowConstructor)
                else row_expression
            )
            arrow_type = self.rows.schema.field(column_index).type
            if isinstance(item, s.Cast) and pa.types.is_string(arrow_type):
                raise RowMergeError.unsupported(
                    f"Column '{self.names[column_index]}' of source row {row} is written as a CAST",
                    hint="Edit the statement instead.",
                )
            text = text[: item.span.start] + _literal(value, arrow_type) + text[item.span.end :]
        return text


def source_of(
    engine: RunningEngine, sql: str, options: Mapping[str, Any], target: tuple[str, ...]
) -> EditableSource:
    """Return the source of a MERGE.

    Raises:
        RowMergeError: NOT_SUPPORTED for a statement without a source, and for a source whose cells
            cannot be edited.
    """
    relation = relation_of(sql, str(options.get("dialect") or engine.options.dialect))
    alias: tuple[str, ...] = ()
    if isinstance(relation, s.Aliased):
        alias, relation = tuple(column.text for column in relation.columns), relation.relation
    if isinstance(relation, s.SubqueryRelation):
        source = _from_values(engine, sql, relation)
    else:
        assert isinstance(relation, s.Table)
        source = _from_name(
            engine, sql, [part.text for part in relation.name.parts], options, target
        )
    if source.rows.num_rows > MOST_ROWS:
        raise RowMergeError.unsupported(
            f"The source has {plural(source.rows.num_rows, 'row')}; cells are edited of at most"
            f" {MOST_ROWS:,}",
            hint="Try a smaller source.",
        )
    return replace(source, names=alias) if alias else source


def relation_of(sql: str, dialect: str) -> s.Relation:
    """Return the source of a MERGE whose text allows edited cells; nothing is looked up.

    >>> type(relation_of("MERGE INTO t USING (VALUES 1) s (a) ON t.a = s.a WHEN MATCHED THEN DELETE", "trino")).__name__
    'Aliased'
    """
    tree = parse(sql, dialect=dialect)
    if not isinstance(tree, st.Merge):
        raise RowMergeError.unsupported(
            "Only a MERGE has a source whose cells can be edited",
            hint="Give another statement as text instead.",
        )
    relation = tree.source.relation if isinstance(tree.source, s.Aliased) else tree.source
    if isinstance(relation, s.Table) and relation.period is None and not tree.named_queries:
        return tree.source
    if isinstance(relation, s.SubqueryRelation) and isinstance(_body_of(relation.query), s.Values):
        return tree.source
    raise RowMergeError.unsupported(
        "The source of this MERGE is a query, whose cells cannot be edited",
        hint="Edit the statement instead; cells of VALUES, tables and DataFrames can be edited.",
    )


def _body_of(query: s.QueryNode) -> s.QueryBody:
    body: s.QueryBody = query
    while isinstance(body, s.QueryNode) and not (
        body.named_queries or body.order_by or body.offset or body.limit is not None
    ):
        body = body.body
    return body


def _from_values(engine: RunningEngine, sql: str, relation: s.SubqueryRelation) -> EditableSource:
    rows = _body_of(relation.query)
    assert isinstance(rows, s.Values)
    if any(isinstance(row, s.Literals) for row in rows.rows) or len(rows.rows) > MOST_ROWS:
        raise RowMergeError.unsupported(
            "This MERGE has too many VALUES to edit individually",
            hint="Try a smaller source.",
        )
    table = engine.run(f"SELECT * FROM {sql[relation.span.start : relation.span.end]}").table
    assert table is not None
    return EditableSource(sql, tuple(table.column_names), table, values=rows.rows)


def _from_name(
    engine: RunningEngine,
    sql: str,
    parts: Sequence[str],
    options: Mapping[str, Any],
    target: tuple[str, ...],
) -> EditableSource:
    sql_name = quoted_path(parts)
    catalog, schema, table = engine.full_name(sql_name)
    table_metadata = engine.table_metadata(catalog, schema, table)
    if table_metadata is not None:
        if (catalog, schema, table) == target:
            raise RowMergeError.unsupported(
                "The source of this MERGE is its target, whose cells cannot be edited",
                hint="Edit the statement instead.",
            )
        count = engine.run(f"SELECT count(*) FROM {sql_name}").table
        if count is not None and count.column(0)[0].as_py() > MOST_ROWS:
            raise RowMergeError.unsupported(
                f"The source {sql_name} has more than {MOST_ROWS:,} rows, so its cells"
                " cannot be edited",
                hint="Try a smaller source.",
            )
        rows = engine.table(sql_name).cast(schema_of(table_metadata.columns))
        return EditableSource(
            sql,
            tuple(rows.column_names),
            rows,
            table=(catalog, schema, table),
            columns=table_metadata,
        )
    frames = {
        name: frame for name, frame in (options.get("namespace") or {}).items() if is_frame(frame)
    }
    name = frame_name(parts[0], frames) if len(parts) == 1 else None
    if name is None:
        raise RowMergeError.unsupported(
            f"The source {sql_name} is neither a table nor a DataFrame, so its cells"
            " cannot be edited",
            hint="Edit the statement instead.",
        )
    if is_spark_frame(frames[name]):
        raise RowMergeError.unsupported(
            f"The source '{name}' is a Spark DataFrame, whose cells cannot be edited",
            hint=f"Give its rows, as {name}.toPandas() does.",
        )
    read = read_frame(name, frames[name])
    assert read.table is not None
    return EditableSource(sql, tuple(read.table.column_names), read.table, frame=name, read=read)


def _array_of(value: Any, arrow_type: pa.DataType) -> pa.Array:
    """Return a value as an array of its own type, if the column's type has exactly this value.

    A number is not text or a time, and a boolean is not a number.
    """
    if isinstance(value, str):
        is_time = pa.types.is_time(arrow_type)
        return pa.array([time.fromisoformat(value) if is_time else value])
    if value is not None:
        is_moment = not isinstance(value, Number)
        if (
            pa.types.is_string(arrow_type)
            or isinstance(value, bool) != pa.types.is_boolean(arrow_type)
            or is_moment != pa.types.is_temporal(arrow_type)
        ):
            raise TypeError(repr(value))
    if isinstance(value, datetime) and pa.types.is_date(arrow_type) and value.time() != time():
        raise ValueError(repr(value))
    if value is not None and pa.types.is_decimal(arrow_type):
        # Arrow would drop digits of a float, and refuse a whole number in a short decimal.
        rounded = _rounded(value, arrow_type.scale)
        if rounded != Decimal(str(value)):
            raise ValueError(repr(value))
        return pa.array([rounded])
    return pa.array([value])


def _rounded(value: Any, scale: int) -> Decimal:
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale), context=Context(prec=76))


def _example(value: Any, arrow_type: pa.DataType) -> str:
    """Return a value that a column takes, near a number that it does not.

    >>> _example(99.25, pa.decimal128(4, 1)), _example(5, pa.string()), _example(5, pa.date32())
    ("'99.2'", "'5'", "'2026-01-31'")
    """
    if pa.types.is_decimal(arrow_type):
        largest = Decimal("9" * arrow_type.precision).scaleb(-arrow_type.scale)
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        near = _rounded(value, arrow_type.scale) if is_number and isfinite(value) else largest
        return f"'{near if abs(near) <= largest else largest}'"
    if pa.types.is_string(arrow_type):
        return repr(str(value))
    examples = (
        (pa.types.is_date, "'2026-01-31'"),
        (pa.types.is_timestamp, "'2026-01-31 10:00:00'"),
        (pa.types.is_time, "'10:00:00'"),
    )
    return next((text for is_type, text in examples if is_type(arrow_type)), "a value of that type")


def _literal(value: Any, arrow_type: pa.DataType) -> str:
    """Return a value as SQL of a type; texts and decimals with their own length, as in VALUES."""
    if value is None:
        return f"CAST(NULL AS {from_arrow(arrow_type)})"
    text = quoted_text(_text(value))
    if pa.types.is_string(arrow_type):
        return text
    return (
        f"DECIMAL {text}"
        if pa.types.is_decimal(arrow_type)
        else f"CAST({text} AS {from_arrow(arrow_type)})"
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if type(value).__name__ == "Decimal" else str(value)
