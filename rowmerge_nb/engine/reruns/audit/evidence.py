"""The differing rows by key: the former, expected and actual rows, with the journeys that lead to
them.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import TraceLevel
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.engine.tasks.audit_passes import RowChooser, page_hashes
from rowmerge_nb.engine.tasks.row_hashes import among, row_hashes
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.tree import statements as t
from rowmerge_nb.trace.audit import AuditedRow, Cause, RowFate
from rowmerge_nb.trace.journeys import FATES, Fate, TermTruth, journeys_of
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from rowmerge_nb.engine.reruns.audit.audited_tables import Audited
    from rowmerge_nb.engine.tasks.bags import Bag
    from rowmerge_nb.engine.tasks.row_hashes import Hashes
    from rowmerge_nb.trace.clause_record import Term
    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.trace import Trace

Row = Mapping[str, Any]
Key = tuple[str, ...]

MOST_JOURNEYS: Final = 5
"""The maximum number of journeys per key."""
_CROWD: Final = 10
"""The maximum number of rows read per listed key."""
_QUARTER: Final = dt.timedelta(minutes=15)
_FARTHEST: Final = dt.timedelta(hours=26)
_ASKED: Final = "audited_rows_before"


def key_of(trace: Trace, names: Sequence[str]) -> tuple[str, ...]:
    read = {name for _, name in _reads(trace.join.on, "target")}
    assigned = {name for clause in trace.clauses for name, _ in clause.values}
    key = [
        name for name in names if (name in read if trace.kind == "MERGE" else name not in assigned)
    ]
    return tuple(key or names)


def _reads(on: Term | None, side: str) -> list[tuple[str, str]]:
    return (
        []
        if on is None
        else [(of, name) for term in on.walk() for of, name in term.reads if of == side]
    )


class Evidence:
    """The facts about the differing rows.

    Args:
        wrong: the differing rows; positive counts are missing rows.
    """

    def __init__(
        self,
        tables: Audited,
        tree: t.Merge | t.Update | t.Delete,
        trace: Trace,
        wrong: Bag,
        key: Sequence[str],
        most: int,
    ) -> None:
        self.tables = tables
        self.tree = tree
        self.wrong = wrong
        self.key = tuple(key)
        self.most = most
        self._types = [sql_type.arrow for _, sql_type in tables.columns]
        self._trace = trace
        self._hashes: dict[Key, Hashes] = {}

    def rows(self) -> list[AuditedRow]:
        missing, unexpected = self.wrong.more, self.wrong.less
        unexpected_rows = self.tables.find(
            after=True, most=self.most, hashes=unexpected.first(self.most)
        )
        missing_rows = self.tables.find(
            after=False, most=self.most, hashes=missing.first(self.most)
        )
        keys = ascending(np.concatenate([self._keys(unexpected_rows), self._keys(missing_rows)]))
        if not self._is_complete:
            self._trace = self._chosen(keys)
        new_rows = self._made(missing)
        missing_rows = self._once(pa.concat_tables([missing_rows, new_rows]))[: self.most]
        pairs = self.tables.find(
            after=True,
            most=self.most,
            hashes=unexpected.hashes,
            keys=ascending(self._keys(missing_rows)),
            key=self.key,
        )
        unexpected_rows = self._once(pa.concat_tables([pairs, unexpected_rows]))[: self.most]
        # All differing rows of a listed key are listed, since its outcome depends on all of them.
        keys = ascending(self._keys(unexpected_rows))
        related_rows = self.tables.find(
            after=False, most=self.most, hashes=missing.hashes, keys=keys, key=self.key
        )
        related_new_rows = new_rows.filter(pa.array(among(self._keys(new_rows), keys)))
        missing_rows = self._once(pa.concat_tables([missing_rows, related_rows, related_new_rows]))
        keys = ascending(np.concatenate([self._keys(missing_rows), self._keys(unexpected_rows)]))
        sides = [
            self.tables.find(after=side, most=self.most * _CROWD, keys=keys, key=self.key)
            for side in (False, True)
        ]
        before, now = (self._by_key(side) for side in sides)
        missing_by_key, unexpected_by_key = (
            self._by_key(rows, bag)
            for rows, bag in ((missing_rows, missing), (unexpected_rows, unexpected))
        )
        journeys = self._journeys()
        audited_rows = [
            self._row(
                key,
                before.get(key, []),
                missing_by_key.get(key, []),
                unexpected_by_key.get(key, []),
                now.get(key, []),
                journeys.get(key, []),
            )
            for key in dict.fromkeys([*missing_by_key, *unexpected_by_key])
        ]
        return self._with_where(audited_rows)

    def speaks_for(self, cause: Cause, rows: Sequence[AuditedRow]) -> bool:
        """Return whether the listed rows have the traits of a known difference, which is a
        condition for testing it.
        """
        if cause in {Cause.NULL_KEYS, Cause.CASE, Cause.PADDING}:
            keys = list(self._all_keys(rows))
            if cause is Cause.NULL_KEYS:
                return any(None in key for key in keys)
            form = str.lower if cause is Cause.CASE else str.rstrip
            alike = {_texts(form(v) if isinstance(v, str) else v for v in key) for key in keys}
            return len(alike) < len(set(map(_texts, keys)))
        if cause is Cause.FRACTIONS:
            return any(
                self._is_beside(name, rows)
                for name, sql_type in self.tables.columns
                if pa.types.is_integer(sql_type.arrow)
            )
        conditions = [
            verdict for row in rows for journey in row.journeys for verdict in journey.verdicts
        ]
        fates = {verdict.fate for verdict in conditions} | {
            FATES.get(row.where.answer) for row in rows if row.where is not None
        }
        if cause is Cause.UNKNOWN:
            return Fate.UNKNOWN in fates or Fate.NOT_TRUE in fates
        if cause is Cause.CONDITION:
            return bool(fates & {Fate.UNKNOWN, Fate.FALSE, Fate.NOT_TRUE})
        return True

    def _is_beside(self, name: str, rows: Sequence[AuditedRow]) -> bool:
        missing = {values[name] for row in rows for values in row.missing}
        unexpected = {values[name] for row in rows for values in row.unexpected} - {None}
        return any(number + 1 in missing or number - 1 in missing for number in unexpected)

    def is_explained(self, rows: Sequence[AuditedRow], rest: Bag) -> bool:
        masks = [rest.holds(self._hashes[_texts(row.key.values())]) for row in rows]
        return any(not mask.any() for mask in masks) and all(
            mask.all() or not mask.any() for mask in masks
        )

    def with_cause(self, rows: list[AuditedRow], rest: Bag, cause: Cause) -> list[AuditedRow]:
        return [
            (
                row
                if cause in row.causes or rest.holds(self._hashes[_texts(row.key.values())]).any()
                else replace(row, causes=(*row.causes, cause))
            )
            for row in rows
        ]

    # -- joined rows

    @property
    def _is_complete(self) -> bool:
        trace = self._trace
        return not trace.join.rows if trace.samples.pages is None else trace.samples.is_whole

    def _chosen(self, keys: Hashes) -> Trace:
        some = ascending(
            np.concatenate([self.wrong.more.first(self.most), self.wrong.less.first(self.most)])
        )
        source = tuple(self._partners.get(name, "") for name in self.key)
        types = tuple(sql_type.arrow for name, sql_type in self.tables.columns if name in self.key)
        ordered = tuple(name for name in self.tables.names if name in self.key)
        source = () if "" in source else tuple(self._partners[name] for name in ordered)
        chooser = RowChooser(some, keys, ordered, source, types, self.most * _CROWD)
        return self.tables.run(self.tree.text, trace=TraceLevel.FULL, chooser=chooser)[1].trace

    @cached_property
    def _partners(self) -> Mapping[str, str]:
        partners = {}
        for term in () if self._trace.join.on is None else self._trace.join.on.walk():
            sides = dict(term.reads)
            if len(term.reads) == 2 and set(sides) == {"source", "target"}:
                partners[sides["target"]] = sides["source"]
        return partners

    def _made(self, missing: Bag) -> pa.Table:
        schema = pa.schema(
            [pa.field(name, sql_type.arrow) for name, sql_type in self.tables.columns]
        )
        pages = self._trace.samples.pages
        if pages is None:
            return schema.empty_table()
        operations = pages.after.column(pages.layout.after.operation).to_numpy(zero_copy_only=False)
        inserted_rows = operations == int(Operation.INSERT)
        page = pages.after.select(range(len(schema))).filter(pa.array(inserted_rows))
        page = page.filter(pa.array(missing.holds(page_hashes(page, self._types))))
        return pa.Table.from_arrays(page.columns, schema=schema)

    def _journeys(self) -> Mapping[Key, list[Journey]]:
        by_key: dict[Key, list[Journey]] = defaultdict(list)
        for journey in journeys_of(self._trace) or ():
            keys = {
                self._key(row)
                for row in (journey.target, journey.made)
                if row is not None and set(self.key) <= set(row)
            }
            names = [self._partners.get(name, "") for name in self.key]
            if journey.source is not None and set(names) <= set(journey.source):
                keys.add(_texts(journey.source[name] for name in names))
            for key in keys:
                by_key[key].append(journey)
        return by_key

    # -- rows

    def _row(
        self,
        key: Key,
        before: Sequence[Row],
        missing: Sequence[Row],
        unexpected: Sequence[Row],
        now: Sequence[Row],
        journeys: Sequence[Journey],
    ) -> AuditedRow:
        values = {name: next(iter([*missing, *unexpected]))[name] for name in self.key}
        both = [*_unique(missing), *_unique(unexpected)]
        columns = [
            pa.array([row[name] for row in both], sql_type.arrow)
            for name, sql_type in self.tables.columns
        ]
        self._hashes[key] = row_hashes(columns, len(both))
        audited_row = AuditedRow(
            key=values,
            fate=_fate(before, missing, unexpected, now, journeys),
            before=tuple(before),
            missing=tuple(missing),
            unexpected=tuple(unexpected),
            journeys=tuple(journeys[:MOST_JOURNEYS]),
        )
        cause, remark = _cause(audited_row, now)
        return (
            audited_row if cause is None else replace(audited_row, causes=(cause,), remark=remark)
        )

    def _with_where(self, rows: list[AuditedRow]) -> list[AuditedRow]:
        condition = next(
            (clause.condition for clause in self._trace.clauses if clause.condition is not None),
            None,
        )
        unselected_rows = [row for row in rows if not row.journeys and row.before]
        if isinstance(self.tree, t.Merge) or condition is None or not unselected_rows:
            return rows
        terms = list(condition.walk())
        schema = pa.schema(
            [pa.field(name, sql_type.arrow) for name, sql_type in self.tables.columns]
        )
        frame = pa.Table.from_pylist([dict(row.before[0]) for row in unselected_rows], schema)
        columns = ", ".join(
            f"CAST(({term.text}) AS boolean) AS c{index}" for index, term in enumerate(terms)
        )
        alias = self.tree.target.parts[-1].text
        try:
            answers = self.tables.ask(
                f'SELECT {columns} FROM {_ASKED} AS "{alias}"', {_ASKED: frame}
            )
        except RowMergeError:
            # The condition is not valid by itself, for example with a qualified name, or fails for
            # a row.
            return rows
        truths = {
            id(row): _truth(condition, iter(answer), row.before[0])
            for row, answer in zip(unselected_rows, answers, strict=True)
        }
        return [replace(row, where=truths[id(row)]) if id(row) in truths else row for row in rows]

    def _all_keys(self, rows: Sequence[AuditedRow]) -> Iterator[Sequence[Any]]:
        names = [self._partners.get(name, "") for name in self.key]
        for row in rows:
            yield tuple(row.key.values())
        for journey in journeys_of(self._trace) or ():
            if journey.source is not None and set(names) <= set(journey.source):
                yield tuple(journey.source[name] for name in names)

    def _by_key(self, rows: pa.Table, bag: Bag | None = None) -> dict[Key, list[Row]]:
        hashes = self._row_hashes(rows)
        columns = [python_values(column) for column in rows.columns]
        by_key: dict[Key, list[Row]] = defaultdict(list)
        for hashed, *values in zip(hashes.tolist(), *columns, strict=True):
            row = dict(zip(rows.column_names, values, strict=True))
            by_key[self._key(row)] += [row] * (
                1 if bag is None else min(bag.count_of(hashed), self.most)
            )
        return by_key

    def _key(self, row: Row) -> Key:
        return _texts(row[name] for name in self.key)

    def _keys(self, rows: pa.Table) -> Hashes:
        return row_hashes(
            [_whole(rows.column(name)) for name in self.tables.names if name in self.key],
            rows.num_rows,
        )

    def _row_hashes(self, rows: pa.Table) -> Hashes:
        return row_hashes([_whole(column) for column in rows.columns], rows.num_rows)

    def _once(self, rows: pa.Table) -> pa.Table:
        _, first = np.unique(self._row_hashes(rows), return_index=True)
        return rows.take(pa.array(np.sort(first)))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _texts(values: Any) -> Key:
    return tuple(map(repr, values))


def _unique(rows: Sequence[Row]) -> list[Row]:
    return list({repr(row): row for row in rows}.values())


def _fate(
    before: Sequence[Row],
    missing: Sequence[Row],
    unexpected: Sequence[Row],
    now: Sequence[Row],
    journeys: Sequence[Journey],
) -> RowFate:
    # Compare text, since NaN is not equal to itself.
    before_texts, missing_texts, unexpected_texts, now_texts = (
        list(map(repr, rows)) for rows in (before, missing, unexpected, now)
    )
    if missing_texts and unexpected_texts:
        return (
            RowFate.NOT_CHANGED
            if set(unexpected_texts) <= set(before_texts)
            else RowFate.OTHER_VALUES
        )
    if missing_texts:
        return RowFate.TOO_RARE if missing_texts[0] in now_texts else RowFate.NOT_THERE
    if now_texts.count(unexpected_texts[0]) > unexpected_texts.count(unexpected_texts[0]):
        return RowFate.TOO_OFTEN
    deleted = any(journey.operation is Operation.DELETE for journey in journeys)
    return (
        RowFate.STILL_THERE
        if deleted or unexpected_texts[0] in before_texts
        else RowFate.NOT_ASKED_FOR
    )


def _cause(row: AuditedRow, now: Sequence[Row]) -> tuple[Cause | None, str]:
    if (shift := _shift(row)) is not None:
        hours = shift / dt.timedelta(hours=1)
        return Cause.TIME_ZONE, f"by {'+' if hours > 0 else ''}{hours:g} hours"
    groups: dict[str, list[Journey]] = defaultdict(list)
    for journey in row.journeys:
        if journey.target is not None and journey.operation in {Operation.UPDATE, Operation.DELETE}:
            groups[repr(journey.target)].append(journey)
    for acting in groups.values():
        if (
            len(acting) < 2
            or row.unexpected
            or not all(any(missing_row == j.made for j in acting) for missing_row in row.missing)
        ):
            continue
        winners = [
            index
            for index, j in enumerate(acting)
            if (j.made in now if j.made is not None else not now)
        ]
        if winners:
            which = {0: "the first one", len(acting) - 1: "the last one"}.get(
                winners[0], "one in between"
            )
            return Cause.DUPLICATES, f"{which} wins" if len(winners) == 1 else ""
    return None, ""


def _shift(row: AuditedRow) -> dt.timedelta | None:
    """Return the offset by which every timestamp of the row is shifted, if it is right otherwise;
    else None.
    """
    if len(row.missing) != 1 or len(row.unexpected) != 1:
        return None
    expected, actual = row.missing[0], row.unexpected[0]
    shifts = set()
    for name, value in expected.items():
        if repr(value) == repr(actual[name]):
            continue
        if not isinstance(value, dt.datetime) or not isinstance(actual[name], dt.datetime):
            return None
        shifts.add(actual[name] - value)
    [shift, *others] = shifts or {dt.timedelta()}
    return None if others or not shift or shift % _QUARTER or abs(shift) > _FARTHEST else shift


def _truth(term: Term, answers: Iterator[bool | None], row: Row) -> TermTruth:
    answer = {True: Answer.TRUE, False: Answer.FALSE, None: Answer.UNKNOWN}[next(answers)]
    values = tuple((side, name, row.get(name)) for side, name in term.reads)
    return TermTruth(term, answer, values, tuple(_truth(part, answers, row) for part in term.terms))
