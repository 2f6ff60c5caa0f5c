"""What layouts of a table would have saved, as plain data, and readings of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.trace.file_costs import FileCount

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import pyarrow as pa

AS_IT_IS: Final = "as it is"
"""The name of the layout that the table has."""


@dataclass(frozen=True, kw_only=True)
class LayoutStatement:
    """A statement, and the rows that it meets.

    Args:
        origin: ``rehearsed``, ``trace`` or ``record``.
        rows_changed: the rows of the table that it updates or deletes.
        rows_inserted: the rows that it inserts; None if unknown.
        rows_shared: the changed rows that another rehearsed statement changes too; None if unknown.
    """

    text: str
    origin: str
    rows_changed: int
    rows_inserted: int | None
    rows_shared: int | None = None


@dataclass(frozen=True, kw_only=True)
class LayoutCost:
    """What the statements touch and read in a layout.

    Args:
        layout: ``as it is``, ``region``, ``bucket(id, 16)``, ``sorted by id``, ...
        touched: per statement, the files with rows that it changes. Copy-on-write rewrites them.
        read: per statement, the files that its scans cannot exclude; None if unknown.
    """

    layout: str
    files: int
    touched: tuple[FileCount, ...]
    read: tuple[FileCount | None, ...]

    @property
    def touched_total(self) -> FileCount:
        """The touched files of all statements, each as often as it is touched."""
        return _total(self.touched)

    @property
    def read_total(self) -> FileCount | None:
        """The files that all statements read; None if those of one are unknown."""
        counts = [count for count in self.read if count is not None]
        return _total(counts) if len(counts) == len(self.read) else None

    @property
    def moved_bytes(self) -> int:
        """The bytes that all statements touch and, if known, read."""
        read = self.read_total
        return (self.touched_total.bytes or 0) + (0 if read is None else read.bytes or 0)


def _total(counts: Sequence[FileCount]) -> FileCount:
    return FileCount(sum(c.files for c in counts), sum(c.bytes or 0 for c in counts))


@dataclass(frozen=True, kw_only=True)
class Layouts:
    """The layout of a table beside others that it could have.

    Args:
        bytes: the size of its data files.
        current: the costs of the layout that it has.
        layouts: the costs of others, the cheapest first.
        notices: sentences about what is not known.
    """

    table: str
    rows: int
    bytes: int
    statements: tuple[LayoutStatement, ...]
    current: LayoutCost
    layouts: tuple[LayoutCost, ...]
    notices: tuple[str, ...] = ()

    @property
    def recommended(self) -> LayoutCost | None:
        """The layout with the fewest touched and read bytes; None if none has fewer than now."""
        best = next(iter(self.layouts), None)
        return best if best is not None and best.moved_bytes < self.current.moved_bytes else None

    @property
    def sentence(self) -> str:
        """The recommendation with its numbers."""
        statements = plural(len(self.statements), "statement")
        best, now = self.recommended, self.current
        if best is None:
            return (
                f"None of {plural(len(self.layouts), 'other layout')} saves {statements} bytes of"
                f" {self.table}: {_costs(now)}."
            )
        how = best.layout if best.layout.startswith("sorted") else f"partitioned by {best.layout}"
        return (
            f"If {self.table} were {how}, {statements} would have {_costs(best)}; as it is:"
            f" {_costs(now)}. The table would have {plural(best.files, 'file')} instead of"
            f" {number(now.files)}."
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per layout, the table's own first."""
        import pandas as pd

        return pd.DataFrame([_row(cost) for cost in (self.current, *self.layouts)])

    def to_arrow(self) -> pa.Table:
        """Return a row per layout, the table's own first."""
        import pyarrow as pa

        return pa.Table.from_pylist([_row(cost) for cost in (self.current, *self.layouts)])

    def statements_to_pandas(self) -> pd.DataFrame:
        """Return a row per statement and layout."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "statement": index,
                    "text": statement.text,
                    "origin": statement.origin,
                    "rows_changed": statement.rows_changed,
                    "rows_inserted": statement.rows_inserted,
                    "rows_shared": statement.rows_shared,
                    "layout": cost.layout,
                    **_counts(cost.touched[index - 1], cost.read[index - 1]),
                }
                for index, statement in enumerate(self.statements, 1)
                for cost in (self.current, *self.layouts)
            ]
        )

    def __str__(self) -> str:
        from rowmerge_nb.report.layouts_report import layouts_text

        return layouts_text(self)

    def __repr__(self) -> str:
        return f"<Layouts: {self.sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.layouts_report import layouts_bundle

        return layouts_bundle(self)


def _costs(cost: LayoutCost) -> str:
    read = cost.read_total
    reads = "" if read is None else f", and read {read}"
    return f"touched {cost.touched_total}{reads}"


def _row(cost: LayoutCost) -> dict[str, Any]:
    return {
        "layout": cost.layout,
        "files": cost.files,
        **_counts(cost.touched_total, cost.read_total),
    }


def _counts(touched: FileCount, read: FileCount | None) -> dict[str, int | None]:
    return {
        "files_touched": touched.files,
        "bytes_touched": touched.bytes,
        "files_read": None if read is None else read.files,
        "bytes_read": None if read is None else read.bytes,
    }
