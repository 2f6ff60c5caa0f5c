"""Upper bounds of the rows of queries: unions add, joins multiply, limits cut."""

from __future__ import annotations

import pytest

from rowmerge_nb.sql.typed.row_bounds import most_rows_of
from tests.sql.support import meaning


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT * FROM (VALUES 1, 2, 3) a UNION ALL SELECT * FROM (VALUES 4, 5) b", 5),
        ("SELECT * FROM (SELECT * FROM (VALUES 1, 2, 3) a UNION ALL VALUES 4) c (x) WHERE x > 1", 4),
        ("WITH w AS (VALUES 1, 2) SELECT * FROM w UNION SELECT * FROM w UNION ALL SELECT 3", 5),
        ("VALUES 1, 2 INTERSECT VALUES 3", 1),
        ("VALUES 1, 2 EXCEPT VALUES 3", 2),
        ("SELECT x FROM (VALUES 1, 2, 3) a (x) ORDER BY x LIMIT 2", 2),
        ("SELECT x FROM UNNEST(ARRAY[1, 2]) a (x) LIMIT 2", 2),
        ("SELECT x FROM UNNEST(ARRAY[1, 2]) a (x)", None),
        ("VALUES 1, 2, 3 LIMIT 1", 1),
        ("SELECT 1", 1),
        ("SELECT count(*) FROM (VALUES 1) WHERE false", 1),
        ("SELECT x, count(*) FROM (VALUES 1, 2) a (x) GROUP BY ROLLUP (x)", 4),
        ("SELECT * FROM (VALUES 1, 2) a CROSS JOIN (VALUES 1, 2, 3) b", 6),
        ("SELECT * FROM (VALUES 1, 2) a (x) FULL JOIN (VALUES 1, 2, 3) b (y) ON x = y", 11),
        ("SELECT x FROM (VALUES 1, 1) a (x) ORDER BY x FETCH FIRST 1 ROW WITH TIES", 2),
    ],
)
def test_the_bound_of_a_query_is_known(query: str, rows: int | None) -> None:
    assert most_rows_of(meaning(query).tree) == rows
