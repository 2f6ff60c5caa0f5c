"""A statement whose commit follows that of another process undoes, counts and compares only its own change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from proof.trials.local_spark import LocalEngine, without_spark
from rowmerge_nb import IcebergConnector
from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
from tests.connectors.iceberg.kit import contents, insert, table

CLAUSES = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
STATEMENTS = {
    "insert": ("INSERT INTO t VALUES (3, 'b')", [1, 2, 3, 9], [1, 2, 9]),
    "update": ("UPDATE t SET v = 'z' WHERE id = 1", [1, 2, 9], [1, 2, 9]),
    "delete": ("DELETE FROM t WHERE id = 1", [2, 9], [1, 2, 9]),
    "merge": (
        f"MERGE INTO t USING news s ON t.id = s.id {CLAUSES}",
        [1, 2, 5, 9],
        [1, 2, 9],
    ),
    "truncate": ("TRUNCATE TABLE t", [], [1, 2, 9]),
}

NEWS = pa.table({"id": [1, 5], "v": ["m", "n"]})


def open_engine(path: Path) -> LocalEngine:
    engine = LocalEngine(catalog="lake", schema="default")
    engine.add_catalog("lake", IcebergConnector(path))
    return engine


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    with without_spark():
        yield tmp_path / "w"


@pytest.fixture
def other(path: Path) -> Iterator[IcebergConnector]:
    """A connector of another process to the same warehouse."""
    store = IcebergConnector(path)
    yield store
    store.close()


@pytest.fixture
def engine(path: Path) -> Iterator[LocalEngine]:
    engine = open_engine(path)
    yield engine
    engine.close()


def ids(store: IcebergConnector) -> list[int]:
    return [row[0] for row in contents(store)]


def overtake(monkeypatch: pytest.MonkeyPatch, moment: str, change: Callable[[], None]) -> None:
    """Let another process change the table once: before a statement's commit, or during the call of the catalog."""
    kind, name = (
        (IcebergConnector, "commit")
        if moment == "before the commit"
        else (EmbeddedCatalog, "commit_table")
    )
    whole: Any = getattr(kind, name)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(kind, name, whole)
        change()
        return whole(*arguments)

    monkeypatch.setattr(kind, name, late)


@pytest.mark.each_value
@pytest.mark.parametrize("moment", ["before the commit", "in the commit"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_overtaken_statement_reports_and_undoes_only_its_own_change(
    engine: LocalEngine,
    other: IcebergConnector,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    moment: str,
) -> None:
    engine.run("CREATE TABLE t (id bigint, v varchar)")
    engine.run("INSERT INTO t VALUES (1, 'a'), (2, 'a')")
    text, after, undone = STATEMENTS[statement]
    overtake(monkeypatch, moment, lambda: insert(other, {"id": [9], "v": ["o"]}))
    result = engine.run(
        text, check=None if statement == "truncate" else True, namespace={"news": NEWS}
    )
    snapshot = table(other).metadata.snapshot_by_id(result.version_after)
    assert result.version_before == snapshot.parent_snapshot_id
    assert ids(other) == after
    if statement != "truncate":
        assert result.trace.target.rows_before == 3
        # The connector does not count in the presence of delete files.
        assert result.trace.target.rows_after == (4 if statement == "insert" else None)
        assert result.trace.checks.commit is not None
        assert result.trace.checks.commit.wrong == 0, result.trace.checks.commit.message
        assert ("the store holds" in result.trace.checks.commit.message) == (statement == "insert")
        assert "but the connector counts" not in str(result)
    engine.undo("t")
    assert ids(other) == undone
    assert (9, "o") in contents(other)
