"""The extended dialect: accepted forms, their meaning, and their refusal without the option."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.tree import statements as st
from tests.sql.support import FakeTables, meaning, place, refusal

MERGE = "MERGE INTO t USING s ON t.id = s.id "
TABLES = FakeTables(
    {
        "t": [("id", "integer"), ("v", "bigint")],
        "s": [("id", "integer"), ("v", "integer"), ("w", "varchar")],
        "half": [("id", "integer")],
        "text": [("id", "integer"), ("v", "varchar")],
    }
)
UNSUPPORTED = Path(__file__).parents[2] / "goldens" / "unsupported.json"
ACCEPTED = {
    "un-not-matched-by-source": "BY SOURCE",
    "un-not-matched-by-source-second": "BY SOURCE",
    "un-do-nothing": "DO NOTHING",
    "un-not-matched-do-nothing": "DO NOTHING",
    "un-returning": "RETURNING",
    "un-update-star": "SET *",
    "un-insert-star": "INSERT *",
    "un-with-before-merge": "WITH",
    "un-update-star-short": "UPDATE *",
}
"""Forms that Trino refuses and the extended dialect accepts."""
WITH_WORDS = {
    "un-merge-without-into": "MERGE INTO target AS t USING source AS s ON t.id = s.id"
    " WHEN MATCHED THEN DELETE",
    "un-update-from": "MERGE INTO target USING source s ON target.id = s.id"
    " WHEN MATCHED THEN UPDATE SET val = s.val",
    "un-delete-using": "MERGE INTO target USING source s ON target.id = s.id"
    " WHEN MATCHED THEN DELETE",
    "un-insert-default-values": "",
    "un-insert-on-conflict": "",
    "un-upsert": "",
    "un-insert-row": "",
    "un-with-before-update": "",
}
"""Forms that the extended dialect also accepts, and the statement in Trino's words if it has them."""
RECORDED = {case["id"]: case for case in json.loads(UNSUPPORTED.read_text(encoding="utf-8"))}


def _merge(sql: str) -> MergeAnalysis:
    found = meaning(sql, tables=TABLES, dialect="extended")
    assert isinstance(found, MergeAnalysis)
    return found


def _refused(sql: str, dialect: str = "trino") -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(sql, dialect=dialect)
    return caught.value


# -- without the option


@pytest.mark.parametrize("case", ACCEPTED)
def test_without_the_option_trinos_error_stays_and_the_hint_names_the_option(case):
    expected = RECORDED[case]["expect"]["error"]
    error = _refused(RECORDED[case]["sql"])
    assert (place(error), error.message) == (
        (expected["code"], expected["line"], expected["column"]),
        expected["message"],
    )
    assert error.hint is not None
    assert ACCEPTED[case] in error.hint
    assert error.hint.endswith(
        'The option --dialect extended accepts it (in a program: dialect="extended").'
    )
    parse(RECORDED[case]["sql"], dialect="extended")


@pytest.mark.parametrize("case", sorted(RECORDED.keys() - ACCEPTED.keys() - WITH_WORDS.keys()))
def test_a_form_refused_by_the_extended_dialect_too_has_no_hint_about_the_dialect(case):
    sql = RECORDED[case]["sql"]
    assert "accepts it" not in (_refused(sql).hint or "")
    assert _refused(sql, "extended").code == "SYNTAX_ERROR"


@pytest.mark.parametrize("case", WITH_WORDS)
def test_the_hint_has_the_option_and_the_statement_in_trinos_words(case):
    expected = RECORDED[case]["expect"]["error"]
    error = _refused(RECORDED[case]["sql"])
    assert (place(error), error.message) == (
        (expected["code"], expected["line"], expected["column"]),
        expected["message"],
    )
    assert "--dialect extended" in str(error.hint)
    assert WITH_WORDS[case] in str(error.hint)
    statement = parse(RECORDED[case]["sql"], dialect="extended")
    assert statement.in_trino == WITH_WORDS[case]
    if WITH_WORDS[case]:
        parse(WITH_WORDS[case])


