"""The search for the nearest keys of unmatched rows: hash joins of normal forms in DuckDB, linear
in the rows.

Keys are near if they differ only in surrounding blanks, case, Unicode form, number format, time
zone or NULLs; composite keys also if one column differs; in short tables also if one letter
differs. One row represents many with equal normal form, so pairs never multiply.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.engine.observers.near.normal_forms import (
    BITS,
    LETTERS,
    differences,
    kinds_of,
    normal_form,
    without_one_letter,
)
from rowmerge_nb.engine.observers.near.on import (
    MOMENT,
    TEXT,
    On,
    UnreadableError,
    answers_of,
    key_values,
)
from rowmerge_nb.engine.tasks.page_program import require_duckdb
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.near import KeyDifference, NearCount, NearKeys, NearRow, NearSide, Separation
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

MOST_TOLD: Final = 1_000
"""Maximum rows per side in the result."""
MOST_ALIKE: Final = 8
"""Of more rows with the same normal form, one represents all; a key that more rows share except for
one column is not near.
"""
MOST_LETTERS: Final = 1_000_000
"""Maximum characters of both sides for the search of one-letter differences."""
MOST_PAIRS: Final = 4_000_000
"""Maximum pairs of equal keys for which other conditions of ON are computed."""
_ANSWERS: Final = {True: Answer.TRUE, False: Answer.FALSE, None: Answer.UNKNOWN}
_KIND: Final = 1_000
_ONE_LETTER: Final = 1_000 * _KIND
_OTHER_VALUE: Final = 2 * _ONE_LETTER
"""Distances by kind of difference, one letter, another value; a condition that is not true adds 1.
"""


@dataclass(frozen=True)
class SideRows:
    columns: pa.RecordBatch
    names: Mapping[str, str]
    numbers: pa.Array | None = None
    matched: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class _Pairs:
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    bits: npt.NDArray[np.int64]
    far: npt.NDArray[np.int64]

    def __add__(self, other: _Pairs) -> _Pairs:
        parts = zip(_fields(self), _fields(other), strict=True)
        return _Pairs(*(np.concatenate(both) for both in parts))

    def taken(self, rows: npt.NDArray[Any]) -> _Pairs:
        return _Pairs(*(part[rows] for part in _fields(self)))


def _fields(pairs: _Pairs) -> tuple[npt.NDArray[np.int64], ...]:
    return pairs.source, pairs.target, pairs.bits, pairs.far


def near_keys(on: On, source: SideRows, target: SideRows) -> NearKeys:
    with closing(_database().cursor()) as connection:
        return _Search(connection, on, source, target).result()


@cache
def _database() -> Any:
    """Return the DuckDB of this process; every search has its own cursor."""
    connection = require_duckdb().connect()
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
        connection.execute(f"SET {setting} = false")
    # Fail rather than spill to disk.
    connection.execute("SET temp_directory = ''")
    return connection


class _Search:
    """One search.

    Its tables ``s`` and ``t`` have the index ``r`` of each row, whether it is matched ``m``, and
    per key the value ``k0`` and normal form ``n0``. A crowd is a large group of rows with the same
    normal forms, represented by one of them.
    """

    def __init__(self, connection: Any, on: On, source: SideRows, target: SideRows) -> None:
        self.connection = connection
        self.on = on
        self.sides = {"s": source, "t": target}
        trees = {"s": [key.source for key in on.keys], "t": [key.target for key in on.keys]}
        self.values = {
            side: [key_values(tree, rows.columns) for tree in trees[side]]
            for side, rows in self.sides.items()
        }
        self.positions = range(len(on.keys))
        self.texts = [
            position for position in self.positions if on.keys[position].type.base in TEXT
        ]
        self.moments = [
            position for position in self.positions if on.keys[position].type.base == MOMENT
        ]

    def result(self) -> NearKeys:
        for side in self.sides:
            self._register(side, {})
        equal, free = self._partners()
        for side in self.sides:
            self._register(
                side,
                {
                    "m": pa.array(~free[side]),
                    **{f"n{position}": self._form(side, position) for position in self.positions},
                },
            )
        alike = equal + self._with_answers(self._alike())
        letters = bool(self.texts) and self._are_few_letters()
        if letters and any(_any_alone(_rows_of(side, alike), free[side]) for side in self.sides):
            for position in self.texts:
                alike += self._with_answers(self._one_letter(position, free))
        source, target = (self._nearest(side, alike, free[side]) for side in self.sides)
        sides = self._side_result("s", "t", free, source), self._side_result("t", "s", free, target)
        return NearKeys(self.on.terms, *sides, letters=letters or not self.texts)

    def _nearest(self, side: str, alike: _Pairs, free: npt.NDArray[np.bool_]) -> _Pairs:
        pairs = alike
        if len(self.positions) > 1 and _any_alone(_rows_of(side, alike), free):
            for position in self.positions:
                pairs += self._with_answers(self._other_value(position, side))
        rows = _rows_of(side, pairs)
        candidates = np.flatnonzero(free[rows])
        others = _rows_of("t" if side == "s" else "s", pairs)
        order = candidates[
            np.lexsort((others[candidates], pairs.far[candidates], rows[candidates]))
        ]
        first = np.ones(len(order), np.bool_)
        first[1:] = rows[order][1:] != rows[order][:-1]
        return pairs.taken(order[first])

    # -- tables

    def _register(self, side: str, more: Mapping[str, pa.Array]) -> None:
        columns = {"r": pa.array(np.arange(self.sides[side].columns.num_rows))}
        columns |= {f"k{position}": key.values for position, key in enumerate(self.values[side])}
        self.connection.register(side, pa.table({**columns, **more}))

    def _form(self, side: str, position: int) -> pa.Array:
        key = self.values[side][position]
        if position in self.texts:
            return normal_form(key.values)
        return key.values if key.clocks is None else key.clocks

    def _columns(self, pattern: str, but: int | None = None, separator: str = ", ") -> str:
        return separator.join(
            pattern.format(position) for position in self.positions if position != but
        )

    def _pairs(self, sql: str, far: int = 0) -> _Pairs:
        table = self.connection.sql(sql).to_arrow_table()
        source, target, *bits = (column.to_numpy() for column in table.columns)
        separated = (
            np.column_stack(bits).astype(np.int64)
            if bits
            else np.zeros((len(source), len(self.positions)), np.int64)
        )
        return _Pairs(source, target, separated, np.full(len(source), far, np.int64))

    def _numbers(self, sql: str) -> npt.NDArray[np.int64]:
        numbers: npt.NDArray[np.int64] = (
            self.connection.sql(sql).to_arrow_table().column(0).to_numpy()
        )
        return numbers

    # -- which rows have no partner

    def _partners(self) -> tuple[_Pairs, dict[str, npt.NDArray[np.bool_]]]:
        """Return the pairs of equal keys that fail another condition of ON, and the unmatched rows
        of each side.
        """
        equal = self._columns("a.k{0} = b.k{0}", separator=" AND ")
        most = MOST_PAIRS + 1 if self.on.conditions else 0
        pairs = self._with_answers(
            self._few_pairs(f"SELECT a.r, b.r FROM s a JOIN t b ON {equal} LIMIT {most}")
        )
        true = pairs.far == 0
        partners = {"s": pairs.source[true], "t": pairs.target[true]}
        if not self.on.conditions:
            for one, other in (("s", "t"), ("t", "s")):
                partners[one] = self._numbers(
                    f"SELECT a.r FROM {one} a SEMI JOIN {other} b ON {equal}"
                )
        free = {}
        for side, rows in self.sides.items():
            free[side] = (
                np.ones(rows.columns.num_rows, np.bool_) if rows.matched is None else ~rows.matched
            )
            free[side][partners[side]] = False
        return pairs.taken(~true), free

    def _few_pairs(self, sql: str) -> _Pairs:
        if not self.on.conditions:
            return _Pairs(
                *(np.zeros(shape, np.int64) for shape in (0, 0, (0, len(self.positions)), 0))
            )
        pairs = self._pairs(sql)
        if len(pairs.source) > MOST_PAIRS:
            raise UnreadableError(
                f"The nearest keys are unknown: more than {MOST_PAIRS:,} pairs of rows"
                " have equal keys, and ON has further conditions"
            )
        return pairs

    def _with_answers(self, pairs: _Pairs) -> _Pairs:
        """Increase the distance of pairs for which other conditions of ON are not true."""
        false = np.zeros(len(pairs.source), np.int64)
        for answers in self._answers(pairs.source, pairs.target):
            false += ~answers.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        return replace(pairs, far=pairs.far + np.minimum(false, _KIND - 1))

    def _answers(
        self, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]
    ) -> list[pa.Array]:
        if not self.on.conditions or not len(source):
            return []
        both = [
            self.sides["s"].columns.take(pa.array(source)),
            self.sides["t"].columns.take(pa.array(target)),
        ]
        names = [name for rows in both for name in rows.schema.names]
        return answers_of(
            self.on.conditions,
            pa.RecordBatch.from_arrays([c for rows in both for c in rows.columns], names=names),
        )

    # -- near keys

    def _alike(self) -> _Pairs:
        """Return pairs of equal normal form with at least one unmatched row."""
        crowded = {side: self._find_crowds(side) for side in self.sides}
        few = {side: self._few(side) if crowded[side] else side for side in self.sides}
        table_pairs = [(few["s"], few["t"])]
        table_pairs += [(self._many("s"), few["t"])] if crowded["s"] else []
        table_pairs += [(few["s"], self._many("t"))] if crowded["t"] else []
        forms: list[Mapping[int, str]] = [{}]
        if self.moments and len(self.positions) > 1:
            # Equal instants match in any zone; another key then separates the rows.
            forms.append(dict.fromkeys(self.moments, "k"))
        joined = " UNION ALL ".join(
            f"SELECT a.r, b.r FROM {s} a JOIN {t} b ON {self._same(form)} WHERE NOT (a.m AND b.m)"
            for s, t in table_pairs
            for form in forms
        )
        pairs = self._pairs(joined)
        bits = np.column_stack([self._differences(position, pairs) for position in self.positions])
        difference_counts = np.bitwise_count(bits).sum(axis=1).astype(np.int64)
        return replace(pairs, bits=bits, far=difference_counts * _KIND).taken(difference_counts > 0)

    def _same(self, form: Mapping[int, str]) -> str:
        names = [f"{form.get(position, 'n')}{position}" for position in self.positions]
        return " AND ".join(f"a.{name} IS NOT DISTINCT FROM b.{name}" for name in names)

    def _find_crowds(self, side: str) -> bool:
        if self.sides[side].columns.num_rows <= MOST_ALIKE:
            return False
        forms = self._columns("n{0}")
        crowds = (
            f"SELECT {forms}, min(r) AS first FROM {side} GROUP BY {forms} HAVING count(*) >"
            f" {MOST_ALIKE}"
        )
        self.connection.execute(f"CREATE TEMP TABLE {side}_crowds AS {crowds}")
        return bool(len(self._numbers(f"SELECT first FROM {side}_crowds LIMIT 1")))

    def _few(self, side: str) -> str:
        """Return SQL of a side's rows, with one row per crowd."""
        first = f"SELECT a.* FROM {side} a JOIN {side}_crowds b ON a.r = b.first"
        return (
            f"(SELECT a.* FROM {side} a ANTI JOIN {side}_crowds b ON {self._same({})} UNION ALL"
            f" {first})"
        )

    def _many(self, side: str) -> str:
        """Return SQL of unmatched rows in crowds, except the representatives."""
        return (
            f"(SELECT a.* FROM {side} a JOIN {side}_crowds b ON {self._same({})} WHERE NOT a.m AND"
            " a.r <> b.first)"
        )

    def _differences(self, position: int, pairs: _Pairs) -> npt.NDArray[np.int64]:
        rows = {"s": pa.array(pairs.source), "t": pa.array(pairs.target)}
        one, other = (
            self.values[side][position].values.take(indexes) for side, indexes in rows.items()
        )
        if position in self.texts:
            return differences(one, other)
        null = np.where(one.is_null().to_numpy(zero_copy_only=False), BITS[KeyDifference.NULL], 0)
        if position not in self.moments:
            return null
        equal = pc.fill_null(pc.equal(one, other), fill_value=True).to_numpy(zero_copy_only=False)
        return null + np.where(equal, 0, BITS[KeyDifference.TIME_ZONE])

    def _are_few_letters(self) -> bool:
        low, high = LETTERS
        texts = [
            values[position].values for values in self.values.values() for position in self.texts
        ]
        lengths = [pc.fill_null(pc.utf8_length(text), 0).to_numpy() for text in texts]
        return (
            sum(int(length[(low <= length) & (length <= high)].sum()) for length in lengths)
            <= MOST_LETTERS
        )

    def _one_letter(self, position: int, free: Mapping[str, npt.NDArray[np.bool_]]) -> _Pairs:
        """Return pairs whose key differs by one letter: equal if each lacks it, or one of them
        does.
        """
        for side, values in self.values.items():
            rows = without_one_letter(values[position].values, LETTERS)
            at = rows.column("at").combine_chunks()
            columns = {
                "r": at,
                "i": rows.column("i"),
                "w": rows.column("w"),
                "m": pa.array(~free[side]).take(at),
            }
            columns |= {f"k{other}": values[other].values.take(at) for other in self.positions}
            self.connection.register(f"{side}_shorter", pa.table(columns))
        keys = self._columns("k{0}")
        one = {
            side: (
                f"(SELECT min(r) AS r, bool_and(m) AS m, i, w, {keys} FROM {side}_shorter GROUP BY"
                f" i, w, {keys})"
            )
            for side in self.sides
        }
        same = "a.w = b.w AND (a.i = b.i OR a.i = 0 OR b.i = 0)" + "".join(
            f" AND a.k{o} = b.k{o}" for o in self.positions if o != position
        )
        bits = ", ".join(
            str(BITS[KeyDifference.LETTER] if other == position else 0) for other in self.positions
        )
        joined = " UNION ALL ".join(
            f"SELECT a.r, b.r, {bits} FROM {s} a JOIN {t} b ON {same} WHERE a.k{position} <>"
            f" b.k{position} AND NOT ({matched}.m)"
            for s, t, matched in (("s_shorter", one["t"], "a"), (one["s"], "t_shorter", "b"))
        )
        return self._pairs(joined, _ONE_LETTER)

    def _other_value(self, position: int, side: str) -> _Pairs:
        """Return pairs of an unmatched row in which only one key has another value, and few rows of
        the other side share the other keys.
        """
        others = self._columns("k{0}", position)
        equal = self._columns("a.k{0} = b.k{0}", position, " AND ")
        difference = (
            f"CASE WHEN a.k{position} IS NULL OR b.k{position} IS NULL THEN"
            f" {BITS[KeyDifference.NULL]} ELSE {BITS[KeyDifference.VALUE]} END"
        )
        bits = ", ".join(difference if other == position else "0" for other in self.positions)
        other = "t" if side == "s" else "s"
        rare = f"SELECT {others} FROM {other} GROUP BY {others} HAVING count(*) <= {MOST_ALIKE}"
        tables = {
            side: f"(SELECT * FROM {side} WHERE NOT m)",
            other: f"(SELECT x.* FROM {other} x SEMI JOIN ({rare}) y USING ({others}))",
        }
        joined = (
            f"{tables['s']} a JOIN {tables['t']} b ON {equal} AND a.k{position} IS DISTINCT FROM"
            f" b.k{position}"
        )
        return self._pairs(f"SELECT a.r, b.r, {bits} FROM {joined}", _OTHER_VALUE)

    # -- as data

    def _side_result(
        self, side: str, other: str, free: Mapping[str, npt.NDArray[np.bool_]], best: _Pairs
    ) -> NearSide:
        unmatched = np.flatnonzero(free[side])
        rows, partners = _rows_of(side, best), _rows_of(other, best)
        # Rows with a near key come first, then source rows without.
        without_near_key = unmatched[~np.isin(unmatched, rows)][
            : max(MOST_TOLD - len(rows), 0) if side == "s" else 0
        ]
        reported = best.taken(np.arange(min(len(rows), MOST_TOLD)))
        near, partners = rows[: len(reported.source)], partners[: len(reported.source)]
        details = list(
            zip(
                self._records(side, near),
                self._keys(other, partners),
                self._others(other, partners, free),
                reported.bits,
                self._condition_answers(reported),
                strict=True,
            )
        )
        records = [
            replace(
                row,
                nearest=key,
                separations=self._separations(bits),
                answers=answers,
                alike=alike,
                taken=is_taken,
            )
            for row, key, (alike, is_taken), bits, answers in details
        ]
        records += [
            replace(row, separations=self._nulls(row))
            for row in self._records(side, without_near_key)
        ]
        return NearSide(len(free[side]), len(unmatched), tuple(records), _counts(best))

    def _records(self, side: str, rows: npt.NDArray[np.int64]) -> list[NearRow]:
        one = self.sides[side]
        indexes = pa.array(rows)
        columns = one.columns.take(indexes)
        values = [python_values(column) for column in columns.columns]
        names = [one.names[symbol] for symbol in columns.schema.names]
        numbers = (
            [None] * len(rows) if one.numbers is None else one.numbers.take(indexes).to_pylist()
        )
        return [
            NearRow(
                number, {name: column[at] for name, column in zip(names, values, strict=True)}, key
            )
            for at, (number, key) in enumerate(zip(numbers, self._keys(side, rows), strict=True))
        ]

    def _keys(self, side: str, rows: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
        return list(
            zip(
                *(
                    python_values(key.display_values.take(pa.array(rows)))
                    for key in self.values[side]
                ),
                strict=True,
            )
        )

    def _others(
        self, side: str, rows: npt.NDArray[np.int64], free: Mapping[str, npt.NDArray[np.bool_]]
    ) -> list[tuple[int, bool]]:
        """Return per row the number of rows with the same key, and whether one of them is matched."""
        if not len(rows):
            return []
        keys = {
            f"k{position}": key.values.take(pa.array(rows))
            for position, key in enumerate(self.values[side])
        }
        self.connection.register(
            "requested", pa.table({"place": pa.array(np.arange(len(rows))), **keys})
        )
        same = self._columns("a.k{0} IS NOT DISTINCT FROM b.k{0}", separator=" AND ")
        counts = self.connection.execute(
            f"SELECT count(*), bool_or(b.m) FROM requested a JOIN {side} b ON {same} GROUP BY a.place"
            " ORDER BY a.place"
        ).fetchall()
        return [(int(alike), bool(is_taken)) for alike, is_taken in counts]

    def _condition_answers(self, pairs: _Pairs) -> list[tuple[Answer, ...]]:
        columns = [
            [_ANSWERS[value] for value in answers.to_pylist()]
            for answers in self._answers(pairs.source, pairs.target)
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * len(pairs.source)

    def _separations(self, bits: npt.NDArray[np.int64]) -> tuple[Separation, ...]:
        return tuple(
            Separation(key.position, kinds_of(int(one)))
            for key, one in zip(self.on.keys, bits, strict=True)
            if one
        )

    def _nulls(self, row: NearRow) -> tuple[Separation, ...]:
        return tuple(
            Separation(key.position, (KeyDifference.NULL,))
            for key, value in zip(self.on.keys, row.key, strict=True)
            if value is None
        )


def _rows_of(side: str, pairs: _Pairs) -> npt.NDArray[np.int64]:
    return pairs.source if side == "s" else pairs.target


def _any_alone(rows: npt.NDArray[np.int64], free: npt.NDArray[np.bool_]) -> bool:
    """Return whether a row without a partner is near to nothing yet."""
    return bool(np.count_nonzero(free) > len(ascending(rows[free[rows]])))


def _counts(best: _Pairs) -> tuple[NearCount, ...]:
    bits = np.bitwise_or.reduce(best.bits, axis=1) if best.bits.size else np.zeros(0, np.int64)
    bit_sets, rows = np.unique(bits[(bits > 0) & (best.far % _KIND == 0)], return_counts=True)
    counts = [
        NearCount(kinds_of(int(kinds)), int(count))
        for kinds, count in zip(bit_sets, rows, strict=True)
    ]
    return tuple(sorted(counts, key=lambda count: -count.rows))
