"""result.near(): the near keys of rows without a partner, in the tables as read by the statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rowmerge_nb import Engine, RowMergeError, load_trace, save_trace
from rowmerge_nb.engine.observers import near_misses as near_module
from rowmerge_nb.engine.observers.near import search
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = pytest.mark.spark

KEEPS = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)"


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (VARCHAR 'Dave', 1), ('ED', 2), ('7', 3), ('Carol', 4), ('Zoe', 6), (NULL, 5)) AS v (k, v)"
    )
    return engine


def sentences(engine: Engine, merge: str, **options: Any) -> list[str]:
    return list(engine.run(merge, rehearse=True, **options).near().sentences)


@pytest.mark.parametrize(
    ("source", "on", "said"),
    [
        (
            "'Dave '",
            "t.k = s.k",
            "Source row 0 ('Dave ') would match target row 'Dave' without trailing blanks.",
        ),
        (
            "'\u00a0Dave'",
            "t.k = s.k",
            "Source row 0 ('\u00a0Dave') would match target row 'Dave' without leading blanks (U+00A0 NO-BREAK SPACE).",
        ),
        ("'Ed'", "t.k = s.k", "Source row 0 ('Ed') would match target row 'ED' in the same case."),
        ("'007'", "s.k = t.k", "Source row 0 ('007') would match target row '7' as a number."),
        ("'7.0'", "t.k = s.k", "Source row 0 ('7.0') would match target row '7' as a number."),
        (
            "'Karol'",
            "t.k = s.k",
            "Source row 0 ('Karol') differs from target row 'Carol' by one letter.",
        ),
        (
            "CAST(NULL AS varchar)",
            "t.k = s.k",
            "Source row 0 (NULL) would match target row NULL if NULL were equal to NULL.",
        ),
        (
            "'Dave'",
            "t.k = s.k AND t.v > 3",
            (
                "Source row 0 ('Dave'): the key exists, in target row 'Dave', but t.v > 3"
                " is false for it."
            ),
        ),
        (
            "'Dave'",
            "t.k = s.k AND t.v > CAST(NULL AS integer)",
            (
                "Source row 0 ('Dave'): the key exists, in target row 'Dave', but t.v >"
                " CAST(NULL AS integer) is unknown for it."
            ),
        ),
        (
            "'Dave'",
            "t.k = s.k AND t.v = s.v",
            "Source row 0 ('Dave', 9) differs from target row ('Dave', 1) by another value, in t.v = s.v.",
        ),
        (
            "'Dave '",
            "lower(t.k) = s.k",
            "Source row 0 ('Dave ') would match target row 'dave' without trailing blanks and in the same case.",
        ),
        (
            "'Ed'",
            "t.k = concat(s.k, ' ')",
            "Source row 0 ('Ed ') would match target row 'ED' without trailing blanks and in the same case.",
        ),
    ],
)
def test_each_reason_is_a_sentence(engine: Engine, source: str, on: str, said: str) -> None:
    assert (
        sentences(engine, f"MERGE INTO t USING (VALUES ({source}, 9)) AS s (k, v) ON {on} {KEEPS}")[
            0
        ]
        == said
    )


def test_nothing_is_searched_without_a_near_key_at_a_glance_unless_requested(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = f"MERGE INTO t USING (VALUES ('nobody', 9)) AS s (k, v) ON t.k = s.k {KEEPS}"
    assert sentences(engine, statement, near=True) == [
        (
            "Source row 0 ('nobody'): no key of the target is near, that is, the same"
            " except for blanks, case, notation or one letter."
        )
    ]
    monkeypatch.setattr(near_module, "near_keys", lambda *_: pytest.fail("it was searched"))
    result = engine.run(statement, rehearse=True)
    assert str(result.near()).startswith(
        "No unmatched source row has a key that differs from a target key only in spelling"
    )
    assert "With near=True" in str(result.near(k="nobody"))


def test_a_unicode_form_is_named_and_a_char_has_no_padding_beside_a_varchar(engine: Engine) -> None:
    engine.run("CREATE TABLE c (k char(6), v integer)")
    engine.run("INSERT INTO c VALUES ('ab', 1), ('Zo\u00e9', 2)")
    merge = f"MERGE INTO c t USING (VALUES ('ab', 9), ('Zoe\u0301', 9)) AS s (k, v) ON {{}} {KEEPS}"
    for condition in ("CAST(t.k AS varchar) = s.k", "t.k = s.k"):
        assert sentences(engine, merge.format(condition)) == [
            "Source row 1 ('Zoe\u0301') would match target row 'Zo\u00e9' in the same Unicode form.",
            "Target row ('Zo\u00e9') would match source row 'Zoe\u0301' in the same Unicode form.",
        ]


def test_the_same_clock_time_in_another_zone_is_named(engine: Engine) -> None:
    engine.run("CREATE TABLE m (k timestamp(6) with time zone, v integer)")
    engine.run("INSERT INTO m VALUES (TIMESTAMP '2024-07-01 12:00:00 UTC', 1)")
    zones = "(VALUES (TIMESTAMP '2024-07-01 12:00:00 Europe/Paris', 1), (TIMESTAMP '2024-07-01 14:00:00 Europe/Paris', 2))"
    near = engine.run(f"MERGE INTO m t USING {zones} AS s (k, v) ON t.k = s.k {KEEPS}").near()
    assert [(row.row, list(row.kinds)) for row in near] == [(0, ["time zone"])]


def test_near_keys_are_those_seen_by_the_statement_even_if_it_inserts_the_rows(
    engine: Engine,
) -> None:
    result = engine.run(
        f"MERGE INTO t USING (VALUES ('Dave ', 8), ('ED', 9)) AS s (k, v) ON t.k = s.k {KEEPS}"
    )
    assert result.count == 2
    assert [(row.key, row.nearest) for row in result.near()] == [(("Dave ",), ("Dave",))]


def test_a_report_names_only_likely_mistakes(engine: Engine) -> None:
    merge = "MERGE INTO t USING (VALUES {}) AS s (k, v) ON t.k = s.k " + KEEPS
    told = str(engine.run(merge.format("('Dave ', 8), ('Nobody', 9)"), rehearse=True))
    assert [line for line in told.splitlines() if line.startswith("Near miss:")] == [
        "Near miss: Source row 0 ('Dave ') would match target row 'Dave' without trailing blanks."
    ]
    for nothing in ("('Nobody', 9)", "('8', 1)", "('Dave', 1)", "('Carol', 1), ('Karol', 1)"):
        result = engine.run(merge.format(nothing), rehearse=True)
        assert "Near" not in str(result)
        assert "<b>Near miss.</b>" not in result._repr_mimebundle_()["text/html"]


def test_many_mistakes_are_summarized_in_a_few_lines(engine: Engine) -> None:
    rows = ", ".join(f"('{'Dave' + ' ' * i}', {i})" for i in range(1, 9))
    told = str(
        engine.run(
            f"MERGE INTO t USING (VALUES {rows}) AS s (k, v) ON t.k = s.k {KEEPS}", rehearse=True
        )
    )
    near = [line for line in told.splitlines() if line.startswith("Near miss:")]
    assert len(near) == 6
    assert (
        near[-1]
        == "Near miss: 3 more rows of the source are near a key of the target: result.near() lists"
    )


def test_rows_are_picked_by_their_number_and_by_values(engine: Engine, tmp_path: Path) -> None:
    merge = f"MERGE INTO t USING (VALUES ('Dave ', 8), ('Ed', 9)) AS s (k, v) ON t.k = s.k {KEEPS}"
    result = engine.run(merge, rehearse=True)
    assert (
        str(result.near(source_row=1))
        == "Source row 1 ('Ed') would match target row 'ED' in the same case."
    )
    assert (
        str(result.near(K="Dave "))
        == "Source row 0 ('Dave ') would match target row 'Dave' without trailing blanks."
    )
    assert (
        str(result.near(k="ED"))
        == "Target row ('ED') would match source row 'Ed' in the same case."
    )
    save_trace(result.trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json") == result.trace


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"source_row": -1}, "source_row = -1 is not possible"),
        ({"source_row": True}, "Give the number of a row of the source"),
        ({"kk": 1}, "Neither side has a column 'kk'. Did you mean 'k'?"),
        (
            {"source_row": 77},
            "No unmatched row among the 1 source row in the trace is source row 77",
        ),
        ({"k": "zz"}, "is k = 'zz'"),
    ],
)
def test_missing_rows_are_an_error_with_a_next_step(
    engine: Engine, asked: dict[str, Any], said: str
) -> None:
    result = engine.run(
        f"MERGE INTO t USING (VALUES ('Dave ', 8)) AS s (k, v) ON t.k = s.k {KEEPS}", rehearse=True
    )
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS") as raised:
        result.near(**asked)
    assert said in str(raised.value)
    assert raised.value.hint


def test_other_and_unsearched_statements_are_reported_as_such(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="NOT_SUPPORTED: DELETE has no source"):
        engine.run("DELETE FROM t WHERE v > 5", rehearse=True).near()
    merge = f"MERGE INTO t USING (VALUES ('Dave ', 8)) AS s (k, v) ON t.k = s.k {KEEPS}"
    with pytest.raises(RowMergeError, match=r"NOT_SUPPORTED: .* near=True"):
        engine.run(merge, rehearse=True, trace="off").near()
    assert len(engine.run(merge, rehearse=True, trace="off", near=True).near()) == 1


def test_nothing_is_searched_if_every_row_has_a_partner(engine: Engine) -> None:
    result = engine.run(
        f"MERGE INTO t USING (VALUES ('Dave', 8)) AS s (k, v) ON t.k = s.k {KEEPS}", rehearse=True
    )
    assert result.trace.samples.near_misses is None
    assert "near" not in result.trace.seconds
    assert str(result.near()) == "Every row of the source has a partner."
    with pytest.raises(
        RowMergeError, match="INVALID_ARGUMENTS: Every row of the source has a partner"
    ):
        result.near(k="Dave")


@pytest.mark.parametrize(
    ("on", "said"),
    [
        (
            "t.v > s.v",
            (
                "ON has no equality between a key of the target and a key of the source,"
                " so no key is nearer than another."
            ),
        ),
        (
            "CAST(t.v AS double) = CAST(s.v AS double)",
            "ON compares keys of type double, for which the nearest are not searched.",
        ),
        (
            "t.v = 77e0",
            (
                "ON has no equality between a key of the target and a key of the source,"
                " so no key is nearer than another."
            ),
        ),
        (
            "ARRAY[t.v] = ARRAY[s.v]",
            "ON compares keys of type array(integer), for which the nearest are not searched.",
        ),
        (
            "t.k = s.k AND t.v = (SELECT max(v) FROM t)",
            "The nearest keys are unknown: ON has a subquery",
        ),
        ("reverse(t.k) = s.k", ""),
    ],
)
def test_an_on_condition_without_keys_is_reported_in_a_sentence(
    engine: Engine, on: str, said: str
) -> None:
    near = engine.run(
        f"MERGE INTO t USING (VALUES ('Dave ', 100), ('x', 101)) AS s (k, v) ON {on} {KEEPS}",
        rehearse=True,
    ).near()
    assert said in str(near)
    if said:
        with pytest.raises(RowMergeError, match="NOT_SUPPORTED"):
            near.of(
                engine.run(
                    f"MERGE INTO t USING (VALUES ('Dave ', 100), ('x', 101)) AS s (k, v) ON {on} {KEEPS}",
                    rehearse=True,
                ).trace,
                0,
                None,
                {},
            )


def test_a_double_that_is_compared_is_another_condition_and_nan_is_equal_to_nothing(
    engine: Engine,
) -> None:
    engine.run(
        "CREATE TABLE d AS SELECT * FROM (VALUES (VARCHAR 'a', nan()), ('b', DOUBLE '1')) AS v (k, v)"
    )
    source = "(VALUES ('a', nan()), ('b', DOUBLE '2')) AS s (k, v)"
    assert sentences(engine, f"MERGE INTO d t USING {source} ON t.k = s.k AND t.v = s.v {KEEPS}")[
        :2
    ] == [
        "Source row 0 ('a'): the key exists, in target row 'a', but t.v = s.v is false for it.",
        "Source row 1 ('b'): the key exists, in target row 'b', but t.v = s.v is false for it.",
    ]


def test_names_and_values_that_are_markup_stay_text(engine: Engine) -> None:
    engine.run(
        """CREATE TABLE x AS SELECT * FROM (VALUES (VARCHAR '<b>i</b>', 1)) AS v ("<i>k $row", v)"""
    )
    merge = """MERGE INTO x t USING (VALUES ('<b>I</b>', 9)) AS s ("k""0", v) ON t."<i>k $row" = s."k""0" WHEN NOT MATCHED THEN INSERT VALUES (s."k""0", s.v)"""
    result = engine.run(merge, rehearse=True)
    assert result.near(**{'K"0': "<b>I</b>"}).sentences == (
        "Source row 0 ('<b>I</b>') would match target row '<b>i</b>' in the same case.",
    )
    html = result.near()._repr_mimebundle_()["text/html"] + result._repr_mimebundle_()["text/html"]
    assert "&lt;b&gt;I&lt;/b&gt;" in html
    assert "<b>I</b>" not in html


def test_large_tables_are_searched_on_request(spark: Any) -> None:
    engine = Engine(spark=spark, rule_settings=RuleSettings(small_rows=5))
    engine.register(
        "t", pd.DataFrame({"k": [f"Name{i}" for i in range(1, 12_001)], "v": range(1, 12_001)})
    )
    rows = pd.DataFrame(
        {"k": [f"Name{i}" + " " * (i % 2) for i in range(11_000, 13_000)], "v": range(2_000)}
    )
    merge = f"MERGE INTO t USING {{}} s ON t.k = s.k {KEEPS}"
    assert (
        engine.run(
            merge.format("rows"), namespace={"rows": rows}, rehearse=True
        ).trace.samples.near_misses
        is None
    )
    counted = "500 of 1,499 unmatched source rows would match without trailing blanks."
    for source in ("rows", "(SELECT k, v FROM rows)"):
        result = engine.run(
            merge.format(source), namespace={"rows": rows}, rehearse=True, near=True
        )
        assert counted in str(result.near())
        assert "near" in result.trace.seconds
    full = f"{merge.format('rows')} WHEN NOT MATCHED BY SOURCE AND t.v < 0 THEN DELETE"
    result = engine.run(
        full, namespace={"rows": rows}, rehearse=True, near=True, dialect="extended"
    )
    assert counted in str(result.near())
    assert (
        str(result.near(source_row=1))
        == "Source row 1 ('Name11001 ') would match target row 'Name11001' without trailing blanks."
    )
    result = engine.run(
        merge.format("rows"),
        namespace={"rows": spark.createDataFrame(rows)},
        rehearse=True,
        near=True,
    )
    assert "may return different rows each time" in str(result.near())
    bounded = engine.run(merge.format("rows"), namespace={"rows": rows}, rehearse=True, near=5_000)
    assert (
        str(bounded.near())
        == "The target has more than 5,000 rows, and only that many are searched."
        " near=10000 searches twice as many."
    )
    with pytest.raises(RowMergeError, match="NOT_SUPPORTED"):
        bounded.near(source_row=1)


def test_a_source_that_may_be_another_each_time_is_not_read_again(spark: Any) -> None:
    engine = Engine(spark=spark, rule_settings=RuleSettings(small_rows=1))
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (VARCHAR 'a', DOUBLE '1'), ('b', DOUBLE '2')) AS v (k, v)"
    )
    merge = (
        f"MERGE INTO t USING (SELECT k || ' ' AS k, random() AS v FROM t) s ON t.k = s.k {KEEPS}"
    )
    assert "may return different rows each time" in str(
        engine.run(merge, rehearse=True, near=True, trace="off").near()
    )


def test_a_failure_of_the_search_is_reported_and_ends_no_statement(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        msg = "no memory"
        raise MemoryError(msg)

    monkeypatch.setattr(search, "normal_form", fails)
    result = engine.run(
        f"MERGE INTO t USING (VALUES ('Dave ', 8)) AS s (k, v) ON t.k = s.k {KEEPS}"
    )
    assert result.count == 1
    assert str(result.near()) == "The keys could not be compared: MemoryError: no memory."


def test_an_interrupt_of_the_search_ends_the_statement_and_leaves_the_table(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        msg = "Query interrupted"
        raise RuntimeError(msg)

    monkeypatch.setattr(search, "normal_form", interrupted)
    with pytest.raises(RowMergeError) as raised:
        engine.run(f"MERGE INTO t USING (VALUES ('Dave ', 8)) AS s (k, v) ON t.k = s.k {KEEPS}")
    assert raised.value.changed is False
    assert engine.table("t").num_rows == 6


@pytest.mark.parametrize("value", [-1, "yes", 1.5])
def test_near_accepts_a_boolean_or_a_number_of_rows(engine: Engine, value: object) -> None:
    with pytest.raises(
        RowMergeError, match=r"INVALID_ARGUMENTS: near = .* Give True, False, or the number of rows"
    ):
        engine.run("SELECT 1", near=value)


@pytest.mark.parametrize("by_source", ["", " WHEN NOT MATCHED BY SOURCE THEN DELETE"])
def test_an_answer_about_one_row_is_there_when_nothing_is_near(
    engine: Engine, by_source: str
) -> None:
    merge = f"MERGE INTO t USING {{}} ON t.v = s.v {KEEPS}{by_source}"
    result = engine.run(
        merge.format("(VALUES ('Dave', 1), ('Xaver', 900)) AS s (k, v)"), rehearse=True
    )
    assert str(result.near(v=900)).startswith("No unmatched source row has a key that")
    empty = engine.run(merge.format("(SELECT k, v FROM t WHERE false) AS s"), rehearse=True)
    assert str(empty.near()) == "Every row of the source has a partner."


def test_a_target_row_that_nothing_is_near_to_gets_the_reason(engine: Engine) -> None:
    merge = f"MERGE INTO t USING (VALUES ('Dave ', 1)) AS s (k, v) ON t.k = s.k {KEEPS}"
    result = engine.run(f"{merge} WHEN NOT MATCHED BY SOURCE THEN DELETE", rehearse=True)
    with pytest.raises(RowMergeError, match="only if a source row is near it"):
        result.near(k="Zoe")
