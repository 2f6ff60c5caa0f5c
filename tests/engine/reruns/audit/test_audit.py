"""Audits: agreement, differing rows and their reasons, by states of stores and by the rows themselves; and refusals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowmerge_nb as rm
from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError, SqliteConnector
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.trace.audit import Audit, Cause, RowFate
from rowmerge_nb.trace.page_samples import Answer

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

BEFORE = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "name": ["ann", "bob", "cy", "no"],
        "n": pa.array([10, 20, 30, 40]),
    }
)
SOURCE = pa.table(
    {
        "id": pa.array([1, 2, 5, None], pa.int64()),
        "name": ["ann", "BOB", "eve", "no"],
        "n": pa.array([1, None, 5, 7]),
    }
)
MERGE = """MERGE INTO t USING s ON t.id = s.id
WHEN MATCHED AND s.n > 0 THEN UPDATE SET n = t.n + s.n
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, s.name, s.n)"""
RIGHT = [(1, "ann", 11), (3, "cy", 30), (None, "no", 40), (5, "eve", 5), (None, "no", 7)]


@pytest.fixture
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark) as made:
        yield made


def table(rows: list[tuple[Any, ...]], schema: pa.Schema = BEFORE.schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def audited(
    engine: Engine, rows: list[tuple[Any, ...]], statement: str = MERGE, **more: Any
) -> Audit:
    given = {"before": BEFORE, "namespace": {"s": SOURCE}, **more}
    before = given["before"]
    return engine.audit("t", after=table(rows, before.schema), statement=statement, **given)


def causes(audit: Audit) -> list[tuple[Cause, int, int]]:
    return [(one.cause, one.rows, one.of) for one in audit.explanations]


# -- differences


def test_the_rows_of_a_merge_agree_in_any_order(engine: Engine) -> None:
    audit = audited(engine, RIGHT[::-1])
    assert audit.agrees
    assert audit.sentence == "AGREES: memory.default.t holds the 5 rows that this MERGE leaves."
    counts = audit.counts
    assert (
        counts.before,
        counts.after,
        counts.removed,
        counts.added,
        counts.to_remove,
        counts.to_add,
    ) == (4, 5, 2, 3, 2, 3)
    assert [(clause.number, clause.rows) for clause in audit.clauses] == [(0, 1), (1, 1), (2, 2)]
    assert "AGREES" in str(audit)
    assert "AGREES" in audit._repr_mimebundle_()["text/html"]


def test_a_missing_row_is_named_with_its_clause(engine: Engine) -> None:
    audit = audited(engine, [row for row in RIGHT if row[0] != 5])
    assert (audit.agrees, audit.counts.missing, audit.counts.unexpected) == (False, 1, 0)
    [row] = audit.rows
    assert (row.key, row.fate, row.missing) == (
        {"id": 5},
        RowFate.NOT_THERE,
        ({"id": 5, "name": "eve", "n": 5},),
    )
    assert row.journeys[0].case_number == 2
    assert "id = 5: should exist but does not" in str(audit)
    assert "Clause 2 fires" in str(audit)


def test_a_row_that_should_be_deleted_is_named(engine: Engine) -> None:
    [row] = audited(engine, [*RIGHT, (2, "bob", 20)]).rows
    assert (row.key, row.fate) == ({"id": 2}, RowFate.STILL_THERE)
    assert row.journeys[0].case_number == 1


def test_a_doubled_row_is_there_too_often(engine: Engine) -> None:
    audit = audited(engine, [*RIGHT, RIGHT[1], RIGHT[1]])
    assert audit.counts.unexpected == 2
    [row] = audit.rows
    assert (row.fate, row.key, len(row.unexpected)) == (RowFate.TOO_OFTEN, {"id": 3}, 2)
    assert "id = 3: exists 2 times too often" in str(audit)


def test_another_value_is_reported_beside_the_expected_one(engine: Engine) -> None:
    audit = audited(engine, [(1, "ann", 99), *RIGHT[1:]])
    [row] = audit.rows
    assert (row.fate, row.missing[0]["n"], row.unexpected[0]["n"], row.before[0]["n"]) == (
        RowFate.OTHER_VALUES,
        11,
        99,
        10,
    )
    assert "id = 1: other value in n" in str(audit)
    told = audit.to_pandas()
    assert list(told["row"]) == ["missing", "unexpected"]


def test_unexplained_rows_are_reported_as_unexplained(engine: Engine) -> None:
    audit = audited(engine, [row for row in RIGHT if row[0] != 3])
    assert not audit.explanations
    assert "No known difference explains these rows" in str(audit)


def test_all_rows_are_counted_and_some_are_listed(engine: Engine) -> None:
    audit = engine.audit(
        "t", before=BEFORE, after=BEFORE[:0], statement=MERGE, namespace={"s": SOURCE}, rows=2
    )
    assert audit.counts.missing == 5
    assert audit.told == 2
    assert "and 3 rows more" in str(audit)


# -- explanations


def test_null_keys_that_match_are_recognized(engine: Engine) -> None:
    audit = audited(engine, [*(row for row in RIGHT if row[0] is not None), (None, "no", 47)])
    assert causes(audit) == [(Cause.NULL_KEYS, 3, 3)]
    assert "t.id IS NOT DISTINCT FROM s.id" in audit.explanations[0].statement
    assert audit.rows[0].causes == (Cause.NULL_KEYS,)


def test_an_unknown_condition_taken_as_true_is_recognized(engine: Engine) -> None:
    audit = audited(engine, [*RIGHT, (2, "bob", None)])
    assert (Cause.UNKNOWN, 1, 1) in causes(audit)


def test_two_clauses_in_the_other_order_are_recognized(engine: Engine) -> None:
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id > 0 THEN UPDATE SET n = 0 WHEN MATCHED AND s.id < 2 THEN DELETE"
    left = [(2, "bob", 0), (3, "cy", 30), (None, "no", 40)]
    audit = audited(engine, left, statement)
    assert (Cause.ORDER, 1, 1) in causes(audit)
    assert "clause 1 was evaluated before clause 0" in audit.explanations[0].sentence


def test_a_condition_that_was_not_applied_is_recognized(engine: Engine) -> None:
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.n > 7 THEN UPDATE SET n = 0"
    audit = audited(
        engine, [(1, "ann", 0), (2, "bob", 0), (3, "cy", 30), (None, "no", 40)], statement
    )
    assert causes(audit) == [(Cause.CONDITION, 4, 4)]
    assert {row.fate for row in audit.rows} == {RowFate.OTHER_VALUES}


@pytest.mark.parametrize(("name", "cause"), [("ANN", Cause.CASE), ("ann  ", Cause.PADDING)])
def test_keys_equal_only_in_the_other_engine_are_recognized(
    engine: Engine, name: str, cause: Cause
) -> None:
    source = pa.table({"id": pa.array([1], pa.int64()), "name": [name], "n": pa.array([5])})
    statement = (
        "MERGE INTO t USING s ON t.id = s.id AND t.name = s.name WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, s.n)"
    )
    left = [(1, "ann", 5), (2, "bob", 20), (3, "cy", 30), (None, "no", 40)]
    audit = audited(engine, left, statement, namespace={"s": source})
    assert causes(audit) == [(cause, 3, 3)]


@pytest.mark.parametrize(("n", "which"), [(1, "the first one wins"), (2, "the last one wins")])
def test_the_duplicate_rule_of_another_engine_is_recognized(
    engine: Engine, n: int, which: str
) -> None:
    source = pa.table({"id": pa.array([1, 1], pa.int64()), "n": pa.array([1, 2])})
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n"
    left = [(1, "ann", n), (2, "bob", 20), (3, "cy", 30), (None, "no", 40)]
    audit = audited(engine, left, statement, namespace={"s": source})
    assert causes(audit) == [(Cause.DUPLICATES, 1, 1)]
    assert which in str(audit)
    assert "Several source rows match 1 target row" in str(audit)


def test_moments_that_are_shifted_by_hours_are_recognized(engine: Engine) -> None:
    noon = dt.datetime(2026, 5, 1, 12)  # noqa: DTZ001 - a timestamp without a zone
    before = pa.table({"id": [1, 2], "at": pa.array([noon, noon], pa.timestamp("us"))})
    statement = "UPDATE t SET at = at + INTERVAL '1' DAY WHERE id = 1"
    left = [(1, noon + dt.timedelta(hours=26)), (2, noon)]
    audit = audited(engine, left, statement, before=before)
    assert causes(audit) == [(Cause.TIME_ZONE, 2, 2)]
    assert "by +2 hours" in str(audit)


FRACTIONS = pa.table(
    {
        "id": pa.array([1, 2, 7], pa.int64()),
        "n": pa.array([Decimal("9.5"), Decimal("-1.5"), Decimal("2.25")]),
    }
)


@pytest.mark.parametrize(
    ("clauses", "sentence"),
    [
        (
            "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'x', s.n)",
            "a value for an integer column was truncated",
        ),
        (
            "WHEN MATCHED THEN UPDATE SET n = CAST(s.n AS integer) WHEN NOT MATCHED THEN INSERT (name, id, n) VALUES ('x', s.id, CAST(s.n AS BIGINT))",
            "CAST to an integer truncated",
        ),
    ],
)
def test_fractions_that_are_cut_off_and_not_rounded_are_recognized(
    engine: Engine, clauses: str, sentence: str
) -> None:
    given = {"namespace": {"s": FRACTIONS}}
    statement = f"MERGE INTO t USING s ON t.id = s.id {clauses}"
    right = [(1, "ann", 10), (2, "bob", -2), (3, "cy", 30), (None, "no", 40), (7, "x", 2)]
    assert audited(engine, right, statement, **given).agrees
    audit = audited(engine, [(1, "ann", 9), (2, "bob", -1), *right[2:]], statement, **given)
    assert causes(audit) == [(Cause.FRACTIONS, 4, 4)]
    assert sentence in audit.explanations[0].sentence
    assert "truncate(s.n)" in audit.explanations[0].statement
    # A number that differs by two is unrelated.
    assert causes(audited(engine, [(1, "ann", 8), *right[1:]], statement, **given)) == []


def test_a_row_not_selected_by_where_is_reported_with_its_values(engine: Engine) -> None:
    before = pa.table({"id": [1, 2], "n": pa.array([None, 5], pa.int64())})
    audit = audited(engine, [], "DELETE FROM t WHERE n > 3", before=before)
    [row] = audit.rows
    assert row.where is not None
    assert row.where.answer is Answer.UNKNOWN
    assert "WHERE is unknown: n > 3, since t.n is NULL." in str(audit)
    assert causes(audit)[0] == (Cause.UNKNOWN, 1, 1)


@pytest.mark.parametrize("local_rows", [200_000, 0])
@pytest.mark.on_spark
def test_nested_values_moments_and_nan_are_compared_as_what_they_are(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, local_rows: int
) -> None:
    monkeypatch.setattr("rowmerge_nb.engine.reruns.audit.audited_tables.LOCAL_ROWS", local_rows)
    values: dict[str, Any] = {
        "at": pa.array([dt.datetime(2026, 5, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        "tm": pa.array([dt.time(1)], pa.time64("us")),
        "a": pa.array([[1, None]]),
        "m": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
        "r": pa.array([{"x": 1, "y": "z"}]),
        "f": pa.array([float("nan")]),
    }
    before = pa.table({"id": [1], **values})
    after = pa.table({"id": [2], **values})
    assert engine.audit(
        "t", before=before, after=after, statement="UPDATE t SET id = id + 1"
    ).agrees
    audit = engine.audit(
        "t", before=before, after=after, statement="UPDATE t SET id = id + 2 WHERE id = 1"
    )
    [row] = audit.rows
    assert row.fate is RowFate.OTHER_VALUES
    assert "other value in id\n" in str(audit)


# -- states


@pytest.fixture
def stores(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark=spark) as made:
        made.add_catalog("lake", IcebergConnector(tmp_path / "lake"))
        made.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
        made.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
        yield made


def filled(engine: Engine, name: str, more: str = "") -> None:
    engine.run(f"CREATE TABLE {name} (id bigint, v varchar) {more}")
    engine.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")


UPSERT = "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"


@pytest.mark.parametrize("catalog", ["memory", "lake"])
@pytest.mark.on_spark
def test_versions_of_a_store_are_audited_and_nothing_is_written(
    stores: Engine, catalog: str
) -> None:
    name, source = f"{catalog}.default.t", f"{catalog}.default.s"
    filled(stores, name)
    stores.run(f"CREATE TABLE {source} (id bigint, v varchar)")
    stores.run(f"INSERT INTO {source} VALUES (2, 'B'), (4, 'D')")
    statement = UPSERT.format(t=name, s=source)
    done = stores.run(statement)
    before, after = done.trace.target.version_before, done.trace.target.version_after
    assert stores.audit(name, before=before, after=after, statement=statement).agrees
    assert stores.audit(before=before, statement=statement).agrees
    wrong = stores.run(f"DELETE FROM {name} WHERE id = 4").trace.target.version_after
    assert stores.audit(before=before, after=after, statement=statement).agrees
    [row] = stores.audit(before=before, after=wrong, statement=statement).rows
    assert (row.key, row.fate) == ({"id": 4}, RowFate.NOT_THERE)
    assert stores.audit(before=before, statement=statement).counts.missing == 1
    assert stores.run(f"SELECT count(*) FROM {name}").to_pandas().iloc[0, 0] == 3


@pytest.mark.parametrize("catalog", ["memory", "lake"])
@pytest.mark.on_spark
def test_a_source_changed_since_is_read_in_its_former_state(stores: Engine, catalog: str) -> None:
    name, source = f"{catalog}.default.t", f"{catalog}.default.s"
    filled(stores, name)
    stores.run(f"CREATE TABLE {source} (id bigint, v varchar)")
    first = stores.run(f"INSERT INTO {source} VALUES (2, 'B')").trace.target.version_after
    statement = UPSERT.format(t=name, s=source)
    done = stores.run(statement).trace
    stores.run(f"DELETE FROM {source}")
    states = {
        "before": done.target.version_before,
        "after": done.target.version_after,
        "statement": statement,
    }
    audit = stores.audit(**states)
    assert audit.agrees
    assert f"{source} has changed since and is read as of" in audit.notices[0]
    assert stores.audit(**states, source={source: first}).agrees
    assert not stores.audit(**states, source={source: pa.table({"id": [2], "v": ["X"]})}).agrees


def test_a_source_without_versions_is_reported_as_read_in_its_current_state(stores: Engine) -> None:
    filled(stores, "memory.default.t")
    stores.run("CREATE TABLE lite.main.s (id bigint, v varchar)")
    statement = UPSERT.format(t="t", s="lite.main.s")
    done = stores.run(statement).trace
    audit = stores.audit(
        before=done.target.version_before, after=done.target.version_after, statement=statement
    )
    assert audit.notices == (
        (
            "lite.main.s is read as it is now: its store keeps no versions, so it may"
            " have changed since."
        ),
    )


@pytest.mark.on_spark
def test_tags_and_moments_name_states_of_iceberg_tables(stores: Engine) -> None:
    filled(stores, "lake.default.t")
    table = stores._catalogs.connectors["lake"].catalog.load_table(("default", "t"))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "before-it").commit()
    statement = "UPDATE lake.default.t SET v = 'z' WHERE id > 1"
    at = stores.run("SELECT current_timestamp").table.column(0)[0].as_py()
    stores.run(statement)
    assert stores.audit(before="before-it", statement=statement).agrees
    assert stores.audit(before=at, statement=statement).agrees
    audit = stores.audit(
        before="before-it", statement="UPDATE lake.default.t SET v = 'z' WHERE id > 2"
    )
    assert [(row.key, row.fate) for row in audit.rows] == [({"id": 2}, RowFate.OTHER_VALUES)]


@pytest.mark.on_spark
def test_two_full_rewrites_that_hold_the_same_rows_agree(stores: Engine) -> None:
    filled(stores, "lake.default.t")
    done = stores.run("UPDATE lake.default.t SET v = 'z' WHERE id > 1").trace
    catalog = stores._catalogs.connectors["lake"].catalog
    rows = stores.table("lake.default.t")
    catalog.load_table(("default", "t")).overwrite(rows.take([2, 0, 1]))
    audit = stores.audit(
        before=done.target.version_before,
        statement="UPDATE lake.default.t SET v = 'z' WHERE id > 1",
    )
    assert audit.agrees
    assert (audit.counts.removed, audit.counts.added) == (2, 2)


@pytest.mark.on_spark
def test_write_ids_name_states_of_hive_tables(stores: Engine) -> None:
    filled(stores, "hive.default.t")
    stores.run("DELETE FROM hive.default.t WHERE id = 1")
    stores.run("UPDATE hive.default.t SET v = 'z' WHERE id = 3")
    deleted = "DELETE FROM hive.default.t WHERE id = 1"
    assert stores.audit(before=1, after=2, statement=deleted).agrees
    assert not stores.audit(before=1, after=3, statement=deleted).agrees
    assert stores.audit(before=2, statement="UPDATE hive.default.t SET v = 'z' WHERE id > 2").agrees
    with pytest.raises(RowMergeError, match="Write id 9 of table") as caught:
        stores.audit(before=1, after=9, statement=deleted)
    assert (caught.value.code, caught.value.hint) == (
        "INVALID_ARGUMENTS",
        "The names of the table's delta folders have the write ids.",
    )
    with pytest.raises(RowMergeError, match="is older than the state before"):
        stores.audit(before=3, after=2, statement=deleted)


@pytest.mark.slow
@pytest.mark.on_spark
def test_large_tables_are_compared_in_tasks(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowmerge_nb.engine.reruns.audit.audited_tables.LOCAL_ROWS", 0)
    ids = pa.array(range(60_000), pa.int64())
    before = pa.table(
        {"id": ids, "n": ids, "text": pa.array([f"text of row {i}" for i in range(60_000)])}
    )
    source = pa.table(
        {"id": pa.array(range(59_000, 61_000), pa.int64()), "n": pa.array([1] * 2_000)}
    )
    statement = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    with Engine(spark=spark, rule_settings=RuleSettings(small_rows=0)) as engine:
        engine.register("t", before)
        engine.run(statement, namespace={"s": source})
        right = engine.table("t")
        audit = engine.audit(
            "t", before=before, after=right, statement=statement, namespace={"s": source}
        )
        assert audit.agrees
        assert audit.counts.after == 61_000
        rows = [row for row in right.to_pylist() if row["id"] != 60_500]
        rows[7]["n"] = -1
        audit = engine.audit(
            "t",
            before=before,
            after=pa.Table.from_pylist(rows, right.schema),
            statement=statement,
            namespace={"s": source},
        )
    assert (audit.counts.missing, audit.counts.unexpected) == (2, 1)
    told = {row.key["id"]: row for row in audit.rows}
    assert set(told) == {rows[7]["id"], 60_500}
    assert told[60_500].journeys[0].operation.name == "INSERT"


# -- refusals


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (
            {"before": 77},
            "INVALID_ARGUMENTS",
            "Version 77 of table 'default.t' is not retained",
            "keep_versions",
        ),
        ({"before": 1, "after": 99}, "INVALID_ARGUMENTS", "Version 99", "keep_versions"),
        ({"before": True}, "INVALID_ARGUMENTS", "before = True", "a version's number"),
        ({"before": 1.5}, "INVALID_ARGUMENTS", "before = 1.5", "a version's number"),
        (
            {"table": "u"},
            "INVALID_ARGUMENTS",
            "The statement changes memory.default.t, not memory.default.u",
            "memory.default.t",
        ),
        ({"table": 5}, "INVALID_ARGUMENTS", "table = 5", "the name of a table"),
        (
            {"statement": "SELECT 1"},
            "NOT_SUPPORTED",
            "An audit takes a MERGE, UPDATE or DELETE",
            "check_rows",
        ),
        (
            {"statement": "DELETE FROM t; DELETE FROM t"},
            "SYNTAX_ERROR",
            "this text has 2",
            "one by one",
        ),
        ({"statement": "DELETE t"}, "SYNTAX_ERROR", "mismatched input", None),
        ({"statement": 5}, "INVALID_ARGUMENTS", "statement = 5", "the text of"),
        (
            {"statement": "DELETE FROM nowhere.a.t"},
            "CATALOG_NOT_FOUND",
            "Catalog 'nowhere' does not exist",
            "There are: memory",
        ),
        (
            {"statement": "DELETE FROM nobody"},
            "TABLE_NOT_FOUND",
            "Table 'memory.default.nobody' does not exist",
            "name a table",
        ),
        (
            {"statement": "DELETE FROM t WHERE x = 1"},
            "COLUMN_NOT_FOUND",
            "Column 'x' cannot be resolved",
            None,
        ),
        (
            {"by": "nmae"},
            "INVALID_ARGUMENTS",
            "The table has no column 'nmae'",
            "Did you mean 'name'",
        ),
        ({"by": []}, "INVALID_ARGUMENTS", "by is of type list", "the name of a column"),
        ({"rows": 0}, "INVALID_ARGUMENTS", "rows = 0", "from 1"),
        (
            {"rehearse": True},
            "INVALID_ARGUMENTS",
            "An audit has no option 'rehearse'",
            "Omit rehearse",
        ),
        (
            {"duplicates": "standard"},
            "INVALID_ARGUMENTS",
            "An audit has no option 'duplicates'",
            "Omit duplicates",
        ),
        ({"colour": 1}, "INVALID_ARGUMENTS", "There is no option 'colour'", None),
        (
            {"source": {"nothing": 1}},
            "INVALID_ARGUMENTS",
            "The statement does not read table 'memory.default.nothing'",
            "names",
        ),
        ({"source": SOURCE}, "INVALID_ARGUMENTS", "Which table of the statement", "dictionary"),
        ({"source": 1.5}, "INVALID_ARGUMENTS", "source = 1.5", "a version's number"),
        (
            {"after": SOURCE.select(["id"])},
            "INVALID_ARGUMENTS",
            "have the columns id; the table has id, name, n",
            "all columns",
        ),
    ],
)
def test_wrong_arguments_are_reported_with_the_next_step(
    engine: Engine, arguments: dict[str, Any], code: str, message: str, hint: str | None
) -> None:
    engine.register("t", BEFORE)
    version = engine.run("DELETE FROM t WHERE id = 1").trace.target.version_before
    given = {"before": version, "statement": "DELETE FROM t WHERE id = 1", **arguments}
    if given["before"] == 1 and not isinstance(given["before"], bool):
        given["before"] = version
    with pytest.raises(RowMergeError) as caught:
        engine.audit(**given)
    assert caught.value.code == code
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


def test_states_in_the_wrong_order_are_refused(engine: Engine) -> None:
    engine.register("t", BEFORE)
    done = engine.run("DELETE FROM t WHERE id = 1").trace
    with pytest.raises(RowMergeError, match="is older than the state before") as caught:
        engine.audit(
            before=done.target.version_after,
            after=done.target.version_before,
            statement="DELETE FROM t WHERE id = 1",
        )
    assert caught.value.hint == "Give the older state as before, and the later one as after."


def test_states_with_other_columns_are_refused(stores: Engine) -> None:
    filled(stores, "lake.default.t")
    done = stores.run("DELETE FROM lake.default.t WHERE id = 1").trace
    with (
        stores._catalogs.connectors["lake"]
        .catalog.load_table(("default", "t"))
        .update_schema() as update
    ):
        update.rename_column("v", "w")
    after = stores.run("INSERT INTO lake.default.t VALUES (9, 'i')").trace.target.version_after
    with pytest.raises(RowMergeError, match="has different columns before") as caught:
        stores.audit(
            before=done.target.version_before,
            after=after,
            statement="DELETE FROM lake.default.t WHERE id = 1",
        )
    assert caught.value.code == "INVALID_ARGUMENTS"


def test_a_store_without_versions_is_refused(stores: Engine) -> None:
    stores.run("CREATE TABLE lite.main.t (id bigint)")
    with pytest.raises(RowMergeError, match="does not support versioned tables") as caught:
        stores.audit(before=1, statement="DELETE FROM lite.main.t")
    assert caught.value.code == "NOT_SUPPORTED"


def test_a_statement_that_fails_on_the_former_table_reports_it(engine: Engine) -> None:
    with pytest.raises(RowMergeError) as caught:
        audited(engine, [], "UPDATE t SET n = n / (id - id)")
    assert (caught.value.code, caught.value.line) == ("DIVISION_BY_ZERO", 1)


@pytest.mark.on_spark
def test_a_closed_engine_is_refused(spark: Any) -> None:
    made = Engine(spark=spark)
    made.close()
    with pytest.raises(RowMergeError, match="closed"):
        made.audit("t", before=BEFORE, after=BEFORE, statement="DELETE FROM t")


def test_time_dependent_functions_are_reported(engine: Engine) -> None:
    audit = audited(engine, [], "UPDATE t SET name = CAST(current_date AS varchar)")
    assert any("uses current_date" in notice for notice in audit.notices)


def test_a_report_is_readable_only_by_its_owner(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "audit.html"
    audited(engine, RIGHT[1:]).save_html(file)
    assert "DIFFERS" in file.read_text("utf-8")
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(RowMergeError):
        audited(engine, RIGHT).save_html(tmp_path / "no" / "audit.html")


def test_a_saved_audit_has_its_journeys_when_it_is_opened_again(
    engine: Engine, tmp_path: Path
) -> None:
    for wrong in (
        audited(engine, RIGHT[1:]),
        audited(engine, RIGHT, "UPDATE t SET n = 0 WHERE id > 1"),
    ):
        wrong.save(tmp_path / "t.audit")
        again = rm.load_audit(tmp_path / "t.audit")
        assert again == wrong
        assert str(again) == str(wrong)
    assert audited(engine, RIGHT[1:]).rows[0].journeys


def test_the_default_engine_audits(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    monkeypatch.setattr("rowmerge_nb.default.default_engine", lambda: engine)
    assert rm.audit(
        "t", before=BEFORE, after=BEFORE, statement="DELETE FROM t WHERE id > 100"
    ).agrees
