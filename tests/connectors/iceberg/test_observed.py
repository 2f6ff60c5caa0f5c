"""Reads for reports and checks take no part in the conflict check of a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.iceberg.iceberg_metadata import IcebergMetadata

pytestmark = pytest.mark.spark

MERGE_FRAME = "MERGE INTO t USING fresh s ON t.p = s.p AND t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'new' WHEN NOT MATCHED THEN INSERT VALUES (s.p, s.id, 'new')"
MERGE_VALUES = MERGE_FRAME.replace("fresh s", "(VALUES (1, 1), (1, 9)) s (p, id)")


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path))
    engine.run("CREATE TABLE t (p integer, id integer, v varchar) WITH (partitioning = ARRAY['p'])")
    engine.run("INSERT INTO t VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c'), (2, 2, 'd')")
    yield engine
    engine.close()


def run_beside(
    lake: Engine, monkeypatch: pytest.MonkeyPatch, statement: str, other: str, **options: Any
) -> list[Any]:
    """Run a statement, and another one between its finish call and its commit; return the remaining rows."""
    with monkeypatch.context() as patch:
        finish = IcebergMetadata.finish_merge

        def late(self: Any, *arguments: Any) -> None:
            finish(self, *arguments)
            patch.undo()
            lake.run(other)

        patch.setattr(IcebergMetadata, "finish_merge", late)
        lake.run(statement, **options)
    table = lake.run("SELECT p, id, v FROM t ORDER BY p, id").table
    assert table is not None
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("statement", "options"),
    [
        ("UPDATE t SET v = 'new' WHERE p = 1", {}),
        ("UPDATE t SET v = 'new' WHERE p = 1", {"check": True}),
        ("UPDATE t SET v = 'new' WHERE p = 1", {"record": True}),
        ("DELETE FROM t WHERE p = 1", {}),
        (MERGE_VALUES, {}),
        (MERGE_VALUES, {"near": True}),
        (MERGE_VALUES, {"check": True, "record": True, "near": True}),
        (MERGE_VALUES, {"trace": "off"}),
    ],
)
def test_a_statement_runs_beside_one_on_another_partition_despite_reports(
    lake: Engine, monkeypatch: pytest.MonkeyPatch, statement: str, options: dict[str, Any]
) -> None:
    rows = run_beside(
        lake, monkeypatch, statement, "UPDATE t SET v = 'other' WHERE p = 2", **options
    )
    assert [row for row in rows if row[0] == 2] == [(2, 1, "other"), (2, 2, "other")]
    assert ("a" in [v for _, _, v in rows]) is False


def test_a_merge_of_a_frame_runs_beside_a_statement_on_other_keys(
    lake: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    fresh = pandas.DataFrame({"p": [1, 1], "id": [1, 9]})
    rows = run_beside(
        lake, monkeypatch, MERGE_FRAME, "DELETE FROM t WHERE p = 2", namespace={"fresh": fresh}
    )
    assert rows == [(1, 1, "new"), (1, 2, "b"), (1, 9, "new")]


@pytest.mark.parametrize(
    "statement",
    ["UPDATE t SET v = 'new' WHERE p = 1", "UPDATE t SET v = 'new' WHERE v < 'zzz'", MERGE_VALUES],
)
def test_rows_read_by_the_statement_itself_still_count(
    lake: Engine, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    other = (
        "INSERT INTO t VALUES (1, 3, 'a')"
        if "zzz" not in statement
        else "INSERT INTO t VALUES (2, 3, 'a')"
    )
    with pytest.raises(RowMergeError, match="TRANSACTION_CONFLICT"):
        run_beside(
            lake,
            monkeypatch,
            statement,
            other.replace("(1, 3", "(1, 9") if "USING" in statement else other,
        )
