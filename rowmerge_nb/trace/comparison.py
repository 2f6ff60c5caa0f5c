"""``compare``: one statement run in two ways on the same rows, without committing.

Each side is a rehearsal, rolled back after its finish call. The resulting tables are compared if
the connector can read them within the transaction; otherwise the removed and added rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import number_or_blank, plural
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.bags import counted_rows, differing, of_one_type, row_codes
from rowmerge_nb.trace.node_records import MarkDistinctFacts, ScanFacts
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from rowmerge_nb.trace.node_records import NodeRecord
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.rerun import RunResult
    from rowmerge_nb.trace.trace import Trace

STORING: Final = frozenset({"store_merged_rows", "delete_rows", "update_rows"})


@dataclass(frozen=True)
class Side:
    """One way of running the statement.

    Args:
        result: the rehearsal; if it failed, its trace has the error.
        rows: the resulting table; None if unreadable, or after an error.
        whole: the trace of another rehearsal with all changed rows, if that of ``result`` lacks
            some.
    """

    name: str
    result: RunResult
    rows: pa.Table | None = None
    whole: Trace | None = None

    @property
    def failed(self) -> bool:
        """Whether the statement fails this way."""
        return self.result.trace.state == StatementState.FAILED


@dataclass(frozen=True)
class Metric:
    """A measurement of both sides, as text; ``""`` if a side has none."""

    name: str
    meaning: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return bool(self.left and self.right) and self.left != self.right


@dataclass(frozen=True)
class Difference:
    """A row that one side has more often than the other.

    Args:
        what: ``has``; or ``removes`` or ``adds`` if only changes are known.
    """

    side: str
    what: str
    row: tuple[Any, ...]
    times: int


class Comparison:
    """One statement, run in two ways.

    Args:
        notice: a note for the reader, or ``""``.

    Attributes:
        compared: the method: ``rows``, ``changes``, or ``""`` if neither was possible.
    """

    def __init__(
        self,
        by: str,
        statement: str,
        columns: Sequence[str],
        left: Side,
        right: Side,
        notice: str = "",
    ) -> None:
        self.by, self.statement, self.columns = by, statement, tuple(columns)
        self.left, self.right, self.notice = left, right, notice
        self.compared, self.differences = _compared(left, right)

    @property
    def same(self) -> bool | None:
        """Whether both sides leave the same rows; None if a side failed or this is unknown."""
        return not self.differences if self.compared else None

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        target = self.left.result.trace.target.name or self.right.result.trace.target.name
        if self.left.failed and self.right.failed:
            return "Both ways fail."
        if self.left.failed or self.right.failed:
            good, bad = (self.right, self.left) if self.left.failed else (self.left, self.right)
            return (
                f"{good.name} would change {_rows(good.result.count)} of {target}; {bad.name}"
                " fails."
            )
        if self.same is None:
            return f"Both ways run; whether they would leave the same rows in {target} is unknown."
        if not self.same:
            return (
                f"THE RESULTS DIFFER in {_rows(sum(d.times for d in self.differences))} of"
                f" {target}."
            )
        if self.left.rows is not None and not self.left.rows.num_rows:
            end = f"would leave no row in {target}"
        elif self.left.rows is not None:
            end = f"would leave the same {_rows(self.left.rows.num_rows)} in {target}"
        else:
            end = f"would remove the same rows from {target} and insert the same rows"
        (left, left_rows), (right, right_rows) = (
            _stored_rows(side) for side in (self.left, self.right)
        )
        if left == right:
            return f"Both ways {end}."
        return (
            f"{self.left.name} stores {_rows(left_rows)} ({left}), {self.right.name}"
            f" {number_or_blank(right_rows)} ({right}); both {end}."
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Each side's measurements."""
        left, right = measured(self.left), measured(self.right)
        return tuple(
            Metric(name, meaning, left[name], right[name]) for name, meaning in METRICS.items()
        )

    @property
    def calls(self) -> tuple[tuple[str, int, int], ...]:
        """The contract's methods in the order of first calls, with the calls per side."""
        counts = [
            Counter(call.method for call in side.result.trace.calls)
            for side in (self.left, self.right)
        ]
        names = dict.fromkeys(
            call.method for side in (self.left, self.right) for call in side.result.trace.calls
        )
        ending = [n for n in names if n.startswith("finish_")] + [
            n for n in names if n in {"commit", "rollback"}
        ]
        ordered = [n for n in names if n not in ending] + ending
        return tuple((name, counts[0][name], counts[1][name]) for name in ordered)

    def to_pandas(self) -> pd.DataFrame:
        """Return the metrics, with a column per side."""
        import pandas as pd

        values = {
            self.left.name: [m.left for m in self.metrics],
            self.right.name: [m.right for m in self.metrics],
        }
        return pd.DataFrame(values, index=pd.Index([m.name for m in self.metrics], name=self.by))

    def calls_to_pandas(self) -> pd.DataFrame:
        """Return the numbers of calls, with a column per side."""
        import pandas as pd

        names = ["method", self.left.name, self.right.name]
        return pd.DataFrame(self.calls, columns=names).set_index("method")

    def differences_to_pandas(self) -> pd.DataFrame:
        """Return the rows that differ: side, action, count, values."""
        import pandas as pd

        width = max((len(d.row) for d in self.differences), default=len(self.columns))
        names = self.columns if width == len(self.columns) else ("row_id",)
        rows = [(d.side, d.what, d.times, *d.row) for d in self.differences]
        return pd.DataFrame(rows, columns=["side", "does", "times", *names], dtype=object)

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]

    def __repr__(self) -> str:
        return f"<Comparison of {self.by}: {self.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.comparison_report import comparison_bundle

        return comparison_bundle(self)


