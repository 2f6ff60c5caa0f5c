"""The columns named by Spark's texts."""

from __future__ import annotations

import pytest

from rowmerge_nb.plan.carried import unread_columns

TABLE = "(SELECT c0 AS `id`, c1 AS `a`, c2 AS `b` FROM `v`) AS `r`"


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        (f"SELECT count(1) AS `expr` FROM {TABLE}", {"id", "A", "b"}),
        (f"SELECT `id` FROM {TABLE} WHERE `b` = 'a'", {"A"}),
        (f"SELECT `id` FROM {TABLE} WHERE `b` = '`a`'", set()),
        (f"SELECT `id`, `a`, `b` FROM {TABLE}", set()),
        ("SELECT c0 AS `id`, c1 AS `a`, c2 AS `b` FROM `v`", set()),
        ("SELECT * FROM `v`", set()),
        (
            f"SELECT `id` FROM {TABLE} UNION ALL SELECT `x` FROM (SELECT c0 AS `x`, c1 AS `y`, c2 AS `z` FROM `v`) AS `q`",
            {"A", "b"},
        ),
        (
            f"SELECT `id` FROM {TABLE} UNION ALL SELECT `y` FROM (SELECT c0 AS `x`, c1 AS `y`, c2 AS `z` FROM `v`) AS `q`",
            {"b"},
        ),
        ("SELECT 1", set()),
    ],
)
def test_a_column_is_read_where_its_symbol_is_named(text: str, unread: set[str]) -> None:
    assert unread_columns([text], "v", ["id", "A", "b"]) == unread
