"""Analyzes INSERT ... ON CONFLICT, and INSERT OR REPLACE, as the MERGE that it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.base.words import code, join
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.statements.assigned_values import filled_rows
from rowmerge_nb.sql.analyzer.statements.inserted_types import check_inserted
from rowmerge_nb.sql.analyzer.statements.merge import analyze_merge
from rowmerge_nb.sql.parser.column_names import column_list, nearest_column
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.parser.tokens import RESERVED
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer import analysis as a
    from rowmerge_nb.sql.analyzer.context import Context

_NEW = "excluded"


def analyze_conflict(
    context: Context,
    statement: st.Insert,
    conflict: st.Conflict,
    target: a.TableBinding,
    columns: Sequence[ColumnMetadata],
) -> a.MergeAnalysis | None:
    """Analyze the MERGE of an INSERT ... ON CONFLICT; None if no row can conflict, since the new
    rows have no key.

    As in PostgreSQL, DO NOTHING inserts one of several new rows with the same key, DO UPDATE
    refuses them, and a key with a NULL conflicts with none. Errors in the query keep their places;
    others are at ON CONFLICT.
    """
    keys = _keys(context, conflict, target, columns)
    if keys is None:
        return None
    text = merge_text(context.text, statement, conflict, target.columns, columns, keys)
    context.notice(f"{conflict.title} runs as this MERGE: {code(text)}.", conflict.span)
    omitted = [column.name for column in target.columns if column not in columns]
    if omitted and conflict.replaces and context.tables.store(target.catalog).stores_defaults:
        context.notice(
            f"{join(omitted)} of a replaced row will be the default, or NULL, as in SQLite. DuckDB"
            " keeps the old value.",
            conflict.span,
        )
    merge = parse(text, dialect="extended")
    assert isinstance(merge, st.Merge)
    catalog, schema = context.tables.default()
    inner = context.apart(text, catalog, schema, conflict.span)
    try:
        analysis = analyze_merge(
            inner,
            replace(
                merge,
                prefers_target=True,
                versions=statement.versions,
            ),
        )
    except RowMergeError as error:
        # Errors of the query are at their own places.
        rows = QueryAnalyzer(context).query(filled_rows(columns, statement.query.tree))
        check_inserted(context, statement, target, columns, rows.fields)
        error.line, error.column = conflict.span.line, conflict.span.column
        error.about = None
        raise
    return replace(analysis, text=statement.text)


def _keys(
    context: Context,
    conflict: st.Conflict,
    target: a.TableBinding,
    columns: Sequence[ColumnMetadata],
) -> list[str] | None:
    names = {column.name.lower(): column.name for column in columns}
    for key in conflict.keys:
        if key.value not in names:
            context.error(
                "COLUMN_NOT_FOUND",
                f"Column '{key.value}' of ON CONFLICT is not inserted",
                key.span,
                nearest_column(key.value, names.values())
                or f"The inserted columns are {column_list(names.values())}.",
            )
    if conflict.keys:
        return [names[key.value] for key in conflict.keys]
    properties = {} if target.metadata is None else target.metadata.properties
    primary_key = [str(name) for name in properties.get("primary_key") or ()]
    if not primary_key:
        context.refuse(
            f"{conflict.title} needs a key, and {target.display} has no primary key",
            conflict.span,
            "Name the columns that identify a row: INSERT ... ON CONFLICT (columns) DO UPDATE SET"
            " ..., or DO NOTHING.",
        )
    missing = [name for name in primary_key if name.lower() not in names]
    defaults = {column.name.lower(): column.default for column in target.columns}
    if any(defaults[name.lower()] is not None for name in missing):
        context.refuse(
            f"{conflict.title} needs the whole key of {target.display}, and"
            f" {join(missing)} is not inserted",
            conflict.span,
            "Write the column with its value, which may be DEFAULT.",
        )
    if missing:
        context.notice(
            f"No row conflicts: {join(missing)} of the primary key is not inserted.",
            conflict.span,
        )
        return None
    return [names[name.lower()] for name in primary_key]


def merge_text(
    text: str,
    statement: st.Insert,
    conflict: st.Conflict,
    all_columns: Sequence[ColumnMetadata],
    columns: Sequence[ColumnMetadata],
    key: Sequence[str],
) -> str:
    names = [quoted_where_needed(column.name, RESERVED) for column in columns]
    listed = ", ".join(names)
    keys = [quoted_where_needed(name, RESERVED) for name in key]
    target = statement.target.span.of(text)
    alias = statement.alias.text if statement.alias else statement.target.parts[-1].span.of(text)
    target_text = f"{target} {alias}" if statement.alias else target
    query = _query_text(text, statement.query.tree, columns)
    nulls = " OR ".join(f"{name} IS NULL" for name in keys)
    number = "new_rows"
    while number in {column.name.lower() for column in columns}:
        number += "_"
    keeps_one = conflict.changes is None and not conflict.replaces
    function = "row_number()" if keeps_one else "count(*)"
    rows = (
        f"SELECT {listed}, {function} OVER (PARTITION BY {', '.join(keys)}) AS {number}"
        f" FROM ({query}) AS {_NEW} ({listed})"
    )
    if keeps_one:
        rows = f"SELECT {listed} FROM ({rows}) WHERE {number} = 1 OR {nulls}"
    on = " AND ".join(f"{alias}.{name} = {_NEW}.{name}" for name in keys)
    values = ", ".join(f"{_NEW}.{name}" for name in names)
    clauses = ""
    if not keeps_one:
        changes = _changes(text, conflict, all_columns, columns, key)
        where = "" if conflict.where is None else f" AND ({conflict.where.span.of(text)})"
        has_key = " AND ".join(f"{_NEW}.{name} IS NOT NULL" for name in keys)
        action = f"UPDATE SET {changes}" if changes else "DO NOTHING"
        clauses = (
            f" WHEN MATCHED{where} THEN {action}"
            f" WHEN NOT MATCHED AND {_NEW}.{number} > 1 AND {has_key} THEN ERROR"
            f" '{_twice(conflict)}'"
        )
    returning = ""
    if statement.returning:
        first, last = statement.returning[0].span, statement.returning[-1].span
        returning = f" RETURNING {text[first.start : last.end]}"
    return (
        f"MERGE INTO {target_text} USING ({rows}) AS {_NEW} ON {on}{clauses}"
        f" WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({values}){returning}"
    )


def _changes(
    text: str,
    conflict: st.Conflict,
    all_columns: Sequence[ColumnMetadata],
    columns: Sequence[ColumnMetadata],
    key: Sequence[str],
) -> str:
    if conflict.changes is not None:
        return conflict.changes.of(text)
    inserted = {column.name for column in columns}
    return ", ".join(
        f"{name} = {f'{_NEW}.{name}' if column.name in inserted else 'DEFAULT'}"
        for column in all_columns
        if column.name not in key
        for name in (quoted_where_needed(column.name, RESERVED),)
    )


def _twice(conflict: st.Conflict) -> str:
    words = (
        f"{conflict.form} would replace"
        if conflict.replaces
        else "ON CONFLICT DO UPDATE would change"
    )
    return f"{words} a row twice: several new rows have the same key"


def _query_text(text: str, query: s.QueryNode, columns: Sequence[ColumnMetadata]) -> str:
    parts, at = [], query.span.start
    if isinstance(query.body, s.Values):
        for row in query.body.rows:
            items = row.items if isinstance(row, s.RowConstructor) else (row,)
            for index, item in enumerate(items):
                if isinstance(item, s.Default) and index < len(columns):
                    parts += [text[at : item.span.start], columns[index].default or "NULL"]
                    at = item.span.end
    body = "".join([*parts, text[at : query.span.end]])
    if query.named_queries and query.named_queries[0].span.start < query.span.start:
        queries = text[query.named_queries[0].span.start : query.named_queries[-1].span.end]
        return f"WITH {'RECURSIVE ' if query.recursive else ''}{queries} {body}"
    return body