def test_the_hint_is_about_what_the_extended_dialect_has():
    assert "extended" not in (_refused("UPDATE t SET *").hint or "")
    for sql in (
        "UPDATE t SET a = 1 RETURNING a",
        "DELETE FROM t WHERE a = 1 RETURNING a",
        "DELETE FROM t RETURNING a",
    ):
        assert "The option --dialect extended accepts it" in (_refused(sql).hint or "")
        parse(sql, dialect="extended")


# -- grammar


def test_every_form_is_read():
    merge = parse(
        "WITH a AS (SELECT 1 x), b (y) AS (SELECT x FROM a) "
        + MERGE
        + "WHEN NOT MATCHED BY SOURCE AND t.v > 1 THEN UPDATE SET v = 0 "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DO NOTHING "
        "WHEN NOT MATCHED BY TARGET AND s.v > 1 THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED THEN DO NOTHING WHEN MATCHED AND s.v = 1 THEN UPDATE SET * WHEN MATCHED THEN DO NOTHING "
        "RETURNING merge_action(), t.*, s.id AS sid, old.v + 1 plus",
        dialect="extended",
    )
    assert isinstance(merge, st.Merge)
    assert [
        (c.number, c.matched, c.by_source, c.operation, c.star is not None) for c in merge.clauses
    ] == [
        (0, False, True, Operation.UPDATE, False),
        (1, False, True, Operation.DELETE, False),
        (2, False, True, Operation.NONE, False),
        (3, False, False, Operation.INSERT, False),
        (4, False, False, Operation.INSERT, True),
        (5, False, False, Operation.NONE, False),
        (6, True, False, Operation.UPDATE, True),
        (7, True, False, Operation.NONE, False),
    ]
    assert [query.name.value for query in merge.named_queries] == ["a", "b"]
    assert [item.span.of(merge.text) for item in merge.returning] == [
        "merge_action()",
        "t.*",
        "s.id AS sid",
        "old.v + 1 plus",
    ]


@pytest.mark.parametrize(
    ("rest", "message", "column"),
    [
        ("WHEN NOT MATCHED BY", "mismatched input '<EOF>'. Expecting: 'SOURCE', 'TARGET'", 56),
        (
            "WHEN MATCHED BY SOURCE THEN DELETE",
            "mismatched input 'BY'. Expecting: 'AND', 'THEN'",
            50,
        ),
        ("WHEN NOT MATCHED x", "mismatched input 'x'. Expecting: 'AND', 'BY', 'THEN'", 54),
        (
            "WHEN NOT MATCHED BY SOURCE THEN INSERT *",
            "mismatched input 'INSERT'. Expecting: 'DELETE', 'DO', 'UPDATE'",
            69,
        ),
        (
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
            "mismatched input '*'. Expecting: <identifier>",
            80,
        ),
        (
            "WHEN NOT MATCHED BY TARGET THEN DELETE",
            "mismatched input 'DELETE'. Expecting: 'DO', 'INSERT'",
            69,
        ),
        ("WHEN MATCHED THEN DO", "mismatched input '<EOF>'. Expecting: 'NOTHING'", 57),
        (
            "WHEN MATCHED THEN DELETE x",
            "mismatched input 'x'. Expecting: 'RETURNING', 'WHEN', <EOF>",
            62,
        ),
        (
            "WHEN MATCHED THEN UPDATE SET *, v = 1",
            "mismatched input ','. Expecting: 'RETURNING', 'WHEN', <EOF>",
            67,
        ),
    ],
)
def test_errors_of_the_extended_dialect_have_trinos_form(rest, message, column):
    error = _refused(MERGE + rest, "extended")
    assert (error.message, error.column) == (message, column)


def test_a_recursive_with_before_merge_is_read():
    statement = parse(
        "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 3)"
        " MERGE INTO t USING q ON t.id = q.n WHEN MATCHED THEN DELETE",
        dialect="extended",
    )
    assert isinstance(statement, st.Merge)
    assert statement.recursive


