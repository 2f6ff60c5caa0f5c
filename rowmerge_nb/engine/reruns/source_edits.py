"""Cells of a MERGE's source that are to have other values, for a trial: the source itself stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import RowMergeError, checked
from rowmerge_nb.base.names import did_you_mean, quoted
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.memory.connector import MemoryConnector
from rowmerge_nb.connectors.memory.table_properties import schema_of
from rowmerge_nb.engine.catalog.dataframes import FrameTable, read_frame
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

    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 1_000
"""Cells of larger sources are not edited."""
SOURCES: Final = "$sources"
"""The catalog of tables with edited cells; no statement can name it."""
FORM: Final = "{row: {column: value}}, rows counted from 0 as result.journeys has them"

Edits = Mapping[int, Mapping[str, Any]]
"""Per number of a source row the values that columns are to have."""


def checked_edits(edits: object) -> Edits:
    """Return cells that are of the form that they must have; numbers of rows may be texts, as JSON has them.

    Raises:
        RowMergeError: INVALID_ARGUMENTS.

    >>> checked_edits({"3": {"price": 2}})
    {3: {'price': 2}}
    """
    given: Any = checked(edits, "source", Mapping, FORM)
    found: dict[int, Mapping[str, Any]] = {}
    for row, values in given.items():
        number = int(row) if isinstance(row, str) and row.isascii() and row.isdecimal() else row
        checked(number, "source row", lambda one: type(one) is int and one >= 0, "the number of a row in the source, from 0")
        checked(values, f"source[{number}]", Mapping, "{column: value}")
        for column in values:
            checked(column, f"source[{number}], the column", str, "a column's name")
        found[number] = values
    return found


@dataclass(frozen=True)
class Source:
    """The source of a MERGE, as far as its cells can have other values: VALUES, a table, or a DataFrame that is not one of Spark.

    Args:
        text: the statement.
        names: its columns, as the statement calls them.
        values: the rows of VALUES, in the text; none of a table and a DataFrame.
        frame: the DataFrame's name; ``""`` without one.
        table: the table's full name; none without one.
        rows: the rows of a table or a DataFrame, under the names and in the types that it has; of VALUES what they come to.
        columns: of a table what its columns are.
        read: of a DataFrame the table that it is to SQL.
    """

    text: str
    names: tuple[str, ...]
    rows: pa.Table
    values: tuple[s.Expression, ...] = ()
    frame: str = ""
    table: tuple[str, str, str] | None = None
    columns: ConnectorTableMetadata | None = None
    read: FrameTable | None = None

    def agrees(self, trace: Trace) -> None:
        """Check that rows have the numbers that they had in the run.

        Raises:
            RowMergeError: TRANSACTION_CONFLICT if the source has other rows now.
        """
        pages = trace.pages
        if pages is None or pages.witness is None or "source" not in pages.witness.schema.names:
            return
        numbers = pages.witness.column("source_row").to_pylist()
        now = [dict(zip(self.names, row, strict=True)) for row in zip(*map(python_values, self.rows.columns), strict=True)]
        for number, was in zip(numbers, python_values(pages.witness.column("source")), strict=True):
            if number is None or was is None:
                continue
            known = {name: now[number].get(name) for name in was if name in self.names} if number < len(now) else None
            if known is None or repr(known) != repr({name: was[name] for name in known}):
                raise RowMergeError(
                    f"Source row {number} is not what it was when the {trace.kind} ran",
                    code="TRANSACTION_CONFLICT",
                    hint="Run the statement again, on the source as it is.",
                )

    def edited(self, engine: Engine, edits: Edits) -> tuple[Engine, str, dict[str, Any]]:
        """Return what runs the statement with other values in some cells: an engine, the text, and DataFrames.

        Args:
            engine: what would run it.
            edits: the cells.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for a row or column that is not there, and for a value that the column's type does not have.
        """
        cells = {(row, at): value for row, values in edits.items() for at, value in self._row(row, values)}
        if self.values:
            return engine, self._rewritten(cells), {}
        columns = [python_values(column) for column in self.rows.columns]
        for (row, at), value in cells.items():
            columns[at][row] = value
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self.rows.schema, strict=True)]
        rows = pa.table(arrays, schema=self.rows.schema)
        if self.columns is None:
            assert self.read is not None
            return engine, self.text, {self.frame: replace(self.read, table=rows)}
        assert self.table is not None
        memory = MemoryConnector()
        memory.put(ConnectorTableMetadata(SchemaTableName(*self.table[1:]), self.columns.columns), rows)
        return engine.with_copies({SOURCES: memory}, {self.table: (SOURCES, *self.table[1:])}), self.text, {}

    def _row(self, row: int, values: Mapping[str, Any]) -> list[tuple[int, Any]]:
        if row >= self.rows.num_rows:
            raise RowMergeError(
                f"There is no source row {row}: the source has {plural(self.rows.num_rows, 'row')}",
                code="INVALID_ARGUMENTS",
                hint="Rows are counted from 0, as result.journeys has them.",
            )
        found = []
        for name, value in values.items():
            at = next((index for index, known in enumerate(self.names) if known.lower() == name.lower()), None)
            if at is None:
                raise RowMergeError(
                    f"The source has no column '{name}'",
                    code="INVALID_ARGUMENTS",
                    hint=did_you_mean(name, self.names) or f"There are: {', '.join(self.names)}.",
                )
            found.append((at, self._typed(row, at, value)))
        return found

    def _typed(self, row: int, at: int, value: Any) -> Any:
        """Return a value in the type of its column; a text is read as one."""
        kind, name = self.rows.schema.field(at).type, self.names[at]
        sql = str(self.columns.columns[at].type) if self.columns is not None else str(from_arrow(kind))
        plain = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_string(kind)
        if not plain or (pa.types.is_timestamp(kind) and kind.tz is not None):
            raise RowMergeError(
                f"Column '{name}' of the source is of type {sql}, whose values are not edited cell by cell",
                code="NOT_SUPPORTED",
                hint="Edit the statement instead.",
            )
        wide = pa.decimal128(38, kind.scale) if self.values and pa.types.is_decimal(kind) else kind
        try:
            given = _of_kind(value, kind)
            typed = python_values(given.cast(wide))[0]
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            shown = repr(value) if len(repr(value)) < 60 else f"a {type(value).__name__}"
            raise RowMergeError(
                f"{shown} is no {sql}, the type of column '{name}' of the source (row {row})",
                code="INVALID_ARGUMENTS",
                hint="Give a value of that type, or None for NULL.",
            ) from error
        return self._fitting(name, self.columns.columns[at].type, typed) if self.columns is not None else typed

    @staticmethod
    def _fitting(name: str, kind: Type, value: Any) -> Any:
        """Check that a text is not longer than a table's column holds; char is filled up with blanks, as stores keep it."""
        if not isinstance(value, str) or not kind.parameters:
            return value
        length = int(str(kind.parameters[0]))
        if len(value) > length:
            raise RowMergeError(
                f"{value[:40]!r} has {plural(len(value), 'character')}, more than {kind}, the type of column '{name}' of the source, holds",
                code="INVALID_ARGUMENTS",
                hint="Give a shorter text.",
            )
        return value.ljust(length) if kind.base == "char" else value

    def _rewritten(self, cells: Mapping[tuple[int, int], Any]) -> str:
        """Write the statement with other literals in its VALUES, the last ones first: places before them stay what they are."""
        text = self.text
        for (row, at), value in sorted(cells.items(), reverse=True):
            written = self.values[row]
            item = written.items[at] if isinstance(written, s.RowConstructor) else written
            kind = self.rows.schema.field(at).type
            if isinstance(item, s.Cast) and pa.types.is_string(kind):
                raise RowMergeError(
                    f"Column '{self.names[at]}' of source row {row} is written as a CAST",
                    code="NOT_SUPPORTED",
                    hint="Edit the statement instead.",
                )
            text = text[: item.span.start] + _literal(value, kind) + text[item.span.end :]
        return text


