"""The engine of the trials: statements on a small table, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from proof.trials.local_spark import LocalEngine, without_spark

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = ["MERGE", "InProcessEngine", "after_merge", "without_spark"]

MERGE: Final = (
    "MERGE INTO t USING news s ON t.id = s.id WHEN MATCHED AND s.v % 10 = 0 THEN DELETE WHEN"
    " MATCHED THEN UPDATE SET v = t.v + s.v, name = s.name WHEN NOT MATCHED THEN INSERT (id, v,"
    " name) VALUES (s.id, s.v, s.name)"
)
"""A MERGE of a table of ``id bigint, v bigint, name varchar``."""


def after_merge(
    rows: dict[int, tuple[int, str]], news: dict[int, tuple[int, str]]
) -> dict[int, tuple[int, str]]:
    """Return the rows after `MERGE`, by key.

    >>> after_merge({1: (5, "a"), 2: (6, "a")}, {1: (10, "a"), 2: (1, "a"), 3: (4, "b")})
    {2: (7, 'a'), 3: (4, 'b')}
    """
    result = dict(rows)
    for key, (value, name) in news.items():
        if key in rows and value % 10 == 0:
            del result[key]
        else:
            result[key] = (rows[key][0] + value if key in rows else value, name)
    return result


class InProcessEngine(LocalEngine):
    """An engine without Spark that has `MERGE` as a method."""

    def merge(self, news: pa.Table, progress: Callable[[str], None] | None = None) -> Any:
        """Run `MERGE` with a source; return the engine's result.

        ``progress`` is called with each step.

        Raises:
            RowMergeError: as `Engine.run` does.
        """
        return self.run(MERGE, namespace={"news": news}, trace="off", progress=progress)