@pytest.mark.parametrize(
    "sql",
    ["WITH q AS (SELECT 1 x) SELECT * FROM q", "SELECT 1", "(SELECT 1)", "VALUES 1", "TABLE t"],
)
def test_a_query_is_the_same_in_both_dialects(sql):
    assert parse(sql) == parse(sql, dialect="extended")


def test_explain_keeps_the_dialect():
    explain = parse(f"EXPLAIN {MERGE}WHEN NOT MATCHED BY SOURCE THEN DELETE", dialect="extended")
    assert isinstance(explain, st.Explain)
    assert isinstance(explain.statement, st.Merge)
    assert explain.statement.clauses[0].by_source


# -- meaning


def test_star_matches_the_columns_by_name_and_ignores_further_ones():
    merge = _merge(MERGE + "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    for clause in merge.clauses:
        assert [(value.text, sorted(value.references)) for value in clause.values if value] == [
            ("s.id", ["id_0"]),
            ("s.v", ["v_0"]),
        ]
    assert [str(value.type) for value in merge.clauses[0].values if value] == ["integer", "bigint"]


def test_star_names_the_columns_that_the_target_lacks():
    source = '(SELECT id, v, 1 AS more, 2 AS "a b" FROM s) s'
    sql = f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
    assert [notice.message for notice in _merge(sql).notices] == [
        "* ignores columns that t does not have: more, a b"
    ]


def test_star_needs_every_column_of_the_target_in_the_source():
    error = refusal(
        "MERGE INTO t USING half s ON t.id = s.id\nWHEN NOT MATCHED THEN INSERT *",
        tables=TABLES,
        dialect="extended",
    )
    assert place(error) == ("COLUMN_NOT_FOUND", 2, 30)
    assert error.message == "Column 'v' of the target cannot be found in the source"
    assert (
        error.hint == "* takes every column of t from the source by its name; the source has: id."
    )


def test_star_refuses_a_name_that_the_source_has_twice():
    source = "(SELECT s.id, s.v, x.v FROM s JOIN s x ON s.id = x.id) s"
    error = refusal(
        f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        tables=TABLES,
        dialect="extended",
    )
    assert error.code == "AMBIGUOUS_NAME"


def test_star_checks_types_as_an_assignment_does():
    error = refusal(
        "MERGE INTO t USING text s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        tables=TABLES,
        dialect="extended",
    )
    assert place(error) == ("TYPE_MISMATCH", 1, 42)
    assert "Table: [integer, bigint], Expressions: [integer, varchar]" in error.message


@pytest.mark.parametrize(
    ("clause", "column"),
    [
        ("WHEN NOT MATCHED BY SOURCE AND s.v > 1 THEN DELETE", 68),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.v", 84),
        ("WHEN NOT MATCHED BY SOURCE AND w IS NULL THEN DO NOTHING", 68),
    ],
)
def test_a_clause_about_rows_without_a_source_row_cannot_read_one(clause, column):
    error = refusal(MERGE + clause, tables=TABLES, dialect="extended")
    assert place(error) == ("COLUMN_NOT_FOUND", 1, column)
    assert (
        error.hint == "WHEN NOT MATCHED BY SOURCE applies to rows without a source row; it sees"
        " only the target's columns."
    )


def test_a_name_of_neither_side_keeps_its_own_hint():
    error = refusal(
        MERGE + "WHEN NOT MATCHED BY SOURCE AND t.vv > 1 THEN DELETE",
        tables=TABLES,
        dialect="extended",
    )
    assert error.hint == "Did you mean 't.v'?"


def test_a_bare_name_means_the_target_without_a_source_row():
    for era in ("documents", "current"):
        clause = _merge(
            MERGE + "WHEN NOT MATCHED BY SOURCE AND v > 1 THEN UPDATE SET v = v + 1"
        ).clauses[0]
        assert clause.by_source, era
        assert clause.values[1] is not None
        assert clause.values[1].references == {"v"}


def test_the_queries_of_with_can_be_seen_in_the_source_and_in_every_subquery():
    merge = _merge(
        "WITH q AS (SELECT id, v FROM s), few AS (SELECT id FROM q) MERGE INTO t USING q ON t.id = q.id AND q.id IN (SELECT id FROM few) "
        "WHEN MATCHED AND EXISTS (SELECT 1 FROM few WHERE few.id = t.id) THEN UPDATE SET v = (SELECT max(id) FROM few) "
        "RETURNING (SELECT count(*) FROM few)"
    )
    assert merge.source.binding is None
    assert [binding.display for binding in merge.bindings] == ["t", "s"]


def test_a_query_of_with_that_nothing_uses_must_be_right():
    error = refusal(
        "WITH q AS (SELECT nope FROM s) " + MERGE + "WHEN MATCHED THEN DELETE",
        tables=TABLES,
        dialect="extended",
    )
    assert place(error) == ("COLUMN_NOT_FOUND", 1, 19)


def test_with_names_no_target():
    sql = "WITH q AS (SELECT * FROM s) MERGE INTO q USING s ON q.id = s.id WHEN MATCHED THEN DELETE"
    assert place(refusal(sql, tables=TABLES, dialect="extended")) == ("TABLE_NOT_FOUND", 1, 1)


# -- RETURNING


def _returned(rest: str, before: str = MERGE) -> list[tuple[str, str]]:
    returning = _merge(f"{before}WHEN MATCHED THEN DELETE RETURNING {rest}").returning
    assert returning is not None
    return [(column.name, str(column.expression.type)) for column in returning.columns]


def test_the_columns_that_are_returned_have_names_and_types():
    assert _returned(
        "merge_action(), merge_clause(), t.id, s.v AS x, s.v + 1, NULL, old.v, new.v n"
    ) == [
        ("merge_action", "varchar"),
        ("merge_clause", "integer"),
        ("id", "integer"),
        ("x", "integer"),
        ("_col4", "integer"),
        ("_col5", "boolean"),
        ("v", "bigint"),
        ("n", "bigint"),
    ]


def test_star_is_the_source_and_then_the_target():
    assert [name for name, _ in _returned("*")] == ["id", "v", "w", "id", "v"]
    assert [name for name, _ in _returned("t.*, old.*, new.*")] == ["id", "v"] * 3


def test_a_side_called_old_hides_the_old_values():
    merge = "MERGE INTO t USING s AS old ON t.id = old.id "
    assert _returned("old.w", merge) == [("w", "varchar")]
    assert [name for name, _ in _returned("old.*", merge)] == ["id", "v", "w"]


@pytest.mark.parametrize(
    ("rest", "code", "column"),
    [
        ("v", "AMBIGUOUS_NAME", 72),
        ("t.nope", "COLUMN_NOT_FOUND", 72),
        ("x.*", "TABLE_NOT_FOUND", 72),
        ("count(*)", "EXPRESSION_NOT_SCALAR", 72),
        ("merge_action(1)", "FUNCTION_NOT_FOUND", 72),
    ],
)
def test_impossible_returning_lists_are_refused_at_their_position(rest, code, column):
    error = refusal(
        f"{MERGE}WHEN MATCHED THEN DELETE RETURNING {rest}", tables=TABLES, dialect="extended"
    )
    assert place(error) == (code, 1, column)


def test_merge_action_exists_only_in_returning():
    error = refusal(
        MERGE + "WHEN MATCHED AND merge_action() = 'x' THEN DELETE",
        tables=TABLES,
        dialect="extended",
    )
    assert place(error) == ("FUNCTION_NOT_FOUND", 1, 54)


# -- WITH SCHEMA EVOLUTION

EVOLVING = "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id "
BOTH = "WHEN MATCHED THEN UPDATE * WHEN NOT MATCHED THEN INSERT *"
NEWS = FakeTables(
    {
        "t": [("id", "integer"), ("v", "bigint"), ("old", "varchar", "not null")],
        "s": [("w", "varchar"), ("id", "integer"), ("x", "row(a bigint)")],
        "nested": [("id", "integer"), ("r", "row(a integer)")],
        "deeper": [("id", "integer"), ("r", "row(a integer, b integer)")],
    }
)


def _evolved(sql: str) -> MergeAnalysis:
    found = meaning(sql, tables=NEWS, dialect="extended")
    assert isinstance(found, MergeAnalysis)
    return found


def _values(merge: MergeAnalysis) -> list[dict[str, str]]:
    names = [column.name for column in merge.target.columns]
    return [
        {n: value.text for n, value in zip(names, clause.values, strict=True) if value}
        for clause in merge.clauses
    ]


def test_schema_evolution_is_trinos_error_with_a_hint_that_names_the_option():
    error = _refused(EVOLVING + "WHEN MATCHED THEN DELETE")
    assert (place(error), error.message) == (
        ("SYNTAX_ERROR", 1, 7),
        "mismatched input 'WITH'. Expecting: 'INTO'",
    )
    assert error.hint == (
        "Trino's MERGE has no WITH SCHEMA EVOLUTION; add the columns before it: ALTER TABLE ... ADD COLUMN. "
        'The option --dialect extended accepts it (in a program: dialect="extended").'
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("MERGE WITH INTO t", "mismatched input 'INTO'. Expecting: 'SCHEMA'"),
        ("MERGE WITH SCHEMA INTO t", "mismatched input 'INTO'. Expecting: 'EVOLUTION'"),
    ],
)
def test_the_words_of_schema_evolution_belong_together(sql, message):
    assert _refused(sql, "extended").message == message