# -- numbers

METRICS: Final[Mapping[str, str]] = {
    "answer": "rows changed, or the error",
    "operations": "rows inserted, updated and deleted",
    "operators": "nodes of the plan",
    "exchanges": "exchanges in the plan",
    "rows through exchanges": "rows that change the task they are in",
    "columns read": "columns of the target that the scan reads, besides the row id",
    "rows read": "rows of the target that the scan returns",
    "rows stored": "positions of the pages that the connector gets, by operation",
    "bytes stored": "size of those pages",
    "writers": "sinks, or page sources that change rows",
    "written": "files of the store, or statements to its database, that make up the change",
    "bytes written": "size of those files",
    "fragments": "what they pass to the finish call",
    "fragment bytes": "size of the fragments",
    "connector calls": "calls of the contract that are recorded, by coordinator and by tasks",
    "rows after": "rows of the target afterwards, if the connector shows them",
}


def measured(side: Side) -> dict[str, str]:
    trace = side.result.trace
    moved = _moved(trace)
    scan = _scan(trace)
    columns = _data_columns(scan) if scan is not None else []
    stored_rows, _ = _stored_rows(side)
    coordinator = sum(call.number is None for call in trace.calls)
    size = sum(call.bytes or 0 for call in trace.calls if call.method in STORING)
    ran, output = not side.failed, trace.target.output
    values: dict[str, str] = {
        "answer": _rows(trace.count) if ran else trace.error.code if trace.error else "failed",
        "operations": _operations(side.result) if ran else "",
        "operators": str(len(trace.plan)) if trace.plan else "",
        "exchanges": str(len(moved)) if trace.plan else "",
        "rows through exchanges": number_or_blank(sum(rows or 0 for rows in moved)) if ran else "",
        "columns read": (
            f"{len(columns)}: {', '.join(columns)}"
            if columns
            else "none"
            if scan is not None
            else ""
        ),
        "rows read": (
            number_or_blank(trace.rows.get(scan.id, ((), None))[1])
            if scan is not None and ran
            else ""
        ),
        "rows stored": stored_rows if ran else "",
        "bytes stored": number_or_blank(size) if ran else "",
        "writers": number_or_blank(len(trace.writers)) if ran else "",
        "written": "" if output is None else output.summary,
        "bytes written": number_or_blank(output.bytes)
        if output is not None and output.written
        else "",
        "fragments": number_or_blank(sum(writer.fragments for writer in trace.writers))
        if ran
        else "",
        "fragment bytes": (
            number_or_blank(sum(writer.fragment_bytes for writer in trace.writers)) if ran else ""
        ),
        "connector calls": f"{coordinator} + {len(trace.calls) - coordinator} in tasks",
        "rows after": "" if side.rows is None else number_or_blank(side.rows.num_rows),
    }
    return values


def _stored_rows(side: Side) -> tuple[str, int]:
    counts: Counter[int] = Counter()
    for writer in side.result.trace.writers:
        counts.update(writer.rows)
    return operation_letters(counts) or "none", counts.total()


