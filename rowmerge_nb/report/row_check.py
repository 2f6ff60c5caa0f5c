"""The rows that a statement left beside those that were wanted: what ``result.check_rows()`` gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import RowMergeError, checked
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.words import join, number, plural
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.display_values import cell, is_number
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
"""So many rows are shown of those that are missing, and of those that nobody wanted."""


@dataclass(frozen=True)
class WrongRow:
    """A row that is missing, or that nobody wanted.

    Args:
        kind: ``missing`` or ``unexpected``.
        cells: its values.
        about: joined rows of the statement that have to do with it: what each became, and the sentences that say why.
    """

    kind: str
    cells: tuple[Cell, ...]
    about: tuple[tuple[str, tuple[str, ...]], ...] = ()


class RowCheck:
    """The rows that a statement left, compared with those that were wanted; it shows itself.

    Rows are compared as bags: their order does not matter, and how often a row is there does.

    Args:
        trace: the statement's trace, which has the reasons.
        total: how many rows there are.
        missing: the rows that were wanted and are not there; a row that is missing twice is in it twice.
        unexpected: the rows that are there and were not wanted.
        by: the columns by which joined rows are found that explain a wrong row.
        padded: the columns of type char.
    """

    def __init__(
        self, trace: Trace, total: int, missing: pa.Table, unexpected: pa.Table, by: Sequence[str], padded: Collection[str] = ()
    ) -> None:
        self.missing, self.unexpected = missing, unexpected
        self._trace, self._total, self._by = trace, total, tuple(by)
        self._padded = frozenset(name.lower() for name in padded)

    @classmethod
    def of(
        cls,
        trace: Trace,
        rows: pa.Table,
        wanted: pa.Table,
        by: str | Iterable[str] | None = None,
        padded: Collection[str] = (),
    ) -> RowCheck:
        """Compare.

        Args:
            trace: the statement's trace.
            rows: the rows that it left.
            wanted: those that it was to leave: columns of the same names, in any order, with values that fit.
            by: the columns that tell which row is meant; None for all.
            padded: the columns of type char, which are compared without the blanks that fill them up.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if columns are missing, not known, or have values of another type.
        """
        wanted, rows = (_without_padding(side, padded) for side in (_like(wanted, rows.schema), rows))
        found = {name.lower(): name for name in rows.column_names}
        keys = _names(by, found) if by is not None else rows.column_names
        missing, unexpected = differing(rows, wanted)
        return cls(trace, rows.num_rows, missing, unexpected, keys, padded)

    @property
    def same(self) -> bool:
        """Whether the rows are those that were wanted."""
        return not self.missing.num_rows and not self.unexpected.num_rows

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        if self.same:
            return f"Right: {plural(self._total, 'row')}, as wanted." if self._total else "Right: no row, as wanted."
        parts = ((self.missing, "missing"), (self.unexpected, "unexpected"))
        counts = [f"{plural(rows.num_rows, 'row')} {word}" for rows, word in parts if rows.num_rows]
        return f"Not yet: {', '.join(counts)}."

    @property
    def rows(self) -> tuple[WrongRow, ...]:
        """The first rows of each kind that are wrong; those of the same values in the columns `by` are neighbours."""
        found = [
            (tuple(repr(row[name]) for name in self._by), WrongRow(kind, tuple(map(cell, row.values())), self._about(row)))
            for kind, table in (("missing", self.missing), ("unexpected", self.unexpected))
            for row in _rows(table.slice(0, SHOWN))
        ]
        order = {key: index for index, key in enumerate(dict.fromkeys(key for key, _ in found))}
        return tuple(row for _, row in sorted(found, key=lambda one: order[one[0]]))

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows that are wrong as a pandas DataFrame: ``missing`` or ``unexpected``, and the row."""
        import pandas as pd

        tables = (("missing", self.missing), ("unexpected", self.unexpected))
        rows = [(kind, *row.values()) for kind, table in tables for row in _rows(table)]
        return pd.DataFrame(rows, columns=["row", *self.missing.column_names], dtype=object)

    @cached_property
    def _journeys(self) -> Sequence[Journey]:
        """The ways of the statement's rows: made for showing alone, since of a large statement they take long."""
        return journeys_of(self._trace) or ()

    def _about(self, row: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        wanted = {name: row[name] for name in self._by}
        ways = [j for j in self._journeys if any_has_values(map(self._trimmed, (j.source, j.target, j.made)), wanted)]
        if not ways and self._journeys and self._trace.pages is not None and self._trace.pages.complete:
            return ((f"({', '.join(cell(value).text for value in wanted.values())})", (self._untouched,)),)
        told = [journey_row(way, self._trace.kind == "MERGE") for way in ways]
        return tuple((one.head, one.reasons) for one in told)

    def _trimmed(self, side: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a row whose columns of type char have no blanks at the end."""
        if side is None or not self._padded:
            return side
        return {n: v.rstrip(" ") if n.lower() in self._padded and isinstance(v, str) else v for n, v in side.items()}

    @property
    def _more(self) -> str:
        left = sum(max(table.num_rows - SHOWN, 0) for table in (self.missing, self.unexpected))
        return f"and {number(left)} more" if left else ""

    @property
    def _untouched(self) -> str:
        which = "its values" if len(self._by) == self.missing.num_columns else f"its {join(list(self._by))}"
        return f"No row that took part has {which}."

    def __str__(self) -> str:
        lines = [self.sentence]
        rows = self.rows
        if rows:
            table = [["", *self.missing.column_names], *([row.kind, *(one.text for one in row.cells)] for row in rows)]
            lines += ["", *columns_of(table, right={at + 1 for at in self._numbers})]
        lines += [self._more] if self._more else []
        for head, reasons in dict.fromkeys(about for row in rows for about in row.about):
            lines += ["", head, *(f"  {reason}" for reason in reasons)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<RowCheck: {self.sentence}>"

    @property
    def _numbers(self) -> set[int]:
        return {at for at, field in enumerate(self.missing.schema) if is_number(str(from_arrow(field.type)))}

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
        return {"text/plain": text, "text/html": render_parts("row_check.html.j2", names, text, text)}


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = [python_values(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _without_padding(rows: pa.Table, padded: Collection[str]) -> pa.Table:
    """Return rows whose columns of type char have no blanks at the end."""
    for at, name in enumerate(rows.column_names):
        if name in padded:
            rows = rows.set_column(at, rows.schema.field(at), pc.utf8_rtrim(rows.column(at), " "))
    return rows


def _names(by: str | Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Return the columns that are meant, as the table has them."""
    form = "the name of a column, or a list of names"
    given = [by] if isinstance(by, str) else list(checked(by, "by", Iterable, form))
    checked(given, "by", lambda names: len(names) > 0, "one column at least, or nothing")
    for name in given:
        if str(name).lower() not in known:
            raise _no_column(str(name), known)
    return list(dict.fromkeys(known[str(name).lower()] for name in given))


def _no_column(name: str, known: Mapping[str, str]) -> RowMergeError:
    return RowMergeError(
        f"The rows have no column '{name}'",
        code="INVALID_ARGUMENTS",
        hint=did_you_mean(name, list(known.values())) or f"There are: {', '.join(known.values())}.",
    )


def _like(wanted: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows into the columns of others: by name, with values of their types."""
    known = {name.lower(): name for name in schema.names}
    given = {name.lower(): name for name in wanted.column_names}
    if len(known) < len(schema.names):
        raise RowMergeError(
            "Two columns of the rows have the same name",
            code="INVALID_ARGUMENTS",
            hint="Give each column of the query a name of its own.",
        )
    for name in given.keys() - known.keys():
        raise _no_column(given[name], known)
    if left := [name for key, name in known.items() if key not in given]:
        raise RowMergeError(
            f"The wanted rows have no column '{left[0]}'",
            code="INVALID_ARGUMENTS",
            hint=f"The columns are: {', '.join(schema.names)}.",
        )
    return pa.table([_cast(wanted.column(given[field.name.lower()]), field) for field in schema], schema=schema)


def _cast(values: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Convert the values of a column into a type that holds all of them."""
    if values.null_count == len(values):
        return pa.chunked_array([pa.nulls(len(values), field.type)])
    try:
        # Arrow takes an integer for one of 19 digits, which no small decimal holds; its text is as long as it is.
        texts = pa.types.is_integer(values.type) and pa.types.is_decimal(field.type)
        return (values.cast(pa.string()) if texts else values).cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise RowMergeError(
            f"Column '{field.name}' of the wanted rows does not fit {from_arrow(field.type)}: {error}",
            code="INVALID_ARGUMENTS",
            hint="Give values of the column's type.",
        ) from error
