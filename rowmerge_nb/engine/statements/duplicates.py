"""Naming duplicates: which target rows, which source rows, which clauses, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.choices import RepeatedMatches
from rowmerge_nb.errors import DuplicateMatchError
from rowmerge_nb.names import quoted_where_needed
from rowmerge_nb.spi.values import python_rows
from rowmerge_nb.sql.parser.tokens import RESERVED
from rowmerge_nb.sql.typed.expressions import Apply, Column
from rowmerge_nb.trace.trace import DuplicateGroup, MatchedRow
from rowmerge_nb.words import code, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
    from rowmerge_nb.sql.typed.expressions import Typed

__all__ = ["MESSAGE", "duplicate_error", "group_of", "groups_of", "named_group", "proposal", "two_versions"]

NAMED_GROUPS = 20
UNORDERED: Final = frozenset({"map", "json"})
"""Types whose values have no order."""
NAMED_SOURCES = 20
SINGLE_PARTITION = 1 << 33
"""Positions from here on come of several partitions or splits, and are no row numbers for people."""
MESSAGE = "One MERGE target table row matched more than one source row"


def groups_of(account: Account, analysis: MergeAnalysis, *, failing: bool) -> tuple[DuplicateGroup, ...]:
    """Give the target rows that were matched more than once, with what matched them.

    Args:
        account: what the tasks told.
        analysis: the statement.
        failing: those that fail the check; otherwise those that only deserve a warning.
    """
    wanted = sorted((account.failing if failing else account.warning)[:NAMED_GROUPS])
    if not wanted or not account.witnesses:
        return ()
    rows = pa.Table.from_batches(account.witnesses)
    names = [column.name for column in analysis.target.columns]
    matches = [rows.filter(pc.equal(rows["unique_id"], number)) for number in wanted]
    return tuple(group_of(found, names) for found in matches if found.num_rows)


def group_of(rows: pa.Table, target_names: Sequence[str]) -> DuplicateGroup:
    """Give a target row and the first source rows that matched it, of which there may be very many.

    Args:
        rows: the joined rows of this target row: ``case_number``, ``row_id`` and, where rows carry it, ``witness``.
        target_names: the names of the target's columns.
    """
    cases = pc.fill_null(rows["case_number"], -1)
    numbers = rows["witness"].combine_chunks().field(0) if "witness" in rows.column_names else pa.nulls(rows.num_rows, pa.int64())
    numbers = pc.if_else(pc.less(numbers, SINGLE_PARTITION), numbers, None)
    order = pa.table({"source_row": pc.fill_null(numbers, -1), "case_number": cases})
    first = pc.sort_indices(order, [("source_row", "ascending"), ("case_number", "ascending")])[:NAMED_SOURCES]
    page = rows.take(first).combine_chunks().to_batches()[0]
    shown = [(row, _positional(row.get("witness"))) for row in python_rows(page)]
    sources = [
        MatchedRow(number, source, -1 if row["case_number"] is None else row["case_number"]) for row, (number, source, _) in shown
    ]
    row, (_, _, target) = shown[0]
    clauses = pc.unique(cases).to_pylist()
    number = clauses[0] if len(clauses) == 1 else None
    return DuplicateGroup(
        row["row_id"], dict(zip(target_names, target.values(), strict=False)), tuple(sources), number, rows.num_rows
    )


def _positional(witness: Mapping[str, Any] | None) -> tuple[int | None, Mapping[str, Any], Mapping[str, Any]]:
    if witness is None:
        return None, {}, {}
    source_row, source, target = witness.values()
    return source_row if source_row is not None and source_row < SINGLE_PARTITION else None, source or {}, target or {}


def duplicate_error(account: Account, analysis: MergeAnalysis, rule: RepeatedMatches) -> DuplicateMatchError:
    """Make the error: Trino's sentence, and a hint that names the first target row and a way out."""
    groups = groups_of(account, analysis, failing=True)
    hint = _remedy(analysis)
    if groups:
        hint = f"{named_group(groups[0], len(account.failing), rule)} {hint}"
    return DuplicateMatchError(MESSAGE, groups=groups, hint=hint, proposal=proposal(analysis))


