"""Statements that were recorded on Trino 476, run against SQLite.

The tables of the recording have no primary key. Here the target has one more column, which SQLite numbers by itself; it is the last one and
left out of what is compared, and an INSERT without a list of columns gets one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError, SqliteConnector
from rowmerge_nb.connectors.jdbc.sqlite_types import declared_type
from rowmerge_nb.spi import parse_type
from tests.connectors.jdbc_support import Database, Statement
from tests.connectors.test_jdbc_contract import insert
from tests.goldens_on_spark.departures import DEPARTURES, KEPT
from tests.goldens_on_spark.values import row_texts, to_arrow

pytestmark = pytest.mark.spark

THEMES = ("clauses", "duplicates", "insert_columns")
CASES = [case for theme in THEMES for case in json.loads((Path(__file__).parents[1] / "goldens" / f"{theme}.json").read_text())]
KEY = "row_key"

IN_PLACE = {
    "dup-update-and-delete",
    "dup-delete-then-update-clauses",
    "dup-two-update-clauses",
    "dup-three-update-clauses",
    "dup-two-delete-clauses",
}
"""Two clauses change one row. Trino recorded it on a store that deletes and inserts, and holds two versions of the row thereafter; a row that is
changed in place has one, and which one it were would depend on the order of rows: the statement fails."""

WITHOUT_A_LIST = {"insert-no-list-too-few", "insert-no-list-too-many"}
"""They are about an INSERT without a list of columns, which here gets one."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: Any) -> Iterator[Database]:
    made = Database("sqlite", SqliteConnector(tmp_path_factory.mktemp("recorded") / "gold.db", create=True), "main")
    transaction = made.connector.begin_transaction()
    made.connector.get_metadata(transaction).list_tables(None)  # type: ignore[arg-type]
    made.connector.commit(transaction)
    yield made
    made.connector.close()


@pytest.fixture(scope="module")
def engine(spark: Any, database: Database) -> Iterator[Engine]:
    made = Engine(spark=spark, catalog="iceberg", schema="main", era="current", duplicates="trino", trace="off")
    made.add_catalog("iceberg", database.connector)
    yield made
    made.close()


def columns_of(table: Any) -> list[tuple[str, Any]]:
    return [(column[0].lower(), parse_type(column[1])) for column in table["columns"]]


def make(database: Database, name: str, table: Any, *, key: bool) -> None:
    columns = columns_of(table)
    parts = [
        f'"{column}" {declared_type(kind)}{" NOT NULL" if "not null" in written[2:] else ""}'
        for (column, kind), written in zip(columns, table["columns"], strict=True)
    ]
    database.sql(
        f"DROP TABLE IF EXISTS {name}",
        f"CREATE TABLE {name} ({', '.join([*parts, f'{KEY} INTEGER PRIMARY KEY'] if key else parts)})",
    )
    if table["rows"]:
        page = to_arrow(columns, table["rows"])
        if key:
            page = page.append_column(KEY, pa.nulls(page.num_rows, pa.int64()))
        insert(database, name, pa.table(page))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_recorded_statement_does_on_sqlite_what_it_did_on_trino(engine: Engine, database: Database, case: Any) -> None:
    target = case["target"]
    for name, table in case["tables"].items():
        make(database, name, table, key=name == target)
    columns = columns_of(case["tables"][target])
    names = ", ".join(f'"{name}"' for name, _ in columns)
    sql = re.sub(r"\bINSERT(\s+)VALUES\b", lambda found: f"INSERT ({names}){found[1]}VALUES", case["sql"])
    expect = DEPARTURES.get(case["id"], case)["expect"]
    error = expect.get("error")
    if case["id"] in IN_PLACE:
        error = {
            "code": "MERGE_TARGET_ROW_MULTIPLE_MATCHES",
            "message": "One MERGE target table row matched more than one source row",
        }
    count = None
    told = None
    try:
        count = engine.run(sql).count
    except RowMergeError as failure:
        told = failure
    statement = Statement(database, target)
    read = statement.read(*(name for name, _ in columns))
    statement.commit()
    rows = case["tables"][target]["rows"] if error else expect["rows"]
    if case["id"] not in WITHOUT_A_LIST:
        assert (told.code if told else None) == (error["code"] if error else None)
        assert (told.message if told else None) == (error["message"].replace("gold", "main") if error else None)
    assert count == (None if error else expect["count"])
    kinds = [kind for _, kind in columns]
    assert row_texts(kinds, read) == row_texts(kinds, to_arrow(columns, list(rows)))


def test_the_exceptions_are_recorded_cases() -> None:
    known = {case["id"] for case in CASES}
    assert known >= IN_PLACE | WITHOUT_A_LIST
    assert KEPT >= IN_PLACE
