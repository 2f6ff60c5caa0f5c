"""Faults at every disk and database operation of an action on a Hive table, each in its own process, and checks of the result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proof.trials.points.trials import asked_together
from proof.trials.points.watch import FAULTS, Fault, Operation, Watch
from proof.trials.points.wrapping import watch_process
from rowmerge_nb import HiveAcidConnector, RowMergeError
from tests.connectors.hive_acid.kit import contents, inserted, make_table, merge, row_ids

READ = "read"
"""No fault: another connector reads the table at the point."""
FURTHER = (99, "further", "p1")
CAUSES = ("No space left", "disk I/O error", "database or disk is full", "Input/output error")


class ReadingWatch(Watch):
    """A watch that also reads the table at a point."""

    def __init__(self, fault: Fault | None, reader: HiveAcidConnector) -> None:
        super().__init__(fault)
        self._reader = reader
        self.rows: list[Any] | None = None

    def _strike(self, fault: Fault, operation: Operation) -> None:
        if fault.kind != READ:
            super()._strike(fault, operation)
            return
        self.struck = True
        self.rows = self._done(lambda: contents(self._reader))


@dataclass
class Trials:
    """Trials of one action on one table.

    Args:
        root: an empty directory.
        act: the tested action, which gets the connector.
        before: the rows of the table before it.
        after: the rows of the table after it.
    """

    root: Path
    act: Callable[[HiveAcidConnector], object]
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    """The points at which a directory is moved."""

    @property
    def live(self) -> Path:
        return self.root / "live"

    def prepare(self, **properties: Any) -> int:
        """Create a table with inserted, changed and deleted rows, and count the points of the action."""
        (saved := self.root / "saved").mkdir()
        asked_together([lambda: filled(saved, **properties)])
        answer = self._run(None)
        assert answer["problems"] == [], answer
        self.before, self.after, self.moves = answer["before"], answer["after"], answer["moves"]
        return int(answer["points"])

    def faults(self, points: int, kinds: tuple[str, ...] = (READ, *FAULTS)) -> Iterator[Fault]:
        for number in range(1, points + 1):
            for kind in kinds:
                for after in (False, True):
                    if not (after and kind in {"lasting", READ}):
                        yield Fault(kind, number, after)

    def try_fault(self, fault: Fault) -> None:
        """Try a fault, and record all violations."""
        answer = self._run(fault)
        problems = answer.get("problems", [])
        states = {"done": [self.after], "failed": [self.before]}.get(
            answer.get("said", ""), [self.before, self.after]
        )
        rows = answer.get("rows")
        if rows is not None and rows != self.before:
            problems.append(f"a reader meanwhile sees {rows}")
        (looked,) = asked_together([lambda: self._look(states)])
        problems += looked["problems"]
        self.problems += [
            f"{fault} ({answer.get('at', '')}), which said {answer.get('said')}: {problem}"
            for problem in problems
        ]

    def _run(self, fault: Fault | None) -> dict[str, Any]:
        shutil.rmtree(self.live, ignore_errors=True)
        shutil.copytree(self.root / "saved", self.live)
        (answer,) = asked_together([lambda: self._act(fault)])
        return answer

    def _act(self, fault: Fault | None) -> dict[str, Any]:
        watch = ReadingWatch(fault, HiveAcidConnector(self.live))
        watch_process(watch, [str(self.live)])
        store = HiveAcidConnector(self.live)
        before, problems, said = [list(row) for row in contents(store)], [], "done"
        with watch.watching():
            try:
                self.act(store)
            except RowMergeError as error:
                said = {False: "failed", True: "done", None: "unknown"}[error.changed]
                if (
                    fault is not None
                    and fault.kind in {"error", "lasting"}
                    and not any(cause in str(error) for cause in CAUSES)
                ):
                    problems.append(f"the cause is not named: {error}")
            except KeyboardInterrupt:
                said = "interrupted"
            except BaseException as error:  # noqa: BLE001 - it is a problem
                problems.append(f"it raised {error!r}")
        rows = None if watch.rows is None else [list(row) for row in watch.rows]
        if fault is None:
            rows = [list(row) for row in contents(store)] if store.metastore.list_tables() else []
        at = (
            watch.points[fault.number - 1]
            if fault is not None and fault.number <= len(watch.points)
            else None
        )
        return {
            "before": before,
            "after": rows,
            "rows": rows if fault is not None else None,
            "said": said,
            "problems": problems,
            "points": len(watch.points),
            "moves": [point.number for point in watch.points if point.name == "os.rename"],
            "at": f"{at.name} {at.about[-60:]}" if at is not None else "",
        }

    def _look(self, states: list[list[Any]]) -> dict[str, Any]:
        problems: list[str] = []
        store = HiveAcidConnector(self.live)
        store.remove_orphans()
        exists = bool(store.metastore.list_tables())
        rows = [list(row) for row in contents(store)] if exists else []
        if rows not in states:
            problems.append(f"the table holds {rows}")
        if store.open_transactions():
            problems.append(f"{store.open_transactions()} are open")
        things = [path.relative_to(self.live).as_posix() for path in self.live.rglob("*")]
        strays = [thing for thing in things if "_tmp_" in thing or "_dropped_" in thing]
        if strays or (not exists and (self.live / "warehouse" / "t").exists()):
            problems.append(f"{strays or 'the folder of the table'} is left")
        if exists:
            merge(store, inserted(FURTHER))
            if [list(row) for row in contents(store)] != sorted([*rows, list(FURTHER)], key=repr):
                problems.append(f"after a further statement the table holds {contents(store)}")
        return json.loads(json.dumps({"problems": problems}))  # type: ignore[no-any-return]


def filled(root: Path, **properties: Any) -> dict[str, Any]:
    """Create a table whose deltas contain inserted, changed and deleted rows."""
    store = make_table(root, **properties)
    for first in (0, 10):
        merge(store, inserted(*((n, f"v{n}", f"p{n % 2}") for n in range(first, first + 4))))
    ids = row_ids(store)
    merge(
        store,
        [
            (2, ids[1], None, None, "p1"),
            (1, None, 1, "changed", "p0"),
            (2, ids[10], None, None, "p0"),
        ],
    )
    ids = row_ids(store)
    merge(store, [(2, ids[2], None, None, "p0"), (1, None, 2, "changed", "p1")])
    return {}
