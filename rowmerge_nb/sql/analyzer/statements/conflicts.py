"""Analyzes INSERT ... ON CONFLICT as the MERGE that it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean, quoted_where_needed
from rowmerge_nb.base.words import code
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.statements.assigned_values import filled_rows
from rowmerge_nb.sql.analyzer.statements.merge import analyze_merge
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer import analysis as a
    from rowmerge_nb.sql.analyzer.context import Context

_NEW = "excluded"
_TWICE = "ON CONFLICT DO UPDATE would change a row twice: several new rows have the same key"


def analyze_conflict(
    context: Context,
    statement: st.Insert,
    conflict: st.Conflict,
    columns: Sequence[ColumnMetadata],
) -> a.MergeAnalysis:
    """Analyze the MERGE of an INSERT ... ON CONFLICT.

    As in PostgreSQL, DO NOTHING inserts one of several new rows with the same key, DO UPDATE
    refuses them, and a key with a NULL conflicts with none. Errors in the query keep their places;
    others are at ON CONFLICT.
    """
    names = {column.name.lower(): column.name for column in columns}
    for key in conflict.keys:
        if key.value not in names:
            context.error(
                "COLUMN_NOT_FOUND",
                f"Column '{key.value}' of ON CONFLICT is not inserted",
                key.span,
                did_you_mean(key.value, names, 0.5)
                or f"The inserted columns are {', '.join(names)}.",
            )
    text = _merge_text(context.text, statement, conflict, columns)
    context.notice(
        f"INSERT ... ON CONFLICT runs as the MERGE that it is: {code(text)}.", conflict.span
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
        QueryAnalyzer(context).query(filled_rows(columns, statement.query.tree))
        error.line, error.column = conflict.span.line, conflict.span.column
        error.about = None
        raise
    return replace(analysis, text=statement.text)


def _merge_text(
    text: str,
    statement: st.Insert,
    conflict: st.Conflict,
    columns: Sequence[ColumnMetadata],
) -> str:
    names = [quoted_where_needed(column.name) for column in columns]
    listed = ", ".join(names)
    keys = [quoted_where_needed(key.value) for key in conflict.keys]
    target = statement.target.span.of(text)
    alias = statement.alias.text if statement.alias else statement.target.parts[-1].span.of(text)
    target_text = f"{target} {alias}" if statement.alias else target
    query = _query_text(text, statement.query.tree, columns)
    nulls = " OR ".join(f"{key} IS NULL" for key in keys)
    number = "new_rows"
    while number in {column.name.lower() for column in columns}:
        number += "_"
    function = "count(*)" if conflict.changes else "row_number()"
    rows = (
        f"SELECT {listed}, {function} OVER (PARTITION BY {', '.join(keys)}) AS {number}"
        f" FROM ({query}) AS {_NEW} ({listed})"
    )
    if conflict.changes is None:
        rows = f"SELECT {listed} FROM ({rows}) WHERE {number} = 1 OR {nulls}"
    on = " AND ".join(f"{alias}.{key} = {_NEW}.{key}" for key in keys)
    values = ", ".join(f"{_NEW}.{name}" for name in names)
    clauses = ""
    if conflict.changes is not None:
        changes = conflict.changes.of(text)
        where = "" if conflict.where is None else f" AND ({conflict.where.span.of(text)})"
        has_key = " AND ".join(f"{_NEW}.{key} IS NOT NULL" for key in keys)
        clauses = (
            f" WHEN MATCHED{where} THEN UPDATE SET {changes}"
            f" WHEN NOT MATCHED AND {_NEW}.{number} > 1 AND {has_key} THEN ERROR '{_TWICE}'"
        )
    returning = ""
    if statement.returning:
        first, last = statement.returning[0].span, statement.returning[-1].span
        returning = f" RETURNING {text[first.start : last.end]}"
    return (
        f"MERGE INTO {target_text} USING ({rows}) AS {_NEW} ON {on}{clauses}"
        f" WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({values}){returning}"
    )


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
    if query.named and query.named[0].span.start < query.span.start:
        queries = text[query.named[0].span.start : query.named[-1].span.end]
        return f"WITH {'RECURSIVE ' if query.recursive else ''}{queries} {body}"
    return body
