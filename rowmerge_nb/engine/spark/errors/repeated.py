"""Descriptions of target rows that were matched more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.values import python_rows
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.trace.join_record import DuplicateGroup, MatchedRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MESSAGE: Final = "One MERGE target table row matched more than one source row"
"""Trino's message."""
NAMED_SOURCES: Final = 20
SINGLE_PARTITION: Final = 1 << 33
"""Positions from here on span several partitions or splits, and are not displayed as row numbers.
"""


def group_of(rows: pa.Table, target_names: Sequence[str]) -> DuplicateGroup:
    """Return a target row and the first source rows that matched it.

    Args:
        rows: its joined rows: ``case_number``, ``row_id`` and optionally ``witness``.
    """
    cases = pc.fill_null(rows["case_number"], -1)
    numbers = (
        rows["witness"].combine_chunks().field(0)
        if "witness" in rows.column_names
        else pa.nulls(rows.num_rows, pa.int64())
    )
    numbers = pc.if_else(pc.less(numbers, SINGLE_PARTITION), numbers, None)
    order = pa.table({"source_row": pc.fill_null(numbers, -1), "case_number": cases})
    first = pc.sort_indices(order, [("source_row", "ascending"), ("case_number", "ascending")])[
        :NAMED_SOURCES
    ]
    page = rows.take(first).combine_chunks().to_batches()[0]
    matches = [(row, _positional(row.get("witness"))) for row in python_rows(page)]
    sources = [
        MatchedRow(number, source, -1 if row["case_number"] is None else row["case_number"])
        for row, (number, source, _) in matches
    ]
    row, (_, _, target) = matches[0]
    clauses = pc.unique(cases).to_pylist()
    number = clauses[0] if len(clauses) == 1 else None
    return DuplicateGroup(
        row["row_id"],
        dict(zip(target_names, target.values(), strict=False)),
        tuple(sources),
        number,
        rows.num_rows,
    )


def _positional(
    witness: Mapping[str, Any] | None,
) -> tuple[int | None, Mapping[str, Any], Mapping[str, Any]]:
    if witness is None:
        return None, {}, {}
    source_row, source, target = witness.values()
    return (
        source_row if source_row is not None and source_row < SINGLE_PARTITION else None,
        source or {},
        target or {},
    )


def named_group(
    group: DuplicateGroup, count: int, rule: RepeatedMatches, *, is_cut: bool = False
) -> str:
    """Describe a target row, the rows that matched it, and the number of other such rows."""
    target = (
        ", ".join(
            f"{column_in_sql(name)} = {shown_value(value)}" for name, value in group.target.items()
        )
        or f"row_id = {group.row_id!r}"
    )
    rows = [str(source.source_row) for source in group.sources if source.source_row is not None]
    few = 1 < len(rows) == group.total <= 5
    where = (
        f"source rows {', '.join(rows[:-1])} and {rows[-1]}"
        if few
        else f"{group.total} source rows"
    )
    if group.case_number is None:
        clauses = (
            "by clauses"
            f" {', '.join(str(n) for n in sorted({s.case_number for s in group.sources}))}"
        )
        clauses += (
            ""
            if rule == RepeatedMatches.STANDARD
            else ", and the result would depend on the order of rows"
        )
    elif group.case_number < 0:
        clauses = "alalthough no clause fires for them"
    else:
        clauses = f"by clause {group.case_number}"
    others = plural(count - 1, "more target row")
    more = (
        ""
        if count == 1
        else f" {'At least ' if is_cut else ''}{others} {'is' if count == 2 else 'are'} affected."
    )
    return f"Target row ({target}) is matched by {where} {clauses}.{more}"


def shown_value(value: Any) -> str:
    text = "NULL" if value is None else quoted_text(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
