"""The clauses of JSON_VALUE and similar functions, the positions of their errors, and their values over rows."""

from __future__ import annotations

import pytest

from rowmerge_nb.sql.analyzer.expressions.json_constructors import hash_order
from tests.sql.support import meaning, place, refusal, spark_text, with_rows


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT json_value('{}', '$.a')", ("SYNTAX_ERROR", 1, 26)),
        ("SELECT json_value('{}', 'lax $.a b')", ("SYNTAX_ERROR", 1, 34)),
        ("SELECT json_exists('{}', 'lax\n  $.')", ("SYNTAX_ERROR", 2, 5)),
        ("SELECT json_value('{}', 'lax $[1')", ("SYNTAX_ERROR", 1, 33)),
        ("SELECT json_value('{}', 'lax $.a' RETURNING nosuch)", ("TYPE_MISMATCH", 1, 8)),
        ("SELECT json_value(1, 'lax $')", ("TYPE_MISMATCH", 1, 19)),
        (
            "SELECT json_value('{}', 'lax $' RETURNING date DEFAULT 1 ON ERROR)",
            ("TYPE_MISMATCH", 1, 56),
        ),
        ("SELECT json_object(1 : 2)", ("INVALID_FUNCTION_ARGUMENT", 1, 20)),
    ],
)
def test_an_error_points_at_the_part_that_is_wrong(sql, expected):
    assert place(refusal(sql)) == expected


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT json_value('{}', 1)", "mismatched input '1'. Expecting: <string>"),
        (
            "SELECT json_value('{}', 'lax $' DEFAULT 1 ON NULL)",
            "mismatched input 'NULL'. Expecting: 'EMPTY', 'ERROR'",
        ),
        (
            "SELECT json_value('{}', 'lax $' NULL ON EMPTY NULL ON EMPTY)",
            "mismatched input 'EMPTY'. Expecting: 'ERROR'",
        ),
        (
            "SELECT json_exists('{}', 'lax $' NULL ON ERROR)",
            "mismatched input 'NULL'. Expecting: ')', 'AS', 'ERROR', 'FALSE', 'PASSING', 'TRUE', 'UNKNOWN'",
        ),
        (
            "SELECT json_query('{}', 'lax $' WITH ARRAY)",
            "mismatched input ')'. Expecting: 'WRAPPER'",
        ),
    ],
)
def test_a_misplaced_clause_is_a_syntax_error(sql, message):
    assert refusal(sql).message == message


def test_a_subquery_within_a_lookup_is_refused_by_name():
    error = refusal("SELECT json_value((SELECT '{}'), 'lax $')")
    assert (error.code, error.message) == (
        "NOT_SUPPORTED",
        "JSON_VALUE over a subquery is not supported by this engine",
    )


def test_members_of_many_are_in_the_order_of_a_grown_hash_table():
    # "a" to "m" are 97 to 109: of sixteen buckets "p" would share one with none of these, of thirty-two "a" is the second.
    letters = list("mlkjihgfedcba")
    assert [letters[place] for place in hash_order(letters)] == list("abcdefghijklm")
    few = ["p", "a", "o"]
    assert [few[place] for place in hash_order(few)] == ["p", "a", "o"]
    assert [(few + letters[:10])[place] for place in hash_order(few + letters[:10])][-2:] == [
        "o",
        "p",
    ]


def test_documents_of_many_rows_are_read_separately(spark):
    found = meaning(
        """
        SELECT json_value(j, 'lax $.a' DEFAULT j ON EMPTY), json_query(json_query(j, 'lax $.b'), 'strict $[0]'),
          transform(ARRAY[j], x -> json_exists(x, 'strict $.a' UNKNOWN ON ERROR))
        FROM (VALUES '{"a": 1, "b": [{"c": 2}]}', '{}', 'oops', NULL) AS t(j)
        """
    )
    assert [tuple(row) for row in spark.sql(spark_text(with_rows(spark, found))).collect()] == [
        ("1", '{"c":2}', [True]),
        ("{}", None, [None]),
        (None, None, [None]),
        (None, None, [None]),
    ]


def test_equal_lookups_are_one_key_of_a_group(spark):
    found = meaning(
        "SELECT json_value(j, 'lax $.a'), count(*) FROM (VALUES '{\"a\": 1}', '{\"a\": \"1\"}', '[]') AS t(j) "
        "GROUP BY json_value(j, 'lax $.a') ORDER BY 1"
    )
    assert [tuple(row) for row in spark.sql(spark_text(with_rows(spark, found))).collect()] == [
        ("1", 2),
        (None, 1),
    ]
