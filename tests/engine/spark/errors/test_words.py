"""Errors that Trino reports at the beginning of the statement show readers the word that they are about."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.report.error import render_error_text

MERGE = "MERGE INTO accounts t USING updates s ON t.id = s.id\n"


@pytest.fixture(scope="module")
def engine() -> Any:
    with Engine() as engine:
        for name in ("accounts", "updates"):
            engine.register(name, pa.table({"id": [1], "name": ["x"]}))
        yield engine


@pytest.mark.parametrize(
    ("statement", "reported", "word"),
    [
        (f"{MERGE}WHEN MATCHED THEN UPDATE SET id = 1, nam = s.name", (1, 1), "nam"),
        (f"{MERGE}WHEN NOT MATCHED THEN INSERT (id, nam) VALUES (s.id, s.name)", (1, 1), "nam"),
        (f"{MERGE}WHEN MATCHED THEN UPDATE SET name = 'a', name = 'b'", (1, 1), "name = 'b'"),
        (f"{MERGE}WHEN MATCHED THEN UPDATE SET id = 1, name = s.id", (2, 1), "s.id"),
        (f"{MERGE}WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 12345)", (2, 1), "12345"),
        (
            "MERGE INTO\n acounts t USING updates s ON t.id = s.id WHEN MATCHED THEN DELETE",
            (1, 1),
            "acounts",
        ),
        ("INSERT INTO accounts\n(id, nam) VALUES (1, 'x')", (1, 1), "nam"),
        ("INSERT INTO accounts (id, id) VALUES (1, 2)", (1, 1), "id) VALUES"),
        ("INSERT INTO accounts VALUES ('x', 1)", (1, 1), "VALUES ('x', 1)"),
        ("INSERT INTO nowhere.default.accounts VALUES (1)", (1, 1), "nowhere.default.accounts"),
        ("UPDATE accounts SET name = 1", (1, 1), "1"),
        ("UPDATE acounts SET name = 'x'", (1, 1), "acounts"),
        ("DELETE FROM acounts", (1, 1), "acounts"),
        ("TRUNCATE TABLE acounts", (1, 1), "acounts"),
        ("DROP TABLE acounts", (1, 1), "acounts"),
        ("DROP VIEW acounts", (1, 1), "acounts"),
        ("DROP SCHEMA nope", (1, 1), "nope"),
        ("CREATE SCHEMA nowhere.s", (1, 1), "nowhere.s"),
        ("CREATE TABLE accounts (a bigint)", (1, 1), "accounts"),
        ("SHOW COLUMNS FROM acounts", (1, 1), "acounts"),
        ("SHOW TABLES FROM nope", (1, 1), "nope"),
        ("DESCRIBE acounts", (1, 1), "acounts"),
        ("CALL memory.default.nothing()", (None, None), "memory.default.nothing"),
        ("SELECT CAST(id AS numeral) FROM accounts", (1, 8), "numeral"),
        ("SELECT 1 + upperr(name) FROM accounts", (1, 12), "upperr"),
        ("EXPLAIN\nUPDATE accounts SET name = 1", (2, 1), "1"),
        ("EXPLAIN UPDATE accounts\nSET name = 12", (1, 9), "12"),
        ("-- a comment\nDELETE FROM acounts", (2, 1), "acounts"),
    ],
)
def test_the_carets_are_under_the_word_and_the_error_keeps_trinos_position(
    engine: Engine, statement: str, reported: tuple[int | None, int | None], word: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement)
    error = caught.value
    assert (error.line, error.column) == reported
    *_, text, carets = error.excerpt().split("\n")
    at = carets.index("^")
    length = carets.count("^")
    assert text[at : at + max(len(word), length)].startswith(word)
    assert word.startswith(text[at : at + length])
    shown = render_error_text(
        error, error.result.trace if error.result is not None else None, first_line=2
    )
    assert f"{carets.strip()}\n" in f"{shown}\n"
    line, column, _ = error.shown
    assert f"Line {(line or 0) + 1}:{column} of the cell." in shown


def test_an_error_that_is_pickled_keeps_its_word(engine: Engine) -> None:
    import pickle

    with pytest.raises(RowMergeError) as caught:
        engine.run("DELETE FROM acounts")
    assert pickle.loads(pickle.dumps(caught.value)).shown == (1, 13, 7)
