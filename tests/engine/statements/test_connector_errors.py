"""An error in a connector's code names its line, wherever it was raised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from tests.contract.developers_bugs import BUGS

pytestmark = pytest.mark.spark

UPDATE = "UPDATE shop.default.t SET name = 'x'"


def failure(spark: Any, bug: str, folder: Path) -> RowMergeError:
    engine = Engine(spark=spark)
    engine.add_catalog("shop", BUGS[bug]().make_connector(folder))
    engine.run("CREATE TABLE shop.default.t (id bigint, name varchar)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 'a')")
    with pytest.raises(RowMergeError) as failed:
        engine.run(UPDATE)
    assert engine.run("SELECT name FROM shop.default.t").table.to_pylist() == [{"name": "a"}]  # type: ignore[union-attr]
    return failed.value


@pytest.mark.parametrize(
    ("bug", "method"), [("ATypoInStoreMergedRows", "store_merged_rows"), ("ATypoInFinishMerge", "finish_merge")]
)
def test_the_line_of_the_connectors_own_code_is_told(spark: Any, bug: str, method: str, tmp_path: Path) -> None:
    error = failure(spark, bug, tmp_path)
    assert error.message.startswith(f"{method} failed: NameError")
    assert error.hint is not None
    assert f"developers_bugs.py, line {line_of(BUGS[bug].line)}, in {method}: `{BUGS[bug].line}" in error.hint
    assert " ".join(error.hint.split()) in " ".join(str(error.result).split())


def test_a_breakpoint_in_a_task_says_where_it_would_stop(spark: Any, tmp_path: Path) -> None:
    error = failure(spark, "ABreakpointInASink", tmp_path)
    assert (error.code, error.message.partition(":")[0]) == ("NOT_SUPPORTED", "breakpoint() cannot stop in a task")
    assert "%debug" in str(error.hint)
    assert "rowmerge_nb.replay" in str(error.hint)


def line_of(text: str) -> int:
    file = Path(__file__).parents[2] / "contract" / "developers_bugs.py"
    return 1 + next(index for index, line in enumerate(file.read_text().splitlines()) if line.strip().startswith(text))
