"""Naming duplicates: which target rows, source rows and clauses, and a way out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.errors import DuplicateMatchError
from rowmerge_nb.base.words import code, plural
from rowmerge_nb.engine.spark.errors.repeated import MESSAGE, group_of, named_group, shown_value
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.typed.expressions import Apply, Column, references
from rowmerge_nb.sql.typed.type_rules import MOMENTS, is_numeric
from rowmerge_nb.trace.join_record import DuplicateGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.engine.statements.account import Account
    from rowmerge_nb.sql.analyzer.analysis import Field, MergeAnalysis, MergeSource
    from rowmerge_nb.sql.typed.expressions import Typed

NAMED_GROUPS = 20
UNORDERED: Final = frozenset({"map", "json"})
"""Types whose values have no order."""
_CHANGE: Final = re.compile(
    r"(?i)(?:updat|modifi|chang|load|ingest|sync)(?:ed|es?)?(?![a-z])|(?<![a-z])(?:version|revision)"
)
"""Names of columns that say when a row was written last."""
_VERSION: Final = re.compile(r"(?i)(?<![a-z])(?:version|revision)(?![a-z])")
_AT: Final = re.compile(r"(?i)(?:[_ ]at|[a-z]At)$")


def groups_of(
    account: Account, analysis: MergeAnalysis, *, failing: bool
) -> tuple[DuplicateGroup, ...]:
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
    hint = _remedy(analysis, groups)
    if groups:
        hint = f"{named_group(groups[0], len(account.failing), rule, is_cut=account.is_cut)} {hint}"
    source = proposal(analysis, groups)
    return DuplicateMatchError(MESSAGE, groups=groups, hint=hint, proposal=source)


def proposal(analysis: MergeAnalysis, groups: Sequence[DuplicateGroup]) -> str | None:
    """Return a source with one row per key, for USING.

    It is the newest row by a date, timestamp or version in which the rows of ``groups`` differ.
    Without such a column, it is the first one in the order of the other columns.

    It has the columns that the statement reads. None unless ON compares plain columns of the source
    by ``=``, and all columns have distinct names.
    """
    sides = _keys_and_others(analysis)
    if sides is None:
        return None
    keys, others = sides
    names = {str(field.name).lower() for field in analysis.source.fields}
    number = next(
        name for name in ("rn", *(f"rn_{i}" for i in range(len(names) + 1))) if name not in names
    )
    ordered = [field for field in others if field.type.base not in UNORDERED]
    columns = [field for field in analysis.source.fields if field in keys or field in others]
    moment = _moment(analysis, keys, groups)
    order = _listed(ordered or keys) if moment is None else f"{_listed([moment])} DESC"
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY {_listed(keys)} ORDER BY"
        f" {order}) AS {number} FROM {analysis.source.text}"
    )
    return _aliased(
        f"(SELECT {_listed(columns)} FROM ({numbered}) WHERE {number} = 1)", analysis.source
    )


def _moment(
    analysis: MergeAnalysis, keys: Sequence[Field], groups: Sequence[DuplicateGroup]
) -> Field | None:
    """Return the column that says which row is the newest, or None.

    Columns with one newest row in every group come first, then those that the statement does not read.
    """
    ranks = []
    for field in analysis.source.fields:
        name = str(field.name)
        is_version = is_numeric(field.type) and _VERSION.search(name) is not None
        if field in keys or not (field.type.base in MOMENTS or is_version):
            continue
        unknown = not any(name in source.values for group in groups for source in group.sources)
        newest_count = sum(_has_newest(group, name) for group in groups)
        if not unknown and not newest_count:
            continue
        word = 0 if _CHANGE.search(name) else 1 if _AT.search(name) else 2
        ranks.append((1 if unknown else 0 if newest_count == len(groups) else 2, word, field))
    return min(ranks, key=lambda rank: rank[:2])[2] if ranks else None


def _has_newest(group: DuplicateGroup, name: str) -> bool:
    values = [source.values.get(name) for source in group.sources]
    moments = [value for value in values if value is not None]
    return bool(moments) and moments.count(max(moments)) == 1


def sums(analysis: MergeAnalysis) -> str | None:
    """Return a source with one row per key, for USING, that adds up the numbers that clauses write;
    None without such numbers.
    """
    sides = _keys_and_others(analysis)
    if sides is None:
        return None
    keys, others = sides
    values = _symbols(
        value.tree for clause in analysis.clauses for value in clause.values if value is not None
    )
    added = [field for field in others if is_numeric(field.type) and field.symbol in values]
    if not added or any(field.type.base in UNORDERED for field in others):
        return None
    columns = [
        _sum(field)
        if field in added
        else f"max({column_in_sql(str(field.name))}) AS {column_in_sql(str(field.name))}"
        if field in others
        else column_in_sql(str(field.name))
        for field in analysis.source.fields
        if field in keys or field in others
    ]
    return _aliased(
        f"(SELECT {', '.join(columns)} FROM {analysis.source.text} GROUP BY {_listed(keys)})",
        analysis.source,
    )


def _sum(field: Field) -> str:
    """Add up a column in its own type, which the target's column accepts."""
    name = column_in_sql(str(field.name))
    own = field.type.base in {"bigint", "double", "real"}
    return f"{f'sum({name})' if own else f'CAST(sum({name}) AS {field.type})'} AS {name}"


