"""CHECK constraints reported by a connector: in every form, a row that violates one ends the statement and leaves the table unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, Result, RowMergeError, load_trace, save_trace
from rowmerge_nb.plan.rules import RULES
from tests.engine.statements.test_physical_forms import FORMS, made

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CHECK = "v > 0 AND x <> 100"
WRITTEN = "Check constraint violation: ((v > 0) AND (x <> 100))"
BREAKING = [
    "UPDATE t SET v = v - 40 WHERE id > 1",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v - 2 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.part, s.v, 1e2)",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED BY SOURCE AND t.id = 6 THEN UPDATE SET v = 0",
]
FINE = [
    "UPDATE t SET v = v + 1 WHERE x <> 100",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = NULL, x = NULL WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
]


def failed(engine: Engine, statement: str, **options: Any) -> RowMergeError:
    before = sorted(map(repr, engine.table("t").to_pylist()))
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement, **options)
    assert sorted(map(repr, engine.table("t").to_pylist())) == before
    assert caught.value.changed is False
    return caught.value


@pytest.mark.parametrize("form", [form for form in FORMS if form != "one task"])
@pytest.mark.parametrize("statement", BREAKING)
def test_every_form_refuses_a_row_that_breaks_a_constraint_and_names_it(
    spark: Any, statement: str, form: str
) -> None:
    told = set()
    era = "current" if "BY SOURCE" in statement else "documents"
    for name in ("one task", form):
        engine = made(spark, name, table={"check_constraints": [CHECK]}, era=era)
        error = failed(engine, statement)
        assert (error.code, error.message) == ("CONSTRAINT_VIOLATION", WRITTEN)
        at = error.line, error.column, error.length
        assert at == (1, 1, 1) or statement[error.shown.start :].startswith("t ")
        assert "It happened in a row for t. The first such row has new.id = " in str(error.hint)
        told.add((error.line, error.column))
    assert len(told) == 1


@pytest.mark.parametrize("form", FORMS)
def test_rows_for_which_it_is_true_or_unknown_are_stored(spark: Any, form: str) -> None:
    engine = made(spark, form, table={"check_constraints": [CHECK]})
    for statement in FINE:
        engine.run(statement)
    # NULL AND false is false.
    assert failed(engine, "UPDATE t SET v = NULL, x = 100").code == "CONSTRAINT_VIOLATION"


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    engine.register(
        "t",
        pa.table({"id": [1, 2, 3], "qty": [5, None, 7]}),
        check_constraints=["qty >= 0", "id < 100"],
        primary_key=["id"],
    )
    return engine


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("INSERT INTO t VALUES (4, 1), (5, -1)", "new.id = 5, new.qty = -1"),
        ("INSERT INTO t SELECT id + 3, -qty FROM t", "new.id = 4, new.qty = -5"),
        ("INSERT INTO t (id) SELECT id + 97 FROM t", "new.id = 100, new.qty = NULL"),
        ("UPDATE t SET qty = qty - 6", "new.id = 1, new.qty = -1"),
    ],
)
def test_insert_and_update_name_the_row_and_leave_the_table(
    engine: Engine, statement: str, row: str
) -> None:
    error = failed(engine, statement)
    assert error.code == "CONSTRAINT_VIOLATION"
    assert error.message in {
        "Check constraint violation: (qty >= 0)",
        "Check constraint violation: (id < 100)",
    }
    assert f"It happened in a row for t. The first such row has {row}." in str(error.hint)


def test_the_older_flow_asks_the_constraints_of_its_new_rows(engine: Engine) -> None:
    error = failed(engine, "UPDATE t SET qty = qty - 6 WHERE id > 0", flow="updatable")
    assert (error.code, error.message) == (
        "CONSTRAINT_VIOLATION",
        "Check constraint violation: (qty >= 0)",
    )
    assert "The first such row has new.id = 1, new.qty = -1." in str(error.hint)
    assert (
        failed(engine, "UPDATE t SET id = id + 98", flow="updatable").message
        == "Check constraint violation: (id < 100)"
    )
    assert engine.run("UPDATE t SET qty = NULL WHERE id = 1", flow="updatable").count == 1


def test_existing_rows_are_not_checked_and_can_be_deleted(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("t", pa.table({"id": [1, 2], "qty": [-5, 7]}), check_constraints="qty >= 0")
    assert engine.run("DELETE FROM t WHERE id = 1").count == 1
    engine.register("t", pa.table({"id": [1, 2], "qty": [-5, 7]}), check_constraints="qty >= 0")
    merge = "MERGE INTO t USING (VALUES 1) AS s (id) ON t.id = s.id WHEN MATCHED THEN "
    assert engine.run(f"{merge} DELETE").count == 1
    engine.register("t", pa.table({"id": [1, 2], "qty": [-5, 7]}), check_constraints="qty >= 0")
    assert failed(engine, f"{merge} UPDATE SET id = 9").code == "CONSTRAINT_VIOLATION"


def test_only_rows_that_a_clause_takes_are_checked(engine: Engine) -> None:
    """A clause that would violate the constraint for a row taken by another clause violates nothing."""
    merge = (
        "MERGE INTO t USING (VALUES 1, 3) AS s (id) ON t.id = s.id "
        "WHEN MATCHED AND s.id = 1 THEN UPDATE SET qty = t.qty - 5 WHEN MATCHED THEN UPDATE SET qty = t.qty - 7"
    )
    for off in (frozenset(), frozenset({"change_in_task"}), frozenset(RULES)):
        assert engine.run(merge, rules_off=off, rehearse=True).counts["UPDATE"] == 2


def test_a_constraint_is_checked_for_the_rows_of_create_table_as(spark: Any) -> None:
    engine = Engine(spark=spark)
    create = "CREATE TABLE made WITH (check_constraints = ARRAY['n > 0']) AS SELECT {} AS n"
    with pytest.raises(RowMergeError, match=r"Check constraint violation: \(n > 0\)"):
        engine.run(create.format(-1))
    assert "made" not in engine.names("memory", "default")
    assert engine.run(create.format(1)).count == 1


def test_a_constraint_of_create_table_as_may_ask_a_query(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("k", pa.table({"id": [1, 2]}))
    create = "CREATE TABLE made WITH (check_constraints = ARRAY['n IN (SELECT id FROM k)']) AS SELECT {} AS n"
    with pytest.raises(RowMergeError, match=r"Check constraint violation: "):
        engine.run(create.format(3))
    assert "made" not in engine.names("memory", "default")
    assert engine.run(create.format("id", 1).replace("AS n", "AS n FROM k")).count == 2


def test_an_insert_may_ask_a_query_and_update_and_merge_may_not(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("least", pa.table({"n": [10]}))
    engine.register(
        "t", pa.table({"id": [11]}), check_constraints="id > (SELECT max(n) FROM least)"
    )
    assert engine.run("INSERT INTO t VALUES 12").count == 1
    assert failed(engine, "INSERT INTO t VALUES 9").code == "CONSTRAINT_VIOLATION"
    for statement in (
        "UPDATE t SET id = 20",
        "MERGE INTO t USING least ON false WHEN NOT MATCHED THEN INSERT VALUES (n)",
    ):
        error = failed(engine, statement)
        assert (error.code, error.message) == (
            "UNSUPPORTED_SUBQUERY",
            "Subqueries are not currently supported in CHECK constraints",
        )


def test_a_constraint_that_pages_cannot_compute_uses_sparks_operators(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register(
        "t", pa.table({"id": [1], "s": ["a"]}), check_constraints="soundex(s) <> 'X000'"
    )
    plan = engine.run("UPDATE t SET s = 'x'", dry_run=True).trace.plan
    assert any("Spark's operators execute" in detail for node in plan for detail in node.details)
    assert (
        failed(engine, "UPDATE t SET s = 'x'").message
        == "Check constraint violation: (soundex(s) <> 'X000')"
    )
    assert engine.run("UPDATE t SET s = 'b'").count == 1
    error = failed(engine, "UPDATE t SET s = 'b'", flow="updatable")
    assert error.code == "NOT_SUPPORTED"


def test_undo_versions_comparisons_and_saved_traces_know_them(
    engine: Engine, tmp_path: Path
) -> None:
    engine.run("UPDATE t SET qty = 0 WHERE id = 1")
    engine.undo("t")
    assert engine.table("t").column("qty").to_pylist() == [5, None, 7]
    assert engine.compare("UPDATE t SET qty = 1", by="flows").same
    with pytest.raises(RowMergeError, match="Check constraint violation"):
        engine.run("UPDATE t SET qty = 1", rehearse=True).what_if("UPDATE t SET qty = -1")
    with pytest.raises(RowMergeError) as caught:
        engine.run("UPDATE t SET qty = -1", trace="full")
    result = caught.value.result
    assert isinstance(result, Result)
    save_trace(result.trace, tmp_path / "failed.json")
    opened = load_trace(tmp_path / "failed.json")
    assert opened == result.trace
    assert "Check constraint violation: (qty >= 0)" in str(Result(opened))
    assert "CheckConstraints" in {node.kind for node in opened.plan}


def test_a_second_engine_agrees_with_rows_that_are_stored(engine: Engine) -> None:
    result = engine.run("UPDATE t SET qty = qty + 1", verify="duckdb", check=True)
    assert result.verification is not None
    assert "agrees" in str(result.verification)


@pytest.mark.parametrize(
    ("statement", "code", "message", "column"),
    [
        (
            "CREATE TABLE made (n bigint) WITH (check_constraints = ARRAY['m > 0'])",
            "COLUMN_NOT_FOUND",
            "Invalid check constraint for 'memory.default.made': Column 'm' cannot be resolved",
            1,
        ),
        (
            "CREATE TABLE made WITH (check_constraints = ARRAY['n >']) AS SELECT 1 AS n",
            "INVALID_CHECK_CONSTRAINT",
            "Invalid check constraint for 'memory.default.made': mismatched input '<EOF>'.",
            1,
        ),
        (
            "ALTER TABLE t SET PROPERTIES check_constraints = ARRAY['qty + 1']",
            "TYPE_MISMATCH",
            "Expected check constraint for 'memory.default.t' to be of type BOOLEAN, but was bigint",
            1,
        ),
        (
            "ALTER TABLE t RENAME COLUMN qty TO quantity",
            "COLUMN_NOT_FOUND",
            "Invalid check constraint for 'memory.default.t': Column 'qty' cannot be resolved",
            1,
        ),
        (
            "ALTER TABLE t DROP COLUMN qty",
            "COLUMN_NOT_FOUND",
            "Invalid check constraint for 'memory.default.t': Column 'qty' cannot be resolved",
            1,
        ),
        (
            "CREATE TABLE made (n bigint) WITH (check_constraints = 5)",
            "INVALID_TABLE_PROPERTY",
            "Invalid value for table property",
            36,
        ),
    ],
)
def test_a_definition_whose_constraints_cannot_be_read_is_refused_and_changes_nothing(
    engine: Engine, statement: str, code: str, message: str, column: int
) -> None:
    before = engine.run("SHOW CREATE TABLE t").explained
    error = failed(engine, statement)
    assert (error.code, error.line, error.column) == (code, 1, column)
    assert error.message.startswith(message)
    assert error.hint
    assert engine.run("SHOW CREATE TABLE t").explained == before
    assert "made" not in engine.names("memory", "default")


def test_constraints_are_a_property_of_the_table_that_can_be_set_and_removed(
    engine: Engine,
) -> None:
    assert "check_constraints = ARRAY['qty >= 0', 'id < 100']" in str(
        engine.run("SHOW CREATE TABLE t").explained
    )
    engine.run("ALTER TABLE t SET PROPERTIES check_constraints = DEFAULT")
    assert engine.run("UPDATE t SET qty = -1").count == 3
    engine.run("ALTER TABLE t SET PROPERTIES check_constraints = ARRAY['qty <> -1']")
    assert (
        failed(engine, "INSERT INTO t VALUES (9, -1)").message
        == "Check constraint violation: (qty <> -1)"
    )
    engine.run("ALTER TABLE t RENAME TO u")
    with pytest.raises(RowMergeError, match="Check constraint violation"):
        engine.run("INSERT INTO u VALUES (9, -1)")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("nonsense(", "INVALID_CHECK_CONSTRAINT"),
        (["qty > 0", "no_such > 0"], "COLUMN_NOT_FOUND"),
        (["random() > 0"], "INVALID_CHECK_CONSTRAINT"),
        (5, "INVALID_ARGUMENTS"),
        ([5], "INVALID_ARGUMENTS"),
    ],
)
def test_register_refuses_invalid_constraints(engine: Engine, given: Any, code: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.register("r", pa.table({"qty": [1]}), check_constraints=given)
    assert caught.value.code == code
    assert "r" not in engine.names("memory", "default")
    engine.register("r", pa.table({"qty": [1]}), check_constraints=["qty > 0"])
    engine.register("r", pa.table({"qty": [1]}))
    assert "check_constraints" not in str(engine.run("SHOW CREATE TABLE r").explained)