def source_of(engine: Engine, sql: str, options: Mapping[str, Any], target: tuple[str, ...]) -> Source:
    """Find the source of a MERGE.

    Args:
        engine: knows tables.
        sql: the statement.
        options: how it is run: its dialect, and the DataFrames that it may name.
        target: the full name of its target.

    Raises:
        RowMergeError: NOT_SUPPORTED for a statement without a source, and for one whose cells are not edited.
    """
    relation = relation_of(sql, str(options.get("dialect") or engine.options.dialect))
    alias: tuple[str, ...] = ()
    if isinstance(relation, s.Aliased):
        alias, relation = tuple(column.text for column in relation.columns), relation.relation
    if isinstance(relation, s.SubqueryRelation):
        found = _from_values(engine, sql, relation)
    else:
        assert isinstance(relation, s.Table)
        found = _from_name(engine, sql, [part.text for part in relation.name.parts], options, target)
    if found.rows.num_rows > MOST_ROWS:
        raise RowMergeError(
            f"The source has {plural(found.rows.num_rows, 'row')}; cells are edited of at most {MOST_ROWS:,}",
            code="NOT_SUPPORTED",
            hint="Try it with a smaller source.",
        )
    return found if not alias else Source(**{**vars(found), "names": alias})


def relation_of(sql: str, dialect: str) -> s.Relation:
    """Return the source of a MERGE whose text says nothing against editing its cells; nothing is looked up.

    Raises:
        RowMergeError: NOT_SUPPORTED for a statement without a source, and for one whose source is a query; SYNTAX_ERROR.

    >>> type(relation_of("MERGE INTO t USING (VALUES 1) s (a) ON t.a = s.a WHEN MATCHED THEN DELETE", "trino")).__name__
    'Aliased'
    """
    tree = parse(sql, dialect=dialect)
    if not isinstance(tree, st.Merge):
        raise RowMergeError(
            "Only a MERGE has a source whose cells can be edited",
            code="NOT_SUPPORTED",
            hint="Give another statement as text instead.",
        )
    relation = tree.source.relation if isinstance(tree.source, s.Aliased) else tree.source
    if isinstance(relation, s.Table) and relation.period is None and not tree.named:
        return tree.source
    if isinstance(relation, s.SubqueryRelation) and isinstance(_body_of(relation.query), s.Values):
        return tree.source
    raise RowMergeError(
        "The source of this MERGE is a query, whose cells are not edited",
        code="NOT_SUPPORTED",
        hint="Edit the statement instead; cells of VALUES, tables and DataFrames can be edited.",
    )