def _moved(trace: Trace) -> list[int | None]:
    nodes = [
        n
        for n in trace.plan
        if n.kind == "Exchange" or (isinstance(n.facts, MarkDistinctFacts) and n.facts.exchange)
    ]
    return [next(iter(trace.rows.get(node.id, ((), None))[0]), None) for node in nodes]


def _scan(trace: Trace) -> NodeRecord | None:
    return next((n for n in trace.plan if isinstance(n.facts, ScanFacts) and n.facts.target), None)


def _data_columns(scan: NodeRecord) -> list[str]:
    *columns, _ = (name for name, _ in scan.layout)
    return columns


def _operations(result: RunResult) -> str:
    counts = result.counts
    return (
        ", ".join(
            f"{word[0]} {number_or_blank(counts[word])}"
            for word in ("INSERT", "UPDATE", "DELETE")
            if counts[word]
        )
        or "none"
    )


def _rows(count: int | None) -> str:
    return " rows" if count is None else plural(count, "row")


# -- results


def _compared(left: Side, right: Side) -> tuple[str, tuple[Difference, ...]]:
    if left.failed or right.failed:
        return "", ()
    if left.rows is not None and right.rows is not None:
        return "rows", _differences(left, right, "has", left.rows, right.rows)
    changes = [_changes(side.whole or side.result.trace) for side in (left, right)]
    tables = [side for side in changes if side is not None]
    if len(tables) < len(changes):
        return "", ()
    differences: tuple[Difference, ...] = ()
    for what in ("removes", "adds"):
        name = what if all(what in side or not side for side in tables) else f"{what} by id"
        one, other = (side.get(name) for side in tables)
        differences += _differences(left, right, what, one, other)
    return "changes", differences


def _differences(
    left: Side, right: Side, what: str, one: pa.Table | None, other: pa.Table | None
) -> tuple[Difference, ...]:
    if one is None or other is None:
        extra, missing = one, other
    else:
        missing, extra = differing(*of_one_type(one, other.rename_columns(one.column_names)))
    return tuple(
        Difference(side.name, what, row, times)
        for side, rows in ((left, extra), (right, missing))
        if rows is not None
        for row, times in counted_rows(rows)
    )


def _changes(trace: Trace) -> dict[str, pa.Table] | None:
    """Return the rows that a run has removed and added; None if they are not known."""
    pages = trace.samples.pages
    if pages is None:
        return None if any(writer.pages for writer in trace.writers) else {}
    if not pages.complete:
        return None
    channels = pages.layout.after
    after = pa.Table.from_batches([pages.after])
    operations = pages.after.column(channels.operation).to_numpy(zero_copy_only=False)
    values = after.select(list(channels.columns))
    is_added = np.isin(operations, [Operation.INSERT, Operation.UPDATE_INSERT, Operation.UPDATE])
    is_removed = ~np.isin(operations, [Operation.INSERT, Operation.UPDATE_INSERT])
    row_ids = pa.table({"row_id": after.column(channels.row_id)})
    if trace.kind == "MERGE":
        # Two clauses may act on one row. Its values are part of its identity, since a store may
        # number its rows per partition.
        identity = pa.table(
            [*row_ids.columns, *values.columns], [*map(str, range(len(values.columns) + 1))]
        )
        is_removed &= _is_first(identity, is_removed)
    changes = {"adds": values.filter(is_added), "removes by id": row_ids.filter(is_removed)}
    old = _old_rows(pages)
    return changes if old is None else {**changes, "removes": old}


def _is_first(rows: pa.Table, selected: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    [codes] = row_codes(rows)
    indices = np.flatnonzero(selected)
    is_first = np.zeros(len(codes), np.bool_)
    is_first[indices[np.unique(codes[indices], return_index=True)[1]]] = True
    return is_first


def _old_rows(pages: PageSample) -> pa.Table | None:
    if pages.witness is None:
        return None
    target = pages.witness.column("target")
    if target.type.num_fields != pages.layout.column_count:
        return None
    names = [*map(str, range(target.type.num_fields))]
    rows = pa.table(target.flatten(), names)
    acts = np.array(pages.produced, np.int64) > 0
    acts &= target.is_valid().to_numpy(zero_copy_only=False)
    identity = pa.table([pages.row_ids, *rows.columns], ["row_id", *names])
    return rows.filter(acts & _is_first(identity, acts))