def test_update_star_is_update_set_star():
    assert _values(_evolved(EVOLVING + "WHEN MATCHED THEN UPDATE *")) == _values(
        _evolved(EVOLVING + "WHEN MATCHED THEN UPDATE SET *")
    )


def test_a_star_adds_what_the_source_has_beyond_the_target_at_the_end():
    merge = _evolved(EVOLVING + BOTH)
    assert [(column.name, str(column.type), column.nullable) for column in merge.added] == [
        ("w", "varchar", True),
        ("x", 'row("a" bigint)', True),
    ]
    assert [column.name for column in merge.target.columns] == ["id", "v", "old", "w", "x"]
    assert [field.name for field in merge.target_fields] == ["id", "v", "old", "w", "x"]


def test_column_names_ignore_case_and_new_ones_are_spelled_as_in_the_source():
    source = '(SELECT id AS "ID", w AS "Old", w AS "New One" FROM s)'
    merge = _evolved(EVOLVING.replace("USING s", f"USING {source} s") + BOTH)
    assert [column.name for column in merge.added] == ["New One"]
    assert list(_values(merge)[0]) == ["id", "old", "New One"]


def test_a_star_leaves_what_the_source_lacks():
    assert _values(_evolved(EVOLVING + BOTH)) == [{"id": "s.id", "w": "s.w", "x": "s.x"}] * 2
    assert _evolved(EVOLVING + BOTH).clauses[0].assigned == (0, 3, 4)