def _keys_and_others(analysis: MergeAnalysis) -> tuple[list[Field], list[Field]] | None:
    """Return the source's columns that ON compares, and the others that the statement reads."""
    fields = analysis.source.fields
    names = [field.name for field in fields]
    compared = {_uncast(side) for _, side in analysis.equalities}
    keys = [field for field in fields if Column(field.type, field.symbol) in compared]
    distinct = None not in names and len({str(name).lower() for name in names}) == len(names)
    if not keys or len(compared) != len(keys) or not distinct:
        return None
    read = _symbols(
        expression.tree
        for clause in analysis.clauses
        for expression in (clause.condition, *clause.values)
        if expression is not None
    ) | _symbols([analysis.on.tree])
    if analysis.returning is not None:
        read |= _symbols(column.expression.tree for column in analysis.returning.columns)
    return keys, [field for field in fields if field not in keys and field.symbol in read]


def _symbols(trees: Iterable[Typed]) -> set[str]:
    return {symbol for tree in trees for symbol in references(tree)}


def _listed(fields: Iterable[Field]) -> str:
    return ", ".join(column_in_sql(str(field.name)) for field in fields)


def _aliased(query: str, source: MergeSource) -> str:
    return query if source.alias is None else f"{query} AS {column_in_sql(source.alias)}"


def _uncast(side: Typed) -> Typed:
    """Remove casts that only lengthen a text, which has the same rows as a key."""
    while (
        isinstance(side, Apply)
        and side.name == "cast"
        and side.type.base == side.arguments[0].type.base == "varchar"
    ):
        side = side.arguments[0]
    return side


def _remedy(analysis: MergeAnalysis, groups: Sequence[DuplicateGroup]) -> str:
    query = proposal(analysis, groups)
    if query is None:
        return "Make the ON condition match each target row at most once."
    keys, _ = _keys_and_others(analysis) or ([], [])
    moment = _moment(analysis, keys, groups)
    added = sums(analysis)
    choice = "the first of each key" if moment is None else f"the newest by {_listed([moment])}"
    text = (
        f"Give each target row only one source row, for example {choice}: {code(f'USING {query}')}"
    )
    if added is not None:
        text += f", or with the sum of its numbers: {code(f'USING {added}')}"
    if moment is None:
        text += ". Its ORDER BY chooses the row: name the column that marks the newest, with DESC."
    return text


def two_versions(
    groups: Sequence[DuplicateGroup], count: int, analysis: MergeAnalysis, *, rehearsed: bool
) -> str:
    """Describe the rows that two clauses changed in a finished statement, and what to do."""
    changed = "would be changed" if rehearsed else "was changed" if count == 1 else "were changed"
    text = (
        f"{plural(count, 'target row')} {changed} by more than one clause. Trino"
        f" allows that, and the table {'would hold' if rehearsed else 'now holds'} a version"
        " of the row per clause that updates it; duplicates='standard' refuses it"
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
    return f"{text}. {_remedy(analysis, groups)}"
