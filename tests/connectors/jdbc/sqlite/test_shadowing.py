"""Content of a database file does not affect statements sent to SQLite."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import RowMergeError
from tests.connectors.jdbc.support import Database, Statement, merge


@pytest.mark.parametrize(
    "made",
    [
        "TABLE pragma_table_list (name, type, wr, schema)",
        "VIEW Pragma_Table_Xinfo AS SELECT 1 AS name",
        'TABLE pragma_foreign_key_list ("table", "from", "to")',
    ],
)
def test_a_table_with_the_name_of_one_of_sqlites_own_is_refused(lite: Database, made: str) -> None:
    lite.sql("CREATE TABLE t (id int PRIMARY KEY, v text)", f"CREATE {made}")
    with pytest.raises(
        RowMergeError,
        match=r"has a table '(?i:pragma)_\w+', which hides one of SQLite's own",
    ) as caught:
        Statement(lite, "t")
    assert caught.value.code == "NOT_SUPPORTED"


def test_a_table_name_that_only_resembles_one_of_sqlites_own_is_accepted(
    lite: Database,
) -> None:
    lite.sql(
        "CREATE TABLE pragma_notes (id int PRIMARY KEY, v text)",
        "INSERT INTO pragma_notes VALUES (1, 'a')",
    )
    merge(lite, "pragma_notes", [(1, "b", 3, 1)])
    assert lite.rows("SELECT id, v FROM pragma_notes") == [(1, "b")]


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("trusted_schema", 0),
        ("foreign_keys", 1),
        ("recursive_triggers", 0),
        ("writable_schema", 0),
        ("ignore_check_constraints", 0),
        ("reverse_unordered_selects", 0),
    ],
)
def test_settings_of_a_connection_are_those_that_statements_rely_on(
    lite: Database, pragma: str, value: Any
) -> None:
    session = lite.session()
    try:
        assert session.value(f"PRAGMA {pragma}") == value
    finally:
        session.close()


def test_a_table_with_the_name_of_the_stage_is_not_the_stage(lite: Database) -> None:
    lite.sql(
        "CREATE TABLE rowmerge_nb_stage (id int PRIMARY KEY, v text)",
        "INSERT INTO rowmerge_nb_stage VALUES (1, 'a')",
    )
    merge(lite, "rowmerge_nb_stage", [(1, "b", 3, 1), (2, "c", 1, None)])
    assert lite.rows("SELECT id, v FROM main.rowmerge_nb_stage ORDER BY id") == [(1, "b"), (2, "c")]