def test_only_columns_named_by_clauses_are_added_without_a_star():
    merge = _evolved(
        EVOLVING
        + "WHEN MATCHED THEN UPDATE SET w = upper(s.w) WHEN NOT MATCHED THEN INSERT (id, old) VALUES (s.id, w)"
    )
    assert [column.name for column in merge.added] == ["w"]
    assert _values(merge) == [{"w": "upper(s.w)"}, {"id": "s.id", "old": "w"}]


def test_a_statement_without_new_columns_adds_nothing():
    for clause in (
        "MATCHED THEN DELETE",
        "MATCHED THEN UPDATE SET v = s.id",
        "NOT MATCHED THEN INSERT VALUES (s.id, 1, w)",
    ):
        assert _evolved(f"{EVOLVING}WHEN {clause}").added == ()


def test_expressions_do_not_see_columns_that_the_statement_adds():
    merge = _evolved(
        EVOLVING + "WHEN MATCHED AND w IS NULL THEN UPDATE SET w = w WHEN NOT MATCHED THEN INSERT *"
    )
    value = merge.clauses[0].values[3]
    assert value is not None
    assert value.references == {"w"}
    error = refusal(
        EVOLVING + "WHEN MATCHED AND t.w IS NULL THEN UPDATE *", tables=NEWS, dialect="extended"
    )
    assert place(error) == ("COLUMN_NOT_FOUND", 1, 76)


