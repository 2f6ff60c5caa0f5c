"""Branches of Iceberg in the extended dialect: rows are merged into one, looked at, and then taken over by a fast forward."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError

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


def test_a_merge_changes_the_branch_alone_until_the_fast_forward(engine: Engine) -> None:
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


def test_a_branch_that_was_left_behind_is_not_taken_over(engine: Engine) -> None:
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


def test_what_is_wrong_is_said(engine: Engine) -> None:
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


def test_in_trinos_dialect_no_connector_has_branches(engine: Engine) -> None:
    engine.run(CREATE)
    missing = refused(engine, MERGE, dialect="trino")
    assert (missing.code, missing.line, missing.column) == ("BRANCH_NOT_FOUND", 1, 1)
    other = refused(engine, CREATE, dialect="trino")
    assert other.code == "NOT_SUPPORTED"
    assert other.message == "This connector does not support creating branches"
    assert "--dialect extended" in str(missing.hint)
    assert "--dialect extended" in str(other.hint)


def test_concurrent_changes_of_the_branch_are_a_conflict(engine: Engine, tmp_path: Path) -> None:
    engine.run(CREATE)
    error = refused(engine, MERGE, fault="commit")
    assert error.changed is False
    assert rows(engine, "FOR VERSION AS OF 'audit'") == BEFORE
    # A commit to the table is none to the branch.
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
