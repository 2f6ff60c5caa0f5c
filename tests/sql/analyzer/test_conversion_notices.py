"""Notices about doubles as text, timestamps with and without a zone, dates as text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.sql.analyzer.analysis import TableBinding
from rowmerge_nb.sql.typed.zones import in_session_zone
from tests.sql.support import FakeTables, meaning, refusal

ZONED = "timestamp(6) with time zone"


def tables() -> FakeTables:
    found = FakeTables(
        {
            "t": [
                ("id", "varchar"),
                ("seen", ZONED),
                ("at", "timestamp(6)"),
                ("x", "double"),
                ("ok", "boolean"),
            ]
        }
    )
    columns = {"id": "double", "price": "double", "ts": "timestamp(6)"}
    data = pa.table({"id": [None, 39.0, 7.0], "price": [4.25, 3.0, None]})
    found.frames["f"] = TableBinding(
        "f",
        "",
        ("f",),
        tuple(ColumnMetadata(name, parse_type(text)) for name, text in columns.items()),
        "v_f",
        dataframe=data,
    )
    return found


def notices(sql: str) -> list[str]:
    return [notice.message for notice in meaning(sql, tables=tables()).notices]


def text_notice(text: str, number: str, written: str, remedy: str) -> str:
    for_what = "whole numbers" if "bigint" in remedy else "two decimals"
    return (
        f"`{text}` writes {number} as '{written}', as Trino does. For {for_what} write `{remedy}`."
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            (
                "MERGE INTO t USING f s ON t.id = CAST(s.id AS varchar)"
                " WHEN NOT MATCHED THEN INSERT (id) VALUES (CAST(s.id AS varchar))"
            ),
            text_notice(
                "CAST(s.id AS varchar)", "39.0", "3.9E1", "CAST(CAST(s.id AS bigint) AS varchar)"
            ),
        ),
        (
            "INSERT INTO t (id) SELECT CAST(price AS varchar) FROM f",
            text_notice(
                "CAST(price AS varchar)",
                "4.25",
                "4.25E0",
                "CAST(CAST(price AS decimal(18, 2)) AS varchar)",
            ),
        ),
        (
            "UPDATE t SET id = 'C' || CAST(x AS varchar)",
            text_notice(
                "CAST(x AS varchar)", "417.0", "4.17E2", "CAST(CAST(x AS bigint) AS varchar)"
            ),
        ),
        (
            "CREATE TABLE u AS SELECT CAST(x * 2 AS varchar) AS id FROM t",
            text_notice(
                "CAST(x * 2 AS varchar)",
                "417.0",
                "4.17E2",
                "CAST(CAST(x * 2 AS bigint) AS varchar)",
            ),
        ),
    ],
)
def test_a_double_that_is_stored_as_text_is_shown_with_its_value(sql: str, message: str) -> None:
    assert notices(sql) == [message]


def zone_notice(text: str, other: str) -> str:
    return (
        f"`{text}` has no time zone: beside {other}, which has one, it is taken as UTC. For the"
        f" clock of another zone write `with_timezone({text}, 'Europe/Berlin')`."
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("UPDATE t SET seen = at", zone_notice("at", "the column `seen`")),
        ("INSERT INTO t (seen) SELECT ts FROM f", zone_notice("ts", "the column `seen`")),
        (
            "MERGE INTO t USING f s ON t.seen = s.ts WHEN MATCHED THEN DELETE",
            zone_notice("s.ts", "`t.seen`"),
        ),
        (
            "MERGE INTO t USING f s ON t.x = s.id WHEN MATCHED THEN UPDATE SET seen = s.ts",
            zone_notice("s.ts", "the column `seen`"),
        ),
        ("SELECT * FROM t WHERE at BETWEEN seen AND seen", zone_notice("at", "`seen`")),
        ("SELECT * FROM t WHERE at IS DISTINCT FROM seen", zone_notice("at", "`seen`")),
    ],
)
def test_a_time_without_a_zone_compared_with_one_with_a_zone_is_taken_as_utc(
    sql: str, message: str
) -> None:
    assert notices(sql) == [message]
    with in_session_zone("Europe/Berlin"):
        assert notices(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(x AS varchar) FROM t",
        "INSERT INTO t (id) SELECT CAST(CAST(id AS bigint) AS varchar) FROM f",
        "INSERT INTO t (id) SELECT CAST(ok AS varchar) FROM t",
        "UPDATE t SET x = 0 WHERE seen > TIMESTAMP '2026-01-01 00:00:00'",
        "UPDATE t SET seen = with_timezone(at, 'Europe/Berlin')",
        "UPDATE t SET seen = current_timestamp WHERE at > localtimestamp",
    ],
)
def test_ordinary_conversions_have_no_notice(sql: str) -> None:
    assert notices(sql) == []


def due(*texts: str) -> FakeTables:
    """A DataFrame ``parts`` with dates in formats of spreadsheets."""
    found = FakeTables({"t": [("due", "varchar"), ("day", "date"), ("net", "decimal(10,2)")]})
    found.frames["parts"] = TableBinding(
        "parts",
        "",
        ("parts",),
        (ColumnMetadata("due", parse_type("varchar")),),
        "v_parts",
        dataframe=pa.table({"due": pa.array(texts, pa.string())}),
    )
    return found


@pytest.mark.parametrize(
    ("texts", "condition", "remedy"),
    [
        (
            ["03/12/2026", "31/12/2026"],
            "due < '02/12/2026'",
            "`date_parse(due, '%d/%m/%Y') < DATE '2026-12-02'`.",
        ),
        (
            ["12.31.26", None],
            "due >= '01.02.27'",
            "`date_parse(due, '%m.%d.%y') >= DATE '2027-01-02'`.",
        ),
        (
            ["1-2-2026"],
            "due BETWEEN '01-02-2026' AND '01-03-2026'",
            (
                "`date_parse(due, '%d-%m-%Y') BETWEEN DATE '2026-02-01' AND DATE '2026-03-01'`."
                " If the month is first, write '%m-%d-%Y'."
            ),
        ),
        # A date in another form than the column's texts, in comparisons of all sorts.
        (
            ["31/12/2026"],
            "due < '2026-12-02'",
            "`date_parse(due, '%d/%m/%Y') < DATE '2026-12-02'`.",
        ),
        (["31/12/2026"], "due = '20261202'", "`date_parse(due, '%d/%m/%Y') = DATE '2026-12-02'`."),
        (["2026-12-31"], "due < '2/12/2026'", "`date_parse(due, '%Y-%m-%d') < DATE '2026-12-02'`."),
        (
            ["31/12/2026"],
            "due IN ('2026-12-02', '31 Dec 2026')",
            "`date_parse(due, '%d/%m/%Y') IN (DATE '2026-12-02', DATE '2026-12-31')`.",
        ),
        # The order of these texts is that of the dates, or ambiguous.
        (["2026-12-31"], "due < '2026-12-02'", None),
        (["20261231"], "due < '20261202'", None),
        (["31/12/2026", "soon"], "due < '02/12/2026'", None),
        (["31/12/2026"], "due = '02/12/2026'", None),
        (["31/12/2026"], "due <> 'soon'", None),
        (["31/12/2026"], "date_parse(due, '%d/%m/%Y') < DATE '2026-12-02'", None),
    ],
)
def test_texts_that_are_dates_are_not_silently_compared_as_texts(texts, condition, remedy):
    sql = f"SELECT * FROM parts WHERE {condition}"
    messages = [notice.message for notice in meaning(sql, tables=due(*texts)).notices]
    date = next(text for text in texts if text)
    assert messages == (
        []
        if remedy is None
        else [
            (
                f"`{condition}` compares texts such as {date} character by character, not as dates."
                f" For dates write {remedy}"
            )
        ]
    )


def test_columns_of_a_condition_that_are_dates_are_noticed_once():
    sql = (
        "MERGE INTO t USING parts s ON t.due = s.due WHEN MATCHED AND s.due > t.due THEN DELETE"
        " WHEN MATCHED AND s.due > t.due THEN UPDATE SET due = s.due"
    )
    (notice,) = meaning(sql, tables=due("31/12/2026")).notices
    assert "`date_parse(s.due, '%d/%m/%Y') > date_parse(t.due, '%d/%m/%Y')`" in notice.message


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        (
            "due < DATE '2026-12-02'",
            "For text such as 31/12/2026 write date_parse(due, '%d/%m/%Y') < DATE '2026-12-02'.",
        ),
        (
            "due BETWEEN DATE '2026-12-02' AND current_date",
            "For text such as 31/12/2026 write date_parse(due, '%d/%m/%Y') BETWEEN DATE",
        ),
        (
            "due < current_timestamp",
            "For text such as 31/12/2026 write date_parse(due, '%d/%m/%Y') <",
        ),
        (
            "due IN (DATE '2026-12-02')",
            "For text such as 31/12/2026 write date_parse(due, '%d/%m/%Y') IN",
        ),
        ("DATE '2026-12-02' = '1/2/26'", "Write DATE '2026-02-01' or DATE '2026-01-02'."),
        ("current_date IN ('31 Dec 2026')", "Write DATE '2026-12-31'."),
        ("current_date = DATE '31/12/2026'", "Write DATE '2026-12-31'."),
        ("due = 00123", "due is text: write '00123'. To compare numbers, write CAST(due AS"),
        (
            "due BETWEEN 1 AND 2",
            "Trino does not turn text into numbers by itself; write CAST(due AS",
        ),
        ("due IN ('1', 2)", "due is text: write '2'."),
        ("length(due) = '3'", "Write 3 without its quotes."),
        ("length(due) IN (1, '3')", "Write 3 without its quotes."),
        ("length(due) BETWEEN '3' AND '4'", "Write 3 without its quotes."),
        ("length(due) LIKE '1%'", "Write CAST(length(due) AS varchar)."),
    ],
)
def test_comparisons_of_two_types_name_what_to_write(condition, hint):
    error = refusal(f"SELECT * FROM parts WHERE {condition}", tables=due("31/12/2026"))
    assert error.code in {"TYPE_MISMATCH", "INVALID_LITERAL"}
    assert str(error.hint).startswith(hint)


@pytest.mark.parametrize(
    ("texts", "column", "sql", "pandas"),
    [
        (
            ["05/04/2026", "30/04/2026"],
            "day",
            "CAST(date_parse(s.due, '%d/%m/%Y') AS date)",
            "parts['due'] = pd.to_datetime(parts['due'], format='%d/%m/%Y').",
        ),
        (
            ["05/04/2026"],
            "day",
            "CAST(date_parse(s.due, '%d/%m/%Y') AS date)",
            (
                "parts['due'] = pd.to_datetime(parts['due'], format='%d/%m/%Y'). If the month is"
                " first, write '%m/%d/%Y'."
            ),
        ),
        (
            ["2026-04-30"],
            "day",
            "CAST(s.due AS date)",
            "parts['due'] = pd.to_datetime(parts['due']).",
        ),
        (
            ["1,250.00"],
            "net",
            "CAST(replace(s.due, ',', '') AS decimal(10,2))",
            "parts['due'] = pd.to_numeric(parts['due'].str.replace(',', '')).",
        ),
    ],
)
def test_texts_are_stored_as_what_they_are(texts, column, sql, pandas):
    statement = (
        f"MERGE INTO t USING parts s ON t.due = s.due WHEN MATCHED THEN UPDATE SET {column} = s.due"
    )
    hint = str(refusal(statement, tables=due(*texts)).hint)
    assert f"write {sql}." in hint
    assert hint.endswith(f"In pandas: {pandas}")


@pytest.mark.parametrize(
    ("texts", "call", "remedy"),
    [
        (["1,250.00"], "sum(due)", "sum(CAST(replace(due, ',', '') AS decimal(18, 2)))"),
        (["3.5"], "round(due, 1)", "round(CAST(due AS decimal(18, 2)), 1)"),
        (["31/12/2026"], "year(due)", "year(date_parse(due, '%d/%m/%Y'))"),
        (["2026-12-31"], "date_trunc('month', due)", "date_trunc('month', CAST(due AS date))"),
        (["x"], "lower(length(due))", "lower(CAST(length(due) AS varchar))"),
    ],
)
def test_a_function_of_another_type_gets_its_argument_converted(texts, call, remedy):
    error = refusal(f"SELECT {call} FROM parts", tables=due(*texts))
    assert (error.code, error.hint) == ("FUNCTION_NOT_FOUND", f"Write {remedy}.")