def test_returning_sees_the_columns_that_the_statement_adds():
    merge = _evolved(EVOLVING + BOTH + " RETURNING t.w, old.x, t.*")
    assert merge.returning is not None
    assert [column.name for column in merge.returning.columns] == [
        "w",
        "x",
        "id",
        "v",
        "old",
        "w",
        "x",
    ]


def test_a_clause_about_rows_without_a_source_row_adds_nothing():
    by_source = "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET w = 'gone'"
    error = refusal(EVOLVING + by_source, tables=NEWS, dialect="extended")
    assert error.code == "COLUMN_NOT_FOUND"
    assert error.message == "Merge column name does not exist in target table: w"
    assert _values(_evolved(EVOLVING + BOTH + " " + by_source))[2] == {"w": "'gone'"}


def test_a_name_that_neither_side_has_is_refused_with_what_can_be_added():
    error = refusal(
        EVOLVING + "WHEN MATCHED THEN UPDATE SET quite = 1", tables=NEWS, dialect="extended"
    )
    assert place(error) == ("COLUMN_NOT_FOUND", 1, 1)
    assert error.hint == (
        "WITH SCHEMA EVOLUTION adds columns that the source has under the same name. t has the columns id, v, old."
    )


@pytest.mark.parametrize(
    ("sql", "expected", "message"),
    [
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT id, NULL AS n FROM s) s ON t.id = s.id WHEN MATCHED THEN UPDATE *",
            ("COLUMN_TYPE_UNKNOWN", 1, 114),
            "Column 'n' of the source has no type, so it cannot be added to t",
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT id, w, x AS w FROM s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET w = '1'",
            ("AMBIGUOUS_NAME", 1, 118),
            "Column 'w' is ambiguous in the source",
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO nested t USING deeper s ON t.id = s.id WHEN MATCHED THEN UPDATE *",
            ("NOT_SUPPORTED", 1, 98),
            (
                'WITH SCHEMA EVOLUTION cannot add the field. Column r is row("a" integer) in the target and '
                'row("a" integer, "b" integer) in the source: the target has no field \'b\''
            ),
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO nested t USING deeper s ON t.id = s.id WHEN MATCHED THEN UPDATE SET r = s.r",
            ("NOT_SUPPORTED", 1, 106),
            (
                'WITH SCHEMA EVOLUTION cannot add the field. Column r is row("a" integer) in the target and '
                'row("a" integer, "b" integer) in the source: the target has no field \'b\''
            ),
        ),
    ],
)
def test_impossible_columns_are_refused_at_their_position(sql, expected, message):
    error = refusal(sql, tables=NEWS, dialect="extended")
    assert (place(error), error.message) == (expected, message)
    assert error.hint


def test_a_catalog_that_adds_no_columns_in_a_merge_is_refused_at_the_words(monkeypatch):
    monkeypatch.setattr(
        FakeTables, "store", lambda self, catalog: SimpleNamespace(evolves_tables=False)
    )
    error = refusal(EVOLVING + BOTH, tables=NEWS, dialect="extended")
    assert place(error) == ("NOT_SUPPORTED", 1, 7)
    assert error.length == len("WITH SCHEMA EVOLUTION")
    assert (
        error.message
        == "Catalog 'memory' cannot add columns in a MERGE: its store does not commit columns and rows together"
    )
    assert (
        error.hint
        == "Add the columns by ALTER TABLE ... ADD COLUMN, and remove WITH SCHEMA EVOLUTION."
    )
