"""Queries and Trino's results, in data files: ``query => rows`` or ``query !! CODE line:column words of the message``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowmerge_nb import Engine, RowMergeError
from tests.case_lines import sample

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.spark, pytest.mark.each_case]

FOLDER = Path(__file__).parent / "query_cases"
TABLE = """
CREATE TABLE t (id integer, k bigint, v varchar, x double, d date, ts timestamp(3), tz timestamp(3) with time zone, ai array(integer));
INSERT INTO t VALUES
    (1, 10, 'a', 1.5E0, DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-01 10:00:00 UTC', ARRAY[1, 2]),
    (2, 10, 'b', nan(), DATE '2024-01-02', NULL, NULL, ARRAY[3]),
    (3, 20, 'b', -0E0, DATE '2024-01-04', TIMESTAMP '2024-01-01 11:00:00', TIMESTAMP '2024-01-01 11:00:00 UTC', ARRAY[]),
    (4, 20, NULL, NULL, NULL, NULL, NULL, NULL)
"""


def _cases() -> Iterator[tuple[str, str, str]]:
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            query, kind, expected = re.split(r" (=>|!!) ", line, maxsplit=1)
            yield query, kind, expected.strip()


CASES = list(_cases())


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as found:
        found.run_script(TABLE)
        yield found


@pytest.mark.parametrize(
    ("query", "expected"),
    sample((q, x) for q, kind, x in CASES if kind == "=>"),
    ids=lambda text: text[:60],
)
def test_a_query_returns_trinos_rows(engine: Engine, query: str, expected: str) -> None:
    table = engine.run(query).table
    assert table is not None
    assert (
        str(
            [
                tuple(row.values())
                for row in table.rename_columns(
                    [str(i) for i in range(table.num_columns)]
                ).to_pylist()
            ]
        )
        == expected
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    sample((q, x) for q, kind, x in CASES if kind == "!!"),
    ids=lambda text: text[:60],
)
def test_a_query_fails_with_trinos_code_and_position(
    engine: Engine, query: str, expected: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(query)
    error = caught.value
    assert f"{error.code} {error.line}:{error.column} {error.message}".startswith(expected)
