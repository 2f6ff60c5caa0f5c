"""The result of ``result.check_rows()``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.words import join, number, plural
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.display_values import cell, is_number, row_text
from rowmerge_nb.report.words.side_names import names_in, with_side_names
from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.bags import differing
from rowmerge_nb.trace.journeys import journeys_of
from rowmerge_nb.trace.picking import any_has_values

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    import pandas as pd

    from rowmerge_nb.report.words.display_values import Cell
    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.trace import Trace

SHOWN: Final = 10
"""The maximum number of rows shown, of missing and unexpected ones each."""


@dataclass(frozen=True)
class MismatchedRow:
    """A ``missing`` or ``unexpected`` row."""

    kind: str
    cells: tuple[Cell, ...]
    about: tuple[tuple[str, tuple[str, ...]], ...] = ()


class RowCheck:
    """The rows after a statement, compared with the expected ones as bags: order is ignored,
    repetitions count.

    Args:
        missing: the expected rows that do not exist, with repetitions.
        unexpected: the other rows.
        by: the columns that relate joined rows to a wrong row.
    """

    def __init__(
        self,
        trace: Trace,
        total: int,
        missing: pa.Table,
        unexpected: pa.Table,
        by: Sequence[str],
        padded: Collection[str] = (),
    ) -> None:
        self.missing, self.unexpected = missing, unexpected
        self._trace, self._total, self._by = trace, total, tuple(by)
        self._padded = frozenset(name.lower() for name in padded)

    @classmethod
    def of(
        cls,
        trace: Trace,
        rows: pa.Table,
        expected: pa.Table,
        by: str | Iterable[str] | None = None,
        padded: Collection[str] = (),
    ) -> RowCheck:
        """Compare the rows after a statement with the expected ones, whose columns may be in any
        order.

        ``by`` has the columns that identify a row; char columns are compared without padding.
        """
        expected, rows = (
            _without_padding(side, padded) for side in (_like(expected, rows.schema), rows)
        )
        columns = {name.lower(): name for name in rows.column_names}
        keys = _names(by, columns) if by is not None else rows.column_names
        missing, unexpected = differing(rows, expected)
        return cls(trace, rows.num_rows, missing, unexpected, keys, padded)

    @property
    def same(self) -> bool:
        return not self.missing.num_rows and not self.unexpected.num_rows

    @property
    def sentence(self) -> str:
        if self.same:
            return (
                f"Right: {plural(self._total, 'row')}, as wanted."
                if self._total
                else "Correct: no row, as expected."
            )
        parts = ((self.missing, "missing"), (self.unexpected, "unexpected"))
        counts = [f"{plural(rows.num_rows, 'row')} {word}" for rows, word in parts if rows.num_rows]
        return f"Not yet: {', '.join(counts)}."

    @property
    def rows(self) -> tuple[MismatchedRow, ...]:
        """The first wrong rows of each kind; rows with equal `by` are neighbors."""
        keyed_rows = [
            (
                tuple(repr(row[name]) for name in self._by),
                MismatchedRow(label, tuple(map(cell, row.values())), self._about(row)),
            )
            for label, table in (("missing", self.missing), ("unexpected", self.unexpected))
            for row in _rows(table.slice(0, SHOWN))
        ]
        order = {
            key: index for index, key in enumerate(dict.fromkeys(key for key, _ in keyed_rows))
        }
        return tuple(row for _, row in sorted(keyed_rows, key=lambda one: order[one[0]]))

    def to_pandas(self) -> pd.DataFrame:
        """Return all wrong rows as a pandas DataFrame: ``missing`` or ``unexpected``, and the row."""
        import pandas as pd

        tables = (("missing", self.missing), ("unexpected", self.unexpected))
        rows = [(label, *row.values()) for label, table in tables for row in _rows(table)]
        return pd.DataFrame(rows, columns=["row", *self.missing.column_names], dtype=object)

    @cached_property
    def _journeys(self) -> Sequence[Journey]:
        """The journeys, computed on display only: this is slow for large statements."""
        return with_side_names(journeys_of(self._trace) or (), names_in(self._trace))

    def _about(self, row: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        key_values = {name: row[name] for name in self._by}
        ways = [
            j
            for j in self._journeys
            if any_has_values(map(self._trimmed, (j.source, j.target, j.made)), key_values)
        ]
        if (
            not ways
            and self._journeys
            and self._trace.samples.pages is not None
            and self._trace.samples.pages.complete
        ):
            return (
                (
                    row_text(key_values.values()),
                    (self._untouched,),
                ),
            )
        journeys = [journey_row(way, self._trace.kind == "MERGE") for way in ways]
        return tuple((one.head, one.reasons) for one in journeys)

    def _trimmed(self, side: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if side is None or not self._padded:
            return side
        return {
            n: v.rstrip(" ") if n.lower() in self._padded and isinstance(v, str) else v
            for n, v in side.items()
        }

    @property
    def _more(self) -> str:
        rest = sum(max(table.num_rows - SHOWN, 0) for table in (self.missing, self.unexpected))
        return f"and {number(rest)} more" if rest else ""

    @property
    def _untouched(self) -> str:
        which = (
            "its values"
            if len(self._by) == self.missing.num_columns
            else f"its {join(list(self._by))}"
        )
        return f"No row that took part has {which}."

    def __str__(self) -> str:
        lines = [self.sentence]
        rows = self.rows
        if rows:
            table = [
                ["", *self.missing.column_names],
                *([row.kind, *(one.text for one in row.cells)] for row in rows),
            ]
            lines += ["", *columns_of(table, right={at + 1 for at in self._numbers})]
        lines += [self._more] if self._more else []
        for head, reasons in dict.fromkeys(about for row in rows for about in row.about):
            lines += ["", head, *(f"  {reason}" for reason in reasons)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<RowCheck: {self.sentence}>"

    @property
    def _numbers(self) -> set[int]:
        return {
            at
            for at, field in enumerate(self.missing.schema)
            if is_number(str(from_arrow(field.type)))
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = str(self)
        names = {
            "check": self,
            "rows": self.rows,
            "columns": self.missing.column_names,
            "right": self._numbers,
            "more": self._more,
            "about": list(dict.fromkeys(about for row in self.rows for about in row.about)),
        }
        return {
            "text/plain": text,
            "text/html": render_parts("row_check.html.j2", names, text, text),
        }


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = [python_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _without_padding(rows: pa.Table, padded: Collection[str]) -> pa.Table:
    for at, name in enumerate(rows.column_names):
        if name in padded:
            rows = rows.set_column(at, rows.schema.field(at), pc.utf8_rtrim(rows.column(at), " "))
    return rows


def _names(by: str | Iterable[str], table_columns: Mapping[str, str]) -> list[str]:
    form = "the name of a column, or a list of names"
    names = [by] if isinstance(by, str) else list(checked(by, "by", Iterable, form))
    checked(names, "by", lambda value: len(value) > 0, "at least one column, or nothing")
    for name in names:
        if str(name).lower() not in table_columns:
            raise _no_column(str(name), table_columns)
    return list(dict.fromkeys(table_columns[str(name).lower()] for name in names))


def _no_column(name: str, columns: Mapping[str, str]) -> RowMergeError:
    return RowMergeError.invalid(
        f"The rows have no column '{name}'",
        hint=did_you_mean(name, list(columns.values()))
        or f"There are: {', '.join(columns.values())}.",
    )


def _like(expected: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = {name.lower(): name for name in schema.names}
    expected_columns = {name.lower(): name for name in expected.column_names}
    if len(columns) < len(schema.names):
        raise RowMergeError.invalid(
            "Two columns of the rows have the same name",
            hint="Give each column of the query a name of its own.",
        )
    for name in expected_columns.keys() - columns.keys():
        raise _no_column(expected_columns[name], columns)
    if missing := [name for key, name in columns.items() if key not in expected_columns]:
        raise RowMergeError.invalid(
            f"The expected rows have no column '{missing[0]}'",
            hint=f"The columns are: {', '.join(schema.names)}.",
        )
    return pa.table(
        [_cast(expected.column(expected_columns[field.name.lower()]), field) for field in schema],
        schema=schema,
    )


def _cast(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if values.null_count == len(values):
        return pa.chunked_array([pa.nulls(len(values), field.type)])
    try:
        # Arrow treats any integer as one of 19 digits, too long for a small decimal; its text has
        # the real length.
        texts = pa.types.is_integer(values.type) and pa.types.is_decimal(field.type)
        return (values.cast(pa.string()) if texts else values).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RowMergeError.invalid(
            f"Column '{field.name}' of the expected rows does not fit"
            f" {from_arrow(field.type)}: {error}",
            hint="Give values of the column's type.",
        ) from error
