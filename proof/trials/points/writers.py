"""Writers side by side: each runs MERGEs of its own on rows that all of them change, and the table holds what some order one by one gives.

Values are added up, so that every order gives the same sums: a change that is lost shows, and so does a row that is there twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from proof.trials.points.in_process import without_spark
from proof.trials.points.stores import ROWS, Rows, Store, table_of
from proof.trials.points.trials import asked_together
from rowmerge_nb.errors import RowMergeError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SideBySide", "expected_rows", "news_of", "run_writer", "side_by_side"]

_TRIES: Final = 200
_NEW_KEY: Final = 100


@dataclass
class SideBySide:
    """What came of writers side by side.

    Args:
        conflicts: how often a statement failed because another one was faster, and was run again.
        problems: sentences; none if all is well.
    """

    conflicts: int = 0
    problems: list[str] = field(default_factory=list)


def news_of(writer: int, number: int) -> Rows:
    """Give the source of a writer's MERGE: a row that all of them update, one of its own, and a key that none has seen before.

    >>> news_of(1, 0)
    {0: (1, 'a'), 4: (3, 'a'), 100: (4, 'a')}
    """
    changed = ((0, 1), (2 + 2 * writer, 2 + writer), (_NEW_KEY + number, 3 + writer))
    return {key: (value, "ab"[key % 2]) for key, value in changed}


def expected_rows(writers: int, statements: int) -> dict[int, tuple[int, str]]:
    """Give the rows that are there when all writers are done, in whatever order they came."""
    rows = dict(ROWS)
    for writer in range(writers):
        for number in range(statements):
            for key, (value, name) in news_of(writer, number).items():
                rows[key] = (rows.get(key, (0, name))[0] + value, name)
    return rows


def run_writer(merge: Callable[[pa.Table], Any], writer: int, statements: int) -> SideBySide:
    """Run a writer's statements, each again and again until it succeeds.

    Args:
        merge: runs `proof.trials.points.in_process.MERGE`.
        writer: its number.
        statements: how many.
    """
    report = SideBySide()
    for number in range(statements):
        source = table_of(news_of(writer, number))
        for _ in range(_TRIES):
            try:
                merge(source)
                break
            except RowMergeError as error:
                report.conflicts += 1
                if error.code != "TRANSACTION_CONFLICT" or error.changed is not False:
                    report.problems.append(f"writer {writer} was told {error}")
        else:
            report.problems.append(f"writer {writer} did not get statement {number} through")
    return report


def side_by_side(store: Store, writers: int, statements: int) -> SideBySide:
    """Run writers in processes of their own.

    Args:
        store: the store, empty.
        writers: how many processes.
        statements: how many statements each of them runs.
    """

    def write(writer: int) -> dict[str, Any]:
        with without_spark():
            connector = store.connector()
            told = run_writer(store.engine(connector).merge, writer, statements)
            connector.close()
        return {"conflicts": told.conflicts, "problems": told.problems}

    def fill() -> dict[str, Any]:
        with without_spark():
            connector = store.connector()
            store.fill(store.engine(connector))
            connector.close()
        return {}

    def look() -> dict[str, Any]:
        connector = store.connector()
        found, wanted = store.rows(connector), expected_rows(writers, statements)
        orphans = [orphan.name for orphan in connector.orphans()]
        connector.close()
        problems = [] if found == wanted else [f"the table holds {found}, and not {wanted}"]
        return {"problems": problems + ([f"{orphans} are left"] if orphans else [])}

    asked_together([fill])
    told = asked_together([lambda writer=writer: write(writer) for writer in range(writers)])  # type: ignore[misc]
    (looked,) = asked_together([look])
    return SideBySide(
        sum(answer.get("conflicts", 0) for answer in told),
        [problem for answer in (*told, looked) for problem in answer.get("problems", ["a process died"])],
    )
