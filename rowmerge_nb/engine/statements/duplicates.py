"""Naming duplicates: which target rows, source rows and clauses, and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.errors import DuplicateMatchError
from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.base.words import code, plural
from rowmerge_nb.engine.errors.repeated import MESSAGE, group_of, named_group, shown_value
from rowmerge_nb.sql.analyzer.column_names import column_in_sql
from rowmerge_nb.sql.parser.tokens import RESERVED
from rowmerge_nb.sql.typed.expressions import Apply, Column
from rowmerge_nb.trace.join_record import DuplicateGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
    from rowmerge_nb.sql.typed.expressions import Typed

NAMED_GROUPS = 20
UNORDERED: Final = frozenset({"map", "json"})
"""Types whose values have no order."""


def groups_of(
    account: Account, analysis: MergeAnalysis, *, failing: bool
) -> tuple[DuplicateGroup, ...]:
    """Return the target rows that were matched more than once, with their matches."""
    row_numbers = sorted((account.failing if failing else account.warning)[:NAMED_GROUPS])
    if not row_numbers or not account.witnesses:
        return ()
    rows = pa.Table.from_batches(account.witnesses)
    names = [column.name for column in analysis.target.columns]
    matches = [rows.filter(pc.equal(rows["unique_id"], number)) for number in row_numbers]
    return tuple(group_of(group, names) for group in matches if group.num_rows)


def duplicate_error(
    account: Account, analysis: MergeAnalysis, rule: RepeatedMatches
) -> DuplicateMatchError:
    groups = groups_of(account, analysis, failing=True)
    hint = _remedy(analysis)
    if groups:
        hint = f"{named_group(groups[0], len(account.failing), rule, is_cut=account.is_cut)} {hint}"
    return DuplicateMatchError(MESSAGE, groups=groups, hint=hint, proposal=proposal(analysis))


def proposal(analysis: MergeAnalysis) -> str | None:
    """Return a source with one row per key, for USING: the first row of each key in the order of
    the other columns.

    None unless ON compares plain columns of the source by ``=``, and all columns have distinct
    names.
    """
    source = analysis.source
    names = [field.name for field in source.fields]
    compared = {_uncast(side) for _, side in analysis.equalities}
    keys = [field for field in source.fields if Column(field.type, field.symbol) in compared]
    plain = len(compared) == len(keys)
    if (
        not keys
        or not plain
        or None in names
        or len({str(name).lower() for name in names}) < len(names)
    ):
        return None
    others = [
        field for field in source.fields if field not in keys and field.type.base not in UNORDERED
    ]
    number = next(
        name
        for name in ("rn", *(f"rn_{i}" for i in range(len(names) + 1)))
        if name not in [str(n).lower() for n in names]
    )
    partition, order, columns = (
        ", ".join(quoted_where_needed(str(field.name), RESERVED) for field in fields)
        for fields in (keys, others or keys, source.fields)
    )
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS {number} FROM"
        f" {source.text}"
    )
    first_rows = f"(SELECT {columns} FROM ({numbered}) WHERE {number} = 1)"
    return (
        first_rows
        if source.alias is None
        else f"{first_rows} AS {quoted_where_needed(source.alias, RESERVED)}"
    )


def _uncast(side: Typed) -> Typed:
    """Remove casts that only lengthen a text, which has the same rows as a key."""
    while (
        isinstance(side, Apply)
        and side.name == "cast"
        and side.type.base == side.arguments[0].type.base == "varchar"
    ):
        side = side.arguments[0]
    return side


def _remedy(analysis: MergeAnalysis) -> str:
    query = proposal(analysis)
    if query is None:
        return "Make the ON condition match each target row at most once."
    return (
        "Give each target row one source row, for example the first of each key:"
        f" {code(f'USING {query}')}"
    )


def two_versions(
    groups: Sequence[DuplicateGroup], count: int, analysis: MergeAnalysis, *, rehearsed: bool
) -> str:
    """Describe the rows that two clauses changed in a finished statement, and what to do."""
    changed = "would be changed" if rehearsed else "was changed" if count == 1 else "were changed"
    text = (
        f"{plural(count, 'target row')} {changed} by more than one clause. Trino lets that pass,"
        f" and the table {'would hold' if rehearsed else 'now holds'} a version of the row per"
        " clause that updates it; duplicates='standard' refuses it"
    )
    if groups and groups[0].target:
        sources = " and ".join(
            f"{'a source row' if s.source_row is None else f'source row {s.source_row}'} by clause"
            f" {s.case_number}"
            for s in groups[0].sources[:3]
        )
        target = ", ".join(
            f"{column_in_sql(name)} = {shown_value(value)}"
            for name, value in groups[0].target.items()
        )
        text += f". The first of them: target row ({target}), changed by {sources}"
    return f"{text}. {_remedy(analysis)}"
