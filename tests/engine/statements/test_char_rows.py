"""Rows of columns of type char, and computed rows of VALUES, are found as written."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.engine.api.result import Result

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def result(spark: Any) -> Result:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t (id bigint, c char(5))")
    engine.run("INSERT INTO t VALUES (1, 'ab'), (2, 'cd'), (3, 'ef')")
    return engine.run(
        """MERGE INTO t USING (VALUES (1, CAST('AB' AS char(5))), (2, CAST('cd ' AS char(5))), (CAST('7' AS integer), CAST('x' AS char(5)))) s (id, c)
        ON t.c = s.c WHEN MATCHED THEN UPDATE SET id = 9""",
        rehearse=True,
    )


def test_why_finds_a_char_without_its_padding(result: Result) -> None:
    assert [row.source_row for row in result.why(c="cd")] == [1]
    assert [row.target for row in result.why(c="ef")] == [{"id": 3, "c": "ef   "}]
    assert list(result.why(c="cd   ")) == list(result.why(c="cd"))


def test_near_finds_a_char_without_its_blanks(result: Result) -> None:
    assert "'AB'" in str(result.near(c="ab"))
    assert "'ab'" in str(result.near(c="AB   "))


def test_other_texts_are_not_found(result: Result) -> None:
    with pytest.raises(RowMergeError, match="None of the 3 rows"):
        result.why(c=" cd")


def test_rows_of_values_that_are_computed_are_numbered_by_their_position(result: Result) -> None:
    assert [row.source_row for row in result.why()] == [0, 1, 2]
    assert result.why(2)[0].source == {"id": 7, "c": "x    "}
