"""Branches of Iceberg in the extended dialect: rows are merged into one, inspected, and then published by a fast forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, MemoryConnector, RowMergeError, replay

pytestmark = pytest.mark.spark

NAME = "lake.default.t"
CREATE = f"CREATE BRANCH audit IN TABLE {NAME}"
MERGE = f"""MERGE INTO {NAME} @ audit t USING (VALUES (2, 'B'), (3, 'c')) s (id, v) ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"""
BEFORE = [(1, "a"), (2, "b")]
AFTER = [(1, "a"), (2, "B"), (3, "c")]


@pytest.fixture(params=[2, 3], ids=["version 2", "version 3"])
def engine(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    with Engine(spark=spark, dialect="extended") as result:
        result.add_catalog("lake", IcebergConnector(tmp_path / "lake"))
        result.run(
            f"CREATE TABLE {NAME} (id integer, v varchar) WITH (format_version = {request.param})"
        )
        result.run(f"INSERT INTO {NAME} VALUES (1, 'a'), (2, 'b')")
        yield result


def rows(engine: Engine, version: str = "") -> list[tuple[Any, ...]]:
    table = engine.run(f"SELECT * FROM {NAME} {version} ORDER BY id").table
    assert table is not None
    return [tuple(row.values()) for row in table.to_pylist()]


def refused(engine: Engine, sql: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, **options)
    return caught.value


def test_a_merge_changes_only_the_branch_until_the_fast_forward(engine: Engine) -> None:
    engine.run(CREATE)
    result = engine.run(MERGE, check=True)
    assert (result.count, result.trace.target.rows_before) == (2, 2)
    assert result.trace.checks.commit is not None
    assert result.trace.checks.commit.state == "agrees"
    assert f"{NAME} @ audit" in " ".join(str(result).split())
    audit = "FOR VERSION AS OF 'audit'"
    assert (rows(engine), rows(engine, audit)) == (BEFORE, AFTER)
    engine.run(f"INSERT INTO {NAME} @ audit VALUES (4, 'd')")
    engine.run(f"UPDATE {NAME} @ audit SET v = upper(v) WHERE id = 1")
    engine.run(f"DELETE FROM {NAME} @ audit WHERE id = 4")
    assert (rows(engine), rows(engine, audit)) == (BEFORE, [(1, "A"), *AFTER[1:]])
    engine.run(f"ALTER BRANCH main IN TABLE {NAME} FAST FORWARD TO audit")
    assert rows(engine) == [(1, "A"), *AFTER[1:]]
    engine.run(f"DROP BRANCH audit IN TABLE {NAME}")
    assert refused(engine, MERGE).code == "BRANCH_NOT_FOUND"
    assert engine.run(f"INSERT INTO {NAME} VALUES (9, 'z')").count == 1


def test_an_outdated_branch_does_not_become_main(engine: Engine) -> None:
    engine.run(CREATE)
    engine.run(f"INSERT INTO {NAME} VALUES (7, 'g')")
    engine.run(MERGE)
    error = refused(engine, f"ALTER BRANCH main IN TABLE {NAME} FAST FORWARD TO audit")
    assert (error.code, error.changed) == ("INVALID_ARGUMENTS", False)
    assert rows(engine) == [*BEFORE, (7, "g")]
    engine.run(f"CREATE OR REPLACE BRANCH audit IN TABLE {NAME}")
    engine.run(MERGE)
    engine.run(f"ALTER BRANCH main IN TABLE {NAME} FAST FORWARD TO audit")
    assert rows(engine) == [*AFTER, (7, "g")]


def test_errors_of_branches_are_reported(engine: Engine) -> None:
    engine.run(f"{CREATE} FROM main")
    assert refused(engine, CREATE).code == "BRANCH_ALREADY_EXISTS"
    engine.run(CREATE.replace("BRANCH", "BRANCH IF NOT EXISTS"))
    engine.run(f"DROP BRANCH IF EXISTS other IN TABLE {NAME}")
    missing = refused(engine, MERGE.replace("@ audit", "@ audti"))
    assert (missing.code, missing.line) == ("BRANCH_NOT_FOUND", 1)
    assert missing.hint == "Did you mean 'audit'?"
    assert refused(engine, f"DROP BRANCH main IN TABLE {NAME}").code == "INVALID_ARGUMENTS"
    engine.run("CREATE TABLE m (id integer)")
    assert refused(engine, "CREATE BRANCH b IN TABLE m").code == "NOT_SUPPORTED"
    assert refused(engine, "INSERT INTO m @ b VALUES 1").code == "BRANCH_NOT_FOUND"


@pytest.mark.parametrize(
    ("statement", "code", "message"),
    [
        (MERGE, "BRANCH_NOT_FOUND", "Branch 'audit' does not exist"),
        (CREATE, "NOT_SUPPORTED", "This connector does not support creating branches"),
        (f"{CREATE} FROM b", "BRANCH_NOT_FOUND", "Branch 'b' does not exist"),
        (f"DROP BRANCH audit IN TABLE {NAME}", "BRANCH_NOT_FOUND", "Branch 'audit' does not exist"),
        (
            f"ALTER BRANCH main IN TABLE {NAME} FAST FORWARD TO audit",
            "BRANCH_NOT_FOUND",
            "Branch 'main' does not exist",
        ),
    ],
)
def test_no_connector_has_branches_in_trinos_dialect(
    engine: Engine, statement: str, code: str, message: str
) -> None:
    engine.run(CREATE)
    error = refused(engine, statement, dialect="trino")
    assert (error.code, error.message) == (code, message)
    assert (error.line, error.column) == ((1, 1) if code == "BRANCH_NOT_FOUND" else (None, None))
    assert "--dialect extended" in str(error.hint)
    missing = refused(engine, statement.replace(NAME, "lake.default.u"), dialect="trino")
    assert (missing.code, missing.line, missing.column) == ("TABLE_NOT_FOUND", 1, 1)


def test_branches_are_listed(engine: Engine) -> None:
    def listed(sql: str, **options: Any) -> list[dict[str, str]]:
        table = engine.run(sql, **options).table
        assert table is not None
        found: list[dict[str, str]] = table.to_pylist()
        return found

    engine.run(CREATE)
    assert listed(f"SHOW BRANCHES FROM TABLE {NAME}") == [{"Branch": "audit"}, {"Branch": "main"}]
    assert listed(f"SHOW BRANCHES IN TABLE {NAME}", dialect="trino") == []
    engine.run("CREATE TABLE m (id integer)")
    assert listed("SHOW BRANCHES IN TABLE m") == []
    error = refused(engine, "SHOW BRANCHES FROM TABLE nosuch")
    assert (error.code, error.line, error.column) == ("TABLE_NOT_FOUND", 1, 1)
    # Like Trino 483.
    for quiet in (
        f"ALTER BRANCH main IN TABLE {NAME} FAST FORWARD TO main",
        f"DROP BRANCH IF EXISTS audit IN TABLE {NAME}",
    ):
        engine.run(quiet, dialect="trino")
    assert len(listed(f"SHOW BRANCHES FROM TABLE {NAME}")) == 2


def test_undo_does_not_undo_changes_of_a_branch(engine: Engine) -> None:
    engine.run(CREATE)
    engine.run(MERGE)
    error = refused_call(engine.undo)
    assert (error.code, error.changed) == ("NOT_SUPPORTED", False)
    assert error.message == (
        f"The last change was the MERGE of 2 rows in branch 'audit' of '{NAME}', and"
        " undo does not change branches"
    )
    assert "CREATE OR REPLACE BRANCH" in str(error.hint)
    assert (rows(engine), rows(engine, "FOR VERSION AS OF 'audit'")) == (BEFORE, AFTER)
    # A fast forward makes it a change of the table.
    engine.run(f"ALTER BRANCH main IN TABLE {NAME} FAST FORWARD TO audit")
    engine.run(f"INSERT INTO {NAME} VALUES (9, 'z')")
    engine.undo(NAME)
    assert rows(engine) == AFTER
    engine.undo(NAME)
    assert rows(engine) == BEFORE


def test_statements_on_a_copy_are_refused_and_others_use_the_branch(engine: Engine) -> None:
    engine.run(CREATE)
    engine.run(f"DELETE FROM {NAME} @ audit WHERE id = 1")
    result = engine.run(MERGE, rehearse=True)
    assert result.count == 2
    verified = engine.run(MERGE, verify="duckdb", dry_run=False, rehearse=True)
    assert "the statement changes branch 'audit', and it has no branches" in " ".join(
        str(verified).split()
    )
    for ask in (
        lambda: result.what_if(dialect="trino"),
        lambda: engine.compare(MERGE, by="paradigms"),
        lambda: engine.compare(MERGE, by="stores", stores=["memory"]),
        lambda: engine.compare(MERGE, by="catalogs", catalogs=["memory", "lake"]),
    ):
        error = refused_call(ask)
        assert (error.code, error.changed) == ("NOT_SUPPORTED", False)
        assert f"'audit' is a branch of {NAME}" in error.message
    layouts = refused_call(lambda: engine.layouts(None, MERGE))
    assert (layouts.code, layouts.message) == (
        "NOT_SUPPORTED",
        f"A comparison of layouts counts the files of the table, and 'audit' is a branch of {NAME}",
    )
    lab = refused_call(lambda: engine.lab(MERGE.replace("(VALUES (2, 'B'), (3, 'c'))", "changes")))
    assert (lab.code, "lack its branch 'audit'" in lab.message) == ("NOT_SUPPORTED", True)
    assert engine.compare(MERGE, by="duplicates").same
    assert (rows(engine), rows(engine, "FOR VERSION AS OF 'audit'")) == (BEFORE, BEFORE[1:])


def refused_call(ask: Callable[[], Any]) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        ask()
    return caught.value


def test_concurrent_changes_of_the_branch_are_a_conflict(engine: Engine, tmp_path: Path) -> None:
    engine.run(CREATE)
    error = refused(engine, MERGE, fault="commit")
    assert error.changed is False
    assert rows(engine, "FOR VERSION AS OF 'audit'") == BEFORE
    # A commit to the table is not one to the branch.
    engine.run(f"DELETE FROM {NAME} WHERE id = 2")
    engine.run(MERGE)
    assert (rows(engine), rows(engine, "FOR VERSION AS OF 'audit'")) == ([(1, "a")], AFTER)
    # A statement may read the table and change the branch.
    engine.run(
        f"MERGE INTO {NAME} @ audit t USING {NAME} s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert rows(engine, "FOR VERSION AS OF 'audit'") == [(1, "a")]
    evolving = MERGE.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO")
    evolving = (
        evolving.replace("'B'", "'B', 1")
        .replace("'c')", "'c', 2)")
        .replace("(id, v)", "(id, v, w)")
    )
    evolving = evolving[: evolving.index("WHEN MATCHED")] + "WHEN NOT MATCHED THEN INSERT *"
    engine.run(evolving)


def test_an_audit_names_the_branch_as_a_state(engine: Engine) -> None:
    engine.run(CREATE)
    before = engine.run(MERGE).version_before
    error = refused_call(lambda: engine.audit(statement=MERGE, before=before))
    assert (error.code, error.line, error.column) == ("NOT_SUPPORTED", 1, MERGE.index("audit") + 1)
    assert "after='audit'" in str(error.hint)
    audited = engine.audit(statement=MERGE.replace(" @ audit", ""), before=before, after="audit")
    assert not audited.rows
    engine.run(f"UPDATE {NAME} @ audit SET v = 'other' WHERE id = 3")
    audited = engine.audit(statement=MERGE.replace(" @ audit", ""), before=before, after="audit")
    assert len(audited.rows) == 1


def test_a_record_of_a_change_of_a_branch_is_replayed(engine: Engine) -> None:
    engine.run(CREATE)
    result = engine.run(MERGE, record=True)
    assert replay(result.record(), MemoryConnector()).error is None
    assert "(2, 'B')" in str(result.why(id=2)) or "B" in str(result.why(id=2))
