"""``compare(by="catalogs")`` and ``compare(by="stores")``: one statement run in several places, on a copy of
its target in each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import join, plural
from rowmerge_nb.trace.bags import counted_rows, differing, of_one_type
from rowmerge_nb.trace.comparison import METRICS, Side, measured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from rowmerge_nb.trace.contract_calls import Call
    from rowmerge_nb.trace.file_costs import FileCosts

STORE_METRICS: Final[Mapping[str, str]] = {
    "store": "the connector of the catalog",
    "the change lasts": "the call that makes it permanent",
    **METRICS,
    "loaded files": "files of the copy before the statement",
    "files read": "files of the copy that the statement read",
    "files written": "files that the statement added to the copy",
    "left to merge": "files of deleted rows that readers merge with others afterwards",
    "a full read": "files that a reader of all rows reads afterwards, with those to merge",
    "seconds": "of the statement, without copying its target",
    "seconds in tasks": "of Spark's job",
}
"""What is measured of each side, and its meaning."""

FILE_METRICS: Final = (
    "loaded files",
    "files read",
    "files written",
    "left to merge",
    "a full read",
)
"""The metrics of `FileCosts`, in the order of its fields."""


@dataclass(frozen=True)
class SinkFragment:
    bytes: int
    text: str = ""


@dataclass(frozen=True)
class StoreSide(Side):
    """The run of the statement in one catalog.

    Args:
        lasting_call: the call that makes a change permanent.
        remarks: what the copy of the target lacks.
        costs: the files that it reads, writes and leaves; None if unknown.
    """

    connector: str = ""
    lasting_call: str = ""
    fragments: tuple[SinkFragment, ...] = ()
    remarks: tuple[str, ...] = ()
    costs: FileCosts | None = None

    @property
    def seconds(self) -> float:
        return sum(self.result.trace.seconds.values())


@dataclass(frozen=True)
class StoreMetric:
    """A measurement of all sides, as texts."""

    name: str
    meaning: str
    texts: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(filter(None, self.texts))) > 1


@dataclass(frozen=True)
class RowDifference:
    """A row that a side has more often than another one.

    Args:
        times: how many more.
    """

    present: str
    absent: str
    row: tuple[Any, ...]
    times: int


@dataclass(frozen=True)
class CallCount:
    """The calls of one method on one side."""

    count: int
    rows: int | None
    bytes: int | None
    seconds: float
    has_failed: bool


@dataclass(frozen=True)
class AlignedCall:
    """A method of the contract, and its calls on each side.

    Args:
        sides: one per side; None if it was not called there.
    """

    caller: str
    method: str
    sides: tuple[CallCount | None, ...]


class StoreComparison:
    """One statement, run in several catalogs or stores.

    Args:
        by: ``catalogs`` or ``stores``.

    Attributes:
        differences: the rows that differ from those of the first side that did not fail.
    """

    def __init__(
        self,
        by: str,
        statement: str,
        target: str,
        columns: Sequence[str],
        sides: Sequence[StoreSide],
        notices: Sequence[str] = (),
    ) -> None:
        self.by, self.statement, self.target = by, statement, target
        self.columns, self.sides, self.notices = tuple(columns), tuple(sides), tuple(notices)
        self.differences = tuple(
            _differences([side for side in sides if side.rows is not None], self.columns)
        )

    @property
    def same(self) -> bool | None:
        """Whether the statement leaves the same rows in every catalog in which it does not fail;
        None if it ends in fewer than two.
        """
        compared = sum(side.rows is not None for side in self.sides)
        return not self.differences if compared > 1 else None

    @property
    def by_singular(self) -> str:
        """What a side is."""
        return self.by.removesuffix("s")

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        good = [side for side in self.sides if not side.failed]
        bad = [side.name for side in self.sides if side.failed]
        if not good:
            return f"The statement fails in every {self.by_singular}."
        failures = f"; {join(bad)} {'fails' if len(bad) == 1 else 'fail'}." if bad else "."
        if len(good) == 1:
            changed_rows = plural(good[0].result.count or 0, "row")
            return f"{good[0].name} changes {changed_rows}{failures}"
        names = join([side.name for side in good])
        if self.same:
            count = 0 if good[0].rows is None else good[0].rows.num_rows
            return f"{names} leave the same {plural(count, 'row')}{failures}"
        reference = good[0].name
        counts: Counter[str] = Counter()
        for difference in self.differences:
            is_first = difference.present == reference
            counts[difference.absent if is_first else difference.present] += difference.times
        parts = [f"{name} in {plural(count, 'row')}" for name, count in counts.items()]
        return f"THE RESULTS DIFFER from that of {reference}: {join(parts)}{failures}"

    @property
    def metrics(self) -> tuple[StoreMetric, ...]:
        """The measurements of all sides."""
        texts = [_measured(side) for side in self.sides]
        return tuple(
            StoreMetric(name, meaning, tuple(side.get(name, "") for side in texts))
            for name, meaning in STORE_METRICS.items()
        )

    @property
    def calls(self) -> tuple[AlignedCall, ...]:
        """The contract's methods in the order in which they were called, with the calls per side."""
        sides = [_calls_by_method(side.result.trace.calls) for side in self.sides]
        return tuple(
            AlignedCall(
                caller, method, tuple(_counted(side.get((caller, method))) for side in sides)
            )
            for caller, method in _merged([list(side) for side in sides])
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return the metrics, with a column per side."""
        import pandas as pd

        metrics = self.metrics
        values = {side.name: [m.texts[i] for m in metrics] for i, side in enumerate(self.sides)}
        return pd.DataFrame(values, index=pd.Index([m.name for m in metrics], name=self.by))

    def costs_to_pandas(self) -> pd.DataFrame:
        """Return the files and bytes that each side reads, writes and leaves; numbers are missing if
        they are unknown.
        """
        import pandas as pd

        rows = {
            side.name: {
                f"{part} {unit}": getattr(count, unit)
                for part, count in ({} if side.costs is None else vars(side.costs)).items()
                for unit in ("files", "bytes")
                if count is not None
            }
            for side in self.sides
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def calls_to_pandas(self) -> pd.DataFrame:
        """Return the numbers of calls, with a column per side."""
        import pandas as pd

        names = ["caller", "method", *(side.name for side in self.sides)]
        rows = [
            (call.caller, call.method, *(0 if side is None else side.count for side in call.sides))
            for call in self.calls
        ]
        return pd.DataFrame(rows, columns=names)

    def fragments_to_pandas(self) -> pd.DataFrame:
        """Return the fragments: side, number, bytes, JSON."""
        import pandas as pd

        rows = [
            (side.name, number, fragment.bytes, fragment.text or None)
            for side in self.sides
            for number, fragment in enumerate(side.fragments, 1)
        ]
        return pd.DataFrame(rows, columns=["side", "number", "bytes", "json"], dtype=object)

    def differences_to_pandas(self) -> pd.DataFrame:
        """Return the rows that differ: the side that has them, the other side, count, values."""
        import pandas as pd

        rows = [(d.present, d.absent, d.times, *d.row) for d in self.differences]
        return pd.DataFrame(rows, columns=["in", "not in", "times", *self.columns], dtype=object)

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]

    def __repr__(self) -> str:
        return f"<StoreComparison of {self.by}: {self.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.store_comparison_report import store_comparison_bundle

        return store_comparison_bundle(self)


def _measured(side: StoreSide) -> dict[str, str]:
    trace, costs = side.result.trace, side.costs
    values = measured(side)
    if costs is not None and not side.failed:
        counts = (costs.loaded, costs.read, costs.written, costs.to_merge, costs.full_read)
        values |= {
            name: "" if count is None else str(count)
            for name, count in zip(FILE_METRICS, counts, strict=True)
        }
    if trace.target.output is not None and not trace.target.output.written:
        # An empty report of a store may mean that it writes nothing, or that it has no report.
        values |= {"written": "none reported", "bytes written": ""}
    return {
        **values,
        "store": side.connector,
        "the change lasts": side.lasting_call,
        "seconds": f"{side.seconds:.2f}" if trace.seconds else "",
        "seconds in tasks": f"{trace.seconds['run']:.2f}" if "run" in trace.seconds else "",
    }


# -- rows


def _differences(sides: Sequence[StoreSide], columns: Sequence[str]) -> Iterator[RowDifference]:
    for other in sides[1:]:
        first = sides[0]
        if first.rows is None or other.rows is None:
            continue
        # A statement may have added columns where the store can.
        missing, unexpected = differing(
            *of_one_type(other.rows.select(columns), first.rows.select(columns))
        )
        for present, absent, rows in ((first, other, missing), (other, first, unexpected)):
            for row, times in counted_rows(rows):
                yield RowDifference(present.name, absent.name, row, times)


# -- calls


def _calls_by_method(calls: Sequence[Call]) -> dict[tuple[str, str], list[Call]]:
    by_method: dict[tuple[str, str], list[Call]] = {}
    for call in sorted(calls, key=lambda call: call.order):
        by_method.setdefault((call.caller, call.method), []).append(call)
    return by_method


def _counted(calls: Sequence[Call] | None) -> CallCount | None:
    if not calls:
        return None
    rows = [call.rows for call in calls if call.rows is not None]
    sizes = [call.bytes for call in calls if call.bytes is not None]
    return CallCount(
        len(calls),
        sum(rows) if rows else None,
        sum(sizes) if sizes else None,
        sum(call.seconds for call in calls),
        any(call.error is not None for call in calls),
    )


def _merged(sequences: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Merge sequences without repetitions: an item that only a later one has follows its
    predecessor there.

    >>> _merged([[("c", "begin"), ("c", "commit")], [("c", "begin"), ("w", "store"), ("c", "rollback")]])
    [('c', 'begin'), ('w', 'store'), ('c', 'rollback'), ('c', 'commit')]
    """
    merged: list[tuple[str, str]] = []
    for sequence in sequences:
        position = 0
        for item in sequence:
            if item in merged:
                position = max(position, merged.index(item) + 1)
            else:
                merged.insert(position, item)
                position += 1
    return merged
