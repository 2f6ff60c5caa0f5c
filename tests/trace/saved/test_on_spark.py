"""A saved trace opens without Spark and draws the same report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import Engine, RowMergeError, load_trace, save_trace
from rowmerge_nb.demo import SETUP, STATEMENT
from rowmerge_nb.report.bundle import mime_bundle

if TYPE_CHECKING:
    from pathlib import Path


def test_a_saved_trace_draws_the_same_report(spark: Any, tmp_path: Path) -> None:
    engine = Engine(spark=spark)
    engine.run_script(SETUP)
    trace = engine.run(STATEMENT).trace
    save_trace(trace, tmp_path / "trace.json")
    assert mime_bundle(load_trace(tmp_path / "trace.json")) == mime_bundle(trace)


def test_the_trace_of_a_failure_keeps_the_duplicates(spark: Any, tmp_path: Path) -> None:
    engine = Engine(spark=spark)
    engine.run_script(SETUP)
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO accounts t USING monthly_accounts_update s ON t.purchases < s.purchases WHEN MATCHED THEN DELETE"
        )
    trace = caught.value.result.trace
    save_trace(trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json").join.duplicate_groups == trace.join.duplicate_groups


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"format": "x"}')
    for name in ("other.json", "missing.json"):
        with pytest.raises(RowMergeError, match="cannot be opened as a trace"):
            load_trace(tmp_path / name)
