"""The statement as other engines may have read it: changed and unchanged parts of its text."""

from __future__ import annotations

from rowmerge_nb.engine.reruns.audit.statement_readings import momentary, variants_of
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.trace.audit import Cause

MERGE = """MERGE INTO t USING s ON (t.a = s.a AND t.b = lower(s.b) AND t.c > s.c)
WHEN MATCHED AND t.n > 1 THEN DELETE
WHEN MATCHED THEN UPDATE SET n = 0
WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a)"""


def variants(sql: str, cause: Cause) -> list[str]:
    return [variant.statement for variant in variants_of(parse(sql)) if variant.cause is cause]


def test_only_the_equalities_of_on_are_rewritten() -> None:
    [text] = variants(MERGE, Cause.NULL_KEYS)
    assert (
        "(t.a IS NOT DISTINCT FROM s.a) AND (t.b IS NOT DISTINCT FROM lower(s.b)) AND t.c > s.c"
        in text
    )
    assert text.split("\n")[1:] == MERGE.split("\n")[1:]


def test_each_equality_can_be_rewritten_separately() -> None:
    [case] = [variant for variant in variants_of(parse(MERGE)) if variant.cause is Cause.CASE]
    assert [
        "(lower(t.a) = lower(s.a)) AND t.b = lower(s.b)" in part.statement for part in case.parts
    ] == [True, False]


def test_clauses_about_the_same_rows_are_exchanged() -> None:
    [text] = variants(MERGE, Cause.ORDER)
    assert text.split("\n")[1:3] == [
        "WHEN MATCHED THEN UPDATE SET n = 0",
        "WHEN MATCHED AND t.n > 1 THEN DELETE",
    ]


def test_conditions_are_assumed_true_if_unknown_or_everywhere() -> None:
    assert variants(MERGE, Cause.UNKNOWN) == [
        MERGE.replace("t.n > 1", "((t.n > 1) IS DISTINCT FROM FALSE)")
    ]
    assert variants(MERGE, Cause.CONDITION) == [MERGE.replace("t.n > 1", "TRUE")]
    assert variants("DELETE FROM t WHERE a = 1 OR b = 2", Cause.CONDITION) == [
        "DELETE FROM t WHERE TRUE"
    ]


COLUMNS = {"a": True, "n": True, "b": False}


def test_assignments_and_casts_to_integers_have_truncated_variants() -> None:
    def fractions(sql: str) -> list[str]:
        return [
            one.statement
            for one in variants_of(parse(sql), COLUMNS)
            if one.cause is Cause.FRACTIONS
        ]

    assert fractions(MERGE) == [
        MERGE.replace("n = 0", "n = truncate(0)").replace("(s.a)", "(truncate(s.a))")
    ]
    insert = "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (1.5, 2.5, 3.5)"
    assert fractions(insert) == [insert.replace("1.5, 2.5", "truncate(1.5), truncate(2.5)")]
    cast = (
        "UPDATE t SET b = b || CAST(CAST(x AS bigint) + 0.5 AS Integer) WHERE CAST(y AS real) > 1"
    )
    assert fractions(cast) == [
        cast.replace("CAST(x AS bigint) + 0.5 AS", "truncate(CAST(x AS bigint) + 0.5) AS")
    ]
    assert fractions("DELETE FROM t WHERE b > 1.5") == []


def test_a_statement_without_conditions_has_no_variants() -> None:
    assert list(variants_of(parse("DELETE FROM t"))) == []


def test_every_variant_can_be_read_again() -> None:
    for variant in variants_of(parse(MERGE)):
        assert parse(variant.statement)


def test_functions_of_the_current_time_are_found_at_every_position() -> None:
    assert momentary(
        parse("UPDATE t SET a = now(), b = CASE WHEN x THEN random() END WHERE c < current_date")
    ) == [
        "now",
        "random",
        "current_date",
    ]
    assert momentary(parse(MERGE)) == []
