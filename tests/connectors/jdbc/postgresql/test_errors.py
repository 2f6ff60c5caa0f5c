"""Errors of the server for users: a code of Trino's and a helpful next step."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.connectors.jdbc.postgresql.postgres_errors import translated
from rowmerge_nb.engine.spark.errors.translate import with_next_step
from rowmerge_nb.spi import ConnectorSession
from tests.connectors.jdbc.support import Database, Statement, merge


class DriverError(Exception):
    """An error in the form of the driver."""

    def __init__(self, state: str, words: str) -> None:
        super().__init__(words)
        self.sqlstate = state
        self.details = [("PG_DIAG_MESSAGE_PRIMARY", words.encode())]


def raised(call: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        call()
    return with_next_step(caught.value)


def test_a_label_that_an_enumeration_does_not_have_names_the_label_and_the_step(
    pg: Database,
) -> None:
    pg.sql("CREATE TYPE mood AS ENUM ('sad')", "CREATE TABLE t (id int PRIMARY KEY, m mood)")
    error = raised(lambda: merge(pg, "t", [(1, "glad", 1, None)]))
    assert '"glad"' in error.message
    assert (
        error.hint == "Use a text that the column's type allows; for an enumeration, one of its"
        " labels. The table is unchanged."
    )
    assert pg.rows("SELECT count(*) AS n FROM t") == [(0,)]


def test_a_zero_byte_in_a_text_names_the_step(pg: Database) -> None:
    pg.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    error = raised(lambda: merge(pg, "t", [(1, "a\0b", 1, None)]))
    assert "TRY_CAST" not in (error.hint or "")
    assert "replace(text, chr(0), '')" in (error.hint or "")
    assert pg.rows("SELECT count(*) AS n FROM t") == [(0,)]


STATES = (
    "08006", "0A000", "21000", "22001", "22003", "22007", "22008", "22012", "22021", "22P02", "22P05", "23502", "23503", "23505", "23514",
    "25006", "25P03", "28P01", "2BP01", "3F000", "40001", "40P01", "42501", "42601", "42701", "42703", "42P01", "42P07", "44000", "53100",
    "53200", "53300", "54000", "54011", "55000", "55006", "55P03", "57014", "57P01", "58030", "F0000", "P0001", "XX000", "XX001", "",
)  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_code_and_a_step_about_the_database(state: str) -> None:
    error = with_next_step(
        translated(
            DriverError(state, "it's wrong"),
            "Writing",
            "PostgreSQL at db",
            "host=db password=secret",
        )
    )
    assert error.code != "GENERIC_INTERNAL_ERROR"
    assert "it's wrong" in error.message or state == "55P03"
    assert error.hint or state.startswith("23")
    assert "TRY_CAST" not in (error.hint or "")


def test_a_statement_ended_by_the_timeout_of_the_server_reports_it(pg: Database) -> None:
    session = pg.session()
    try:
        session.execute("SET statement_timeout = '10ms'")
        error = raised(lambda: session.query("SELECT pg_sleep(10)::text AS s"))
    finally:
        session.close()
    assert error.code == "JDBC_ERROR"
    assert "statement_timeout" in (error.hint or "")


@pytest.mark.parametrize(
    "comment",
    [
        "no json",
        "[1, 2]",
        '{"began": "soon", "statement": [1], "process": null}',
        '"x"',
        "1" * 5000,
    ],
)
def test_a_table_of_another_user_that_resembles_a_leftover_is_listed_and_breaks_nothing(
    pg: Database, comment: str
) -> None:
    pg.sql(
        "CREATE TABLE rowmerge_nb_stage_x_0123456789abcdef (a int)",
        f"COMMENT ON TABLE rowmerge_nb_stage_x_0123456789abcdef IS '{comment}'",
    )
    (orphan,) = pg.connector.orphans()
    assert orphan.name == "public.rowmerge_nb_stage_x_0123456789abcdef"
    assert orphan.modified is None


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("date", "'infinity'"),
        ("date", "'-infinity'"),
        ("timestamp", "'infinity'"),
        ("timestamptz", "'-infinity'"),
        ("numeric(5, 2)", "'NaN'"),
    ],
)
def test_an_odd_value_stops_only_what_reads_its_column(
    pg: Database, declared: str, value: str
) -> None:
    pg.sql(
        f"CREATE TABLE t (id int PRIMARY KEY, a int, o {declared})",
        f"INSERT INTO t VALUES (1, 10, NULL), (2, 20, {value})",
    )
    before = pg.rows("SELECT id, o::text AS o FROM t ORDER BY id")
    statement = Statement(pg, "t")
    error = raised(lambda: statement.read("id", "o"))
    assert "Column 'o' of PostgreSQL table 'public.t' is declared" in error.message
    assert "in the row with id = 2" in error.message
    assert statement.read("id", "a").num_rows == 2
    statement.rollback()
    change(pg, statement_columns=("a",))
    assert pg.rows("SELECT id, o::text AS o FROM t ORDER BY id") == before
    assert pg.rows("SELECT a FROM t ORDER BY id") == [(11,), (21,)]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("date", "'0044-03-15 BC'"),
        ("date", "'12024-01-01'"),
        ("timestamp", "'0001-01-01 BC'"),
        ("timestamptz", "'200000-01-01 00:00:00+00'"),
    ],
)
def test_a_date_that_python_cannot_show_is_carried_along(
    pg: Database, declared: str, value: str
) -> None:
    pg.sql(
        f"CREATE TABLE t (id int PRIMARY KEY, a int, o {declared})",
        f"INSERT INTO t VALUES (2, 20, {value})",
    )
    before = pg.rows("SELECT o::text AS o FROM t")
    change(pg, statement_columns=("a",))
    assert pg.rows("SELECT o::text AS o FROM t") == before
    assert pg.rows("SELECT a FROM t") == [(21,)]


def change(database: Database, statement_columns: tuple[str, ...]) -> None:
    """Update all rows like the engine: columns that no expression reads are passed through."""
    session = ConnectorSession("q1")
    statement = Statement(database, "t")
    columns = [
        column if column.name in {"id", *statement_columns} else column.as_carried()
        for column in statement.columns()
    ]
    row_id = statement.metadata.get_merge_row_id_column_handle(session, statement.handle)
    provider = database.connector.get_page_source_provider()
    pages = []
    for split in statement.splits():
        source = provider.create_page_source(
            statement.transaction, session, split, statement.handle, [*columns, row_id]
        )
        while (page := source.get_next_page()) is not None:
            pages.append(page)
        source.close()
    statement.begin({0: list(statement_columns)})
    sink = statement.sink()
    for page in pages:
        count = page.num_rows
        changed = [
            pc.add(page.column(i), 1) if c.name in statement_columns else page.column(i)
            for i, c in enumerate(columns)
        ]
        arrays = [
            *changed,
            pa.array([3] * count, pa.int8()),
            pa.array([0] * count, pa.int32()),
            page.column(len(columns)),
        ]
        names = [*(column.name for column in columns), "operation", "case_number", "row_id"]
        sink.store_merged_rows(pa.RecordBatch.from_arrays(arrays, names=names))
    statement.finish(sink.finish())
    statement.commit()