def named_group(group: DuplicateGroup, count: int, rule: RepeatedMatches) -> str:
    """Name the first target row that was matched more than once, and what matched it; of the others, how many there are."""
    target = ", ".join(f"{name} = {_shown(value)}" for name, value in group.target.items()) or f"row_id = {group.row_id!r}"
    rows = [str(source.source_row) for source in group.sources if source.source_row is not None]
    few = 1 < len(rows) == group.total <= 5
    where = f"source rows {', '.join(rows[:-1])} and {rows[-1]}" if few else f"{group.total} source rows"
    if group.case_number is None:
        clauses = f"by clauses {', '.join(str(n) for n in sorted({s.case_number for s in group.sources}))}"
        clauses += "" if rule == RepeatedMatches.STANDARD else ", and the result would depend on the order of rows"
    elif group.case_number < 0:
        clauses = "though no clause fires for them"
    else:
        clauses = f"by clause {group.case_number}"
    others = plural(count - 1, "more target row")
    more = "" if count == 1 else f" {others} {'is' if count == 2 else 'are'} affected."
    return f"Target row ({target}) is matched by {where} {clauses}.{more}"


def _shown(value: Any) -> str:
    """Write a value as SQL would, cut where it is long."""
    text = "NULL" if value is None else "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def proposal(analysis: MergeAnalysis) -> str | None:
    """Write a source with one row per key, for USING: the first row of each key, by the other columns' order.

    None where ON does not compare plain columns of the source by ``=``, or where columns have no name of their own.
    """
    source = analysis.source
    names = [field.name for field in source.fields]
    compared = {_uncast(side) for _, side in analysis.equalities}
    keys = [field for field in source.fields if Column(field.type, field.symbol) in compared]
    plain = len(compared) == len(keys)
    if not keys or not plain or None in names or len({str(name).lower() for name in names}) < len(names):
        return None
    others = [field for field in source.fields if field not in keys and field.type.base not in UNORDERED]
    number = next(
        name for name in ("rn", *(f"rn_{i}" for i in range(len(names) + 1))) if name not in [str(n).lower() for n in names]
    )
    partition, order, columns = (
        ", ".join(quoted_where_needed(str(field.name), RESERVED) for field in fields)
        for fields in (keys, others or keys, source.fields)
    )
    numbered = f"SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS {number} FROM {source.text}"
    chosen = f"(SELECT {columns} FROM ({numbered}) WHERE {number} = 1)"
    return chosen if source.alias is None else f"{chosen} AS {quoted_where_needed(source.alias, RESERVED)}"


def _uncast(side: Typed) -> Typed:
    """Leave out what makes a text longer only: it has the same rows as a key."""
    while isinstance(side, Apply) and side.name == "cast" and side.type.base == side.arguments[0].type.base == "varchar":
        side = side.arguments[0]
    return side


def _remedy(analysis: MergeAnalysis) -> str:
    query = proposal(analysis)
    if query is None:
        return "Make the ON condition match each target row at most once."
    return f"Give each target row one source row, for example the first of each key: {code(f'USING {query}')}"


def two_versions(groups: Sequence[DuplicateGroup], count: int, analysis: MergeAnalysis, *, rehearsed: bool) -> str:
    """Say of a statement that finished which rows two clauses changed, and what to do."""
    changed = "would be changed" if rehearsed else "was changed" if count == 1 else "were changed"
    text = (
        f"{plural(count, 'target row')} {changed} by more than one clause. Trino lets that pass, and "
        f"the table {'would hold' if rehearsed else 'now holds'} a version of the row per clause that updates it; "
        "duplicates='standard' refuses it"
    )
    if groups and groups[0].target:
        sources = " and ".join(
            f"{'a source row' if s.source_row is None else f'source row {s.source_row}'} by clause {s.case_number}"
            for s in groups[0].sources[:3]
        )
        target = ", ".join(f"{name} = {_shown(value)}" for name, value in groups[0].target.items())
        text += f". The first of them: target row ({target}), changed by {sources}"
    return f"{text}. {_remedy(analysis)}"
