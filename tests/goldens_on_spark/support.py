"""A recorded case on real data: its tables and views in an engine, its executed statement, and the outcome as plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, SchemaTableName
from rowmerge_nb.spi.types import Type, parse_type
from tests.goldens_on_spark.values import row_texts, to_arrow

GOLDENS = Path(__file__).parent.parent / "goldens"
SCHEMA = "gold"
ON_STORES = ("clauses", "duplicates", "insert_columns", "partitioned")
"""Themes whose cases run on other stores than tables in memory as well."""
STORES = ("hive", "iceberg", "sqlite", "postgresql", "delta")


@dataclass(frozen=True)
class Answer:
    """The outcome of a statement.

    Args:
        rows: all rows of the target afterwards, one text per row, sorted.
        count: the update count; None after an error.
        error: code, message, line, column; None without one.
    """

    rows: list[str]
    count: int | None = None
    error: tuple[str, str, int | None, int | None] | None = None


RUN_TIME = {
    "CONSTRAINT_VIOLATION",
    "DIVISION_BY_ZERO",
    "INVALID_ARGUMENTS",
    "INVALID_CAST_ARGUMENT",
    "INVALID_FUNCTION_ARGUMENT",
    "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
    "NUMERIC_VALUE_OUT_OF_RANGE",
    "SUBQUERY_MULTIPLE_ROWS",
}
"""Codes of errors of running statements. Others are raised by the analysis, which tests/sql/test_goldens.py runs without Spark."""


def recorded_cases() -> list[dict[str, Any]]:
    """Return all recorded cases, each with the name of its theme."""
    found = []
    for path in sorted(GOLDENS.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, list):
            found += [{"theme": path.stem, **case} for case in content]
    return found


def kind_of(case: Mapping[str, Any], store: str) -> tuple[Any, ...]:
    """Return a store's view of a case: the changes to rows, their locations, and the end."""
    verbs = frozenset(re.findall(r"\b(?:UPDATE|DELETE|INSERT)\b", case["sql"]))
    place = (
        case["id"]
        if case["theme"] == "partitioned" and store in {"hive", "iceberg", "delta"}
        else None
    )
    return case["theme"], verbs, place, case["expect"].get("error", {}).get("code")


def cases_on(store: str, *, without: Collection[str] = ()) -> list[Any]:
    """Return the cases that run on a store, as parameters of a test: one of each kind, and with ``--long`` all of them.

    All cases run on tables in memory, through the same analysis, plan and join; a store adds its way to change rows. Stores use
    different cases of a kind if there are several. Databases have no partitions, and so fewer kinds.

    Args:
        store: one of `STORES`.
        without: the ids of cases whose tables the store cannot hold.
    """
    cases = [
        case
        for case in recorded_cases()
        if case["theme"] in ON_STORES and case["id"] not in without
    ]
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for case in cases:
        kinds.setdefault(kind_of(case, store), []).append(case["id"])
    chosen = {ids[STORES.index(store) % len(ids)] for ids in kinds.values()}
    return [
        pytest.param(
            case,
            id=case["id"],
            marks=[] if case["id"] in chosen and reaches_store(case) else [pytest.mark.long],
        )
        for case in cases
    ]


def reaches_store(case: Mapping[str, Any]) -> bool:
    error = case["expect"].get("error")
    return (
        error is None
        or error["code"] in RUN_TIME
        or (error["code"] == "NOT_SUPPORTED" and "line" not in error)
    )


class Server:
    """An engine with a store, by default tables in memory, under the catalog name of the recorded cases."""

    def __init__(self, spark: Any, flow: str = "merge", connector: Any = None) -> None:
        self.connector = connector or MemoryConnector()
        self.engine = Engine(
            spark=spark,
            catalog="iceberg",
            schema=SCHEMA,
            era="current",
            duplicates="trino",
            trace="off",
            flow=flow,
        )
        self.engine.add_catalog("iceberg", self.connector)
        self.engine.run(f"CREATE SCHEMA {SCHEMA}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def answer(self, case: Mapping[str, Any]) -> Answer:
        """Create the case's tables and views, run its statement, and remove them again."""
        try:
            for name, table in case["tables"].items():
                self._create(name, table)
            for name, query in case.get("views", {}).items():
                self.engine.run(f"CREATE VIEW {name} AS {query}")
            count = error = None
            try:
                count = self.engine.run(case["sql"]).count
            except RowMergeError as failure:
                error = (failure.code, failure.message, failure.line, failure.column)
            return Answer(self._content(case), count, error)
        finally:
            for name in case.get("views", {}):
                self.engine.run(f"DROP VIEW IF EXISTS {name}")
            for name in case["tables"]:
                self.engine.run(f"DROP TABLE IF EXISTS {name}")

    def _create(self, name: str, table: Mapping[str, Any]) -> None:
        columns = ", ".join(f'"{column[0]}" {" ".join(column[1:])}' for column in table["columns"])
        properties = ", ".join(self._properties(tuple(table.get("partitioned_by", ()))))
        written = f" WITH ({properties})" if properties else ""
        self.engine.run(f"CREATE TABLE {SCHEMA}.{name} ({columns}){written}")
        if table["rows"]:
            self._fill(name, table)

    def _properties(self, transforms: tuple[str, ...]) -> list[str]:
        return [f"partitioned_by = ARRAY{list(transforms)}"] if transforms else []

    def _fill(self, name: str, table: Mapping[str, Any]) -> None:
        """Insert rows like an INSERT, without Spark: through the connector's sink and ``finish_insert``."""
        transaction = self.connector.begin_transaction()
        session = ConnectorSession("fill", "test", "UTC", {"era": "current"})
        metadata = self.connector.get_metadata(transaction)
        handle = metadata.get_table_handle(session, SchemaTableName(SCHEMA, name))
        assert handle is not None
        insert = metadata.begin_insert(
            session, handle, [ColumnHandle(*column) for column in columns_of(table)]
        )
        sink = self.connector.get_page_sink_provider().create_page_sink(
            transaction, session, insert
        )
        sink.append_page(to_arrow(columns_of(table), table["rows"]))
        metadata.finish_insert(session, insert, sink.finish())
        self.connector.commit(transaction)

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        kinds = [kind for _, kind in columns_of(case["tables"][case["target"]])]
        return row_texts(kinds, self.connector.read(SchemaTableName(SCHEMA, case["target"])))


def columns_of(table: Mapping[str, Any]) -> list[tuple[str, Type]]:
    """Return a recorded table's columns; names are stored in lower case."""
    return [(column[0].lower(), parse_type(column[1])) for column in table["columns"]]


def expected_answer(case: Mapping[str, Any], expect: Mapping[str, Any] | None = None) -> Answer:
    """Return the expected outcome of a case: the recorded answer, or another one in the same form."""
    expect = expect or case["expect"]
    error = expect.get("error")
    rows: Sequence[list[Any]] = case["tables"][case["target"]]["rows"] if error else expect["rows"]
    columns = columns_of(case["tables"][case["target"]])
    texts = row_texts([kind for _, kind in columns], to_arrow(columns, list(rows)))
    if error is None:
        return Answer(texts, expect["count"])
    return Answer(
        texts, None, (error["code"], error["message"], error.get("line"), error.get("column"))
    )