def _body_of(query: s.QueryNode) -> s.QueryBody:
    body: s.QueryBody = query
    while isinstance(body, s.QueryNode) and not (body.named or body.order_by or body.offset or body.limit is not None):
        body = body.body
    return body


def _from_values(engine: Engine, sql: str, relation: s.SubqueryRelation) -> Source:
    rows = _body_of(relation.query)
    assert isinstance(rows, s.Values)
    if any(isinstance(row, s.Literals) for row in rows.rows) or len(rows.rows) > MOST_ROWS:
        raise RowMergeError(
            "The VALUES of this MERGE are too many to be edited one by one",
            code="NOT_SUPPORTED",
            hint="Try it with a smaller source.",
        )
    found = engine.run(f"SELECT * FROM {sql[relation.span.start : relation.span.end]}").table
    assert found is not None
    return Source(sql, tuple(found.column_names), found, values=rows.rows)


def _from_name(engine: Engine, sql: str, parts: Sequence[str], options: Mapping[str, Any], target: tuple[str, ...]) -> Source:
    written = ".".join(map(quoted, parts))
    catalog, schema, table = engine.full_name(".".join(parts))
    known = engine.table_metadata(catalog, schema, table)
    if known is not None:
        if (catalog, schema, table) == target:
            raise RowMergeError(
                "The source of this MERGE is its target, whose cells are not edited",
                code="NOT_SUPPORTED",
                hint="Edit the statement instead.",
            )
        count = engine.run(f"SELECT count(*) FROM {written}").table
        if count is not None and count.column(0)[0].as_py() > MOST_ROWS:
            raise RowMergeError(
                f"The source {written} has more than {MOST_ROWS:,} rows, so its cells are not edited",
                code="NOT_SUPPORTED",
                hint="Try it with a smaller source.",
            )
        rows = engine.table(written).cast(schema_of(known.columns))
        return Source(sql, tuple(rows.column_names), rows, table=(catalog, schema, table), columns=known)
    frames = {name: frame for name, frame in (options.get("namespace") or {}).items() if is_frame(frame)}
    name = frame_name(parts[0], frames) if len(parts) == 1 else None
    if name is None:
        raise RowMergeError(
            f"The source {written} is neither a table nor a DataFrame, so its cells are not edited",
            code="NOT_SUPPORTED",
            hint="Edit the statement instead.",
        )
    if is_spark_frame(frames[name]):
        raise RowMergeError(
            f"The source '{name}' is a DataFrame of Spark, whose cells are not edited",
            code="NOT_SUPPORTED",
            hint=f"Give its rows, as {name}.toPandas() does.",
        )
    read = read_frame(name, frames[name])
    assert read.table is not None
    return Source(sql, tuple(read.table.column_names), read.table, frame=name, read=read)


def _of_kind(value: Any, kind: pa.DataType) -> pa.Array:
    """Return a value in its own type, if that may be read as the other one; a number is no text, and a truth value no number."""
    if value is not None and not isinstance(value, str):
        boolean = isinstance(value, bool)
        if pa.types.is_string(kind) or boolean != pa.types.is_boolean(kind):
            raise TypeError(repr(value))
    return pa.array([value])


def _literal(value: Any, kind: pa.DataType) -> str:
    """Write a value as SQL of a type; a text or a decimal as long as it needs to be, as VALUES takes them."""
    if value is None:
        return f"CAST(NULL AS {from_arrow(kind)})"
    text = "'" + _text(value).replace("'", "''") + "'"
    if pa.types.is_string(kind):
        return text
    return f"DECIMAL {text}" if pa.types.is_decimal(kind) else f"CAST({text} AS {from_arrow(kind)})"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if type(value).__name__ == "Decimal" else str(value)
