"""The nearest keys of rows without a partner: hash joins of normal forms in DuckDB, so that time and memory grow with the rows alone.

A key is near to another if they differ in nothing but blanks at their ends, case, Unicode form, the writing of a number, the time zone or NULLs;
of several columns also if one alone has another value; and of short tables if one letter is another. Of many rows that have the same normal
form one stands for all, so that pairs never multiply.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.near.normal_forms import BITS, core, difference_of_texts, kinds_of, normal_form, plain_form
from rowmerge_nb.engine.near.on import MOMENT, TEXT, On, UnreadableError, answers_of, key_values
from rowmerge_nb.engine.tasks.page_program import require_duckdb
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import Answer
from rowmerge_nb.trace.near import Difference, NearCount, NearKeys, NearRow, NearSide, Separation

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

__all__ = ["SideRows", "near_keys"]

MOST_TOLD: Final = 1_000
"""So many rows of each side are told one by one."""
MOST_ALIKE: Final = 8
"""Of more rows than these that have the same normal form, one stands for all; keys that so many others share but for one column are not near."""
MOST_LETTERS: Final = 1_000_000
"""Keys that differ by one letter are looked for where the texts of both sides have no more characters together."""
MOST_PAIRS: Final = 4_000_000
"""So many pairs of equal keys are asked what else ON demands."""
LETTERS: Final = (4, 64)
"""The lengths of texts of which one letter may differ: of shorter ones it says nothing, longer ones are no keys."""
_ANSWERS: Final = {True: Answer.TRUE, False: Answer.FALSE, None: Answer.UNKNOWN}
_KIND: Final = 1_000
_ONE_LETTER: Final = 1_000 * _KIND
_OTHER_VALUE: Final = 2 * _ONE_LETTER
"""How far keys are from each other by a kind of difference, a letter, another value; a condition that is not true is 1."""


@dataclass(frozen=True)
class SideRows:
    """The rows of one side.

    Args:
        columns: the columns that ON reads, under their symbols.
        names: what people call them.
        numbers: the rows' numbers; None where they have none.
        matched: which rows have a partner, as the engine has found it; None where that is to be found out here.
    """

    columns: pa.RecordBatch
    names: Mapping[str, str]
    numbers: pa.Array | None = None
    matched: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a source row and a target row, by their places: per key what separates them, and how far they are from each other."""

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
    """Look for the nearest keys of all rows that have no partner, on both sides.

    Args:
        on: what ON demands; it has keys.
        source: the source's rows.
        target: the target's rows.

    Raises:
        UnreadableError: pages cannot be asked for a key, or for a condition that decides which rows match.
        RowMergeError: a key or a condition cannot be computed for a row.
    """
    with closing(_database().cursor()) as connection:
        return _Search(connection, on, source, target).result()


@cache
def _database() -> Any:
    """Give the DuckDB of this process, without what it does of its own accord; every search has a connection of its own."""
    connection = require_duckdb().connect()
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
        connection.execute(f"SET {setting} = false")
    # What does not fit into memory is not looked for, rather than written to a disk.
    connection.execute("SET temp_directory = ''")
    return connection


class _Search:
    """One search.

    Its tables ``s`` and ``t`` have a row for each row of their side: its place ``r``, whether it is matched ``m``, and per key the value ``k0``
    and its normal form ``n0``. Of crowds, rows with the same normal forms of which there are too many, ``s_few`` has one row each, and ``s_many``
    the others that have no partner.
    """

    def __init__(self, connection: Any, on: On, source: SideRows, target: SideRows) -> None:
        self.connection = connection
        self.on = on
        self.sides = {"s": source, "t": target}
        trees = {"s": [key.source for key in on.keys], "t": [key.target for key in on.keys]}
        self.values = {side: [key_values(tree, rows.columns) for tree in trees[side]] for side, rows in self.sides.items()}
        self.places = range(len(on.keys))
        self.texts = [place for place in self.places if on.keys[place].type.base in TEXT]
        self.moments = [place for place in self.places if on.keys[place].type.base == MOMENT]

    def result(self) -> NearKeys:
        """Search, and give what was found as data."""
        self._register()
        equal, free = self._partners()
        self._make_tables(free)
        pairs = equal + self._with_answers(self._alike())
        letters = bool(self.texts) and self._are_few_letters()
        for place in self.texts if letters else ():
            pairs += self._with_answers(self._one_letter(place))
        for place in self.places if len(self.places) > 1 else ():
            pairs += self._with_answers(self._other_value(place))
        source = self._told("s", "t", free, _nearest(pairs, pairs.source, free["s"]))
        target = self._told("t", "s", free, _nearest(pairs, pairs.target, free["t"]))
        return NearKeys(self.on.terms, source, target, letters=letters)

    # -- SQL --------------------------------------------------------------------------------------------------------

    def _columns(self, pattern: str, but: int | None = None, separator: str = ", ") -> str:
        return separator.join(pattern.format(place) for place in self.places if place != but)

    def _pairs(self, sql: str) -> _Pairs:
        """Run a query of pairs: both rows' places, and what separates each of their keys."""
        found = self.connection.sql(sql).to_arrow_table()
        source, target, *bits = (column.to_numpy() for column in found.columns)
        separated = np.column_stack(bits).astype(np.int64) if bits else np.zeros((len(source), len(self.places)), np.int64)
        return _Pairs(source, target, separated, np.zeros(len(source), np.int64))

    def _numbers(self, sql: str) -> npt.NDArray[np.int64]:
        numbers: npt.NDArray[np.int64] = self.connection.sql(sql).to_arrow_table().column(0).to_numpy()
        return numbers

    # -- which rows have no partner -----------------------------------------------------------------------------------

    def _register(self) -> None:
        for side, values in self.values.items():
            columns = {"r": pa.array(np.arange(self.sides[side].columns.num_rows))}
            for place, key in enumerate(values):
                columns[f"k{place}"] = key.values
                if key.clocks is not None:
                    columns[f"w{place}"] = key.clocks
            self.connection.register(f"{side}_rows", pa.table(columns))

    def _partners(self) -> tuple[_Pairs, dict[str, npt.NDArray[np.bool_]]]:
        """Give the pairs of equal keys for which another condition of ON is not true, and which rows of each side have no partner."""
        equal = self._columns("a.k{0} = b.k{0}", separator=" AND ")
        pairs = self._pairs(
            f"SELECT a.r, b.r FROM s_rows a JOIN t_rows b ON {equal} LIMIT {MOST_PAIRS + 1 if self.on.conditions else 0}"
        )
        if len(pairs.source) > MOST_PAIRS:
            msg = f"More than {MOST_PAIRS:,} pairs of rows have equal keys, and ON demands more of them"
            raise UnreadableError(msg)
        pairs = self._with_answers(pairs)
        true = pairs.far == 0
        partners = {"s": pairs.source[true], "t": pairs.target[true]}
        if not self.on.conditions:
            for one, other in (("s", "t"), ("t", "s")):
                partners[one] = self._numbers(f"SELECT a.r FROM {one}_rows a SEMI JOIN {other}_rows b ON {equal}")
        free = {}
        for side, rows in self.sides.items():
            free[side] = np.ones(rows.columns.num_rows, np.bool_) if rows.matched is None else ~rows.matched
            free[side][partners[side]] = False
        return pairs.taken(~true), free

    def _with_answers(self, pairs: _Pairs) -> _Pairs:
        """Move pairs further away for which other conditions of ON are not true."""
        false = np.zeros(len(pairs.source), np.int64)
        for answers in self._answers(pairs.source, pairs.target):
            false += ~answers.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
        return replace(pairs, far=pairs.far + np.minimum(false, _KIND - 1))

    def _answers(self, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]) -> list[pa.Array]:
        if not self.on.conditions or not len(source):
            return []
        both = [self.sides["s"].columns.take(pa.array(source)), self.sides["t"].columns.take(pa.array(target))]
        names = [name for rows in both for name in rows.schema.names]
        return answers_of(self.on.conditions, pa.RecordBatch.from_arrays([c for rows in both for c in rows.columns], names=names))

    # -- near keys ----------------------------------------------------------------------------------------------------

    def _make_tables(self, free: Mapping[str, npt.NDArray[np.bool_]]) -> None:
        """Compute the normal forms, and find the crowds."""
        run = self.connection.execute
        kept, forms = self._columns("k{0}"), self._columns("n{0}")
        cores, plain = (
            "".join(f", {made(f'{of}{place}')} AS {name}{place}" for place in self.texts)
            for made, of, name in ((core, "k", "c"), (plain_form, "c", "p"))
        )
        kept += "".join(f", c{place}" for place in self.texts)
        made = ", ".join(f"{self._form(place)} AS n{place}" for place in self.places)
        for side in self.sides:
            self.connection.register(f"{side}_free", pa.table({"m": pa.array(~free[side])}))
            rows = f"SELECT *{plain} FROM (SELECT *{cores} FROM {side}_rows POSITIONAL JOIN {side}_free)"
            run(f"CREATE TEMP TABLE {side} AS SELECT r, m, {kept}, {made} FROM ({rows})")
            run(
                f"CREATE TEMP TABLE {side}_crowds AS "
                f"SELECT {forms}, min(r) AS first FROM {side} GROUP BY {forms} HAVING count(*) > {MOST_ALIKE}"
            )

    def _form(self, place: int) -> str:
        if place in self.texts:
            return normal_form(f"p{place}")
        return f"w{place}" if place in self.moments else f"k{place}"

    def _few(self, side: str) -> str:
        """Write the rows of a side, of crowds one each."""
        if not self._crowded(side):
            return side
        crowd = f"FROM {side}_crowds c WHERE {self._columns('x.n{0} IS NOT DISTINCT FROM c.n{0}', separator=' AND ')}"
        first = f"SELECT x.* FROM {side} x JOIN {side}_crowds c ON x.r = c.first"
        return f"(SELECT * FROM {side} x WHERE NOT EXISTS ({crowd}) UNION ALL {first})"

    def _many(self, side: str) -> str:
        """Write the rows without a partner that are in crowds, and do not stand for them."""
        crowd = f"FROM {side}_crowds c WHERE {self._columns('x.n{0} IS NOT DISTINCT FROM c.n{0}', separator=' AND ')}"
        return f"(SELECT * FROM {side} x WHERE NOT m AND EXISTS ({crowd} AND x.r <> c.first))"

    def _crowded(self, side: str) -> bool:
        return bool(len(self._numbers(f"SELECT first FROM {side}_crowds LIMIT 1")))

    def _alike(self) -> _Pairs:
        """Give pairs of the same normal form, of which at least one row has no partner."""
        few = {side: self._few(side) for side in self.sides}
        met = [(few["s"], few["t"])]
        met += [(self._many("s"), few["t"])] if few["s"] != "s" else []
        met += [(few["s"], self._many("t"))] if few["t"] != "t" else []
        same: list[Mapping[int, str]] = [{}]
        if self.moments and len(self.places) > 1:
            # The same instant is equal, whatever clocks show; another key is what separates the rows.
            same.append(dict.fromkeys(self.moments, "k"))
        equal = [
            " AND ".join(
                f"a.{form.get(place, 'n')}{place} IS NOT DISTINCT FROM b.{form.get(place, 'n')}{place}" for place in self.places
            )
            for form in same
        ]
        separated = ", ".join(f"{self._difference(place)} AS d{place}" for place in self.places)
        joined = " UNION ALL ".join(
            f"SELECT a.r, b.r, {separated} FROM {s} a JOIN {t} b ON {terms} WHERE NOT (a.m AND b.m)"
            for s, t in met
            for terms in equal
        )
        pairs = self._pairs(joined)
        kinds = np.bitwise_count(pairs.bits).sum(axis=1).astype(np.int64)
        return replace(pairs, far=kinds * _KIND).taken(kinds > 0)

    def _difference(self, place: int) -> str:
        if place in self.texts:
            return difference_of_texts(place)
        a, b = f"a.k{place}", f"b.k{place}"
        null = f"WHEN {a} IS NULL AND {b} IS NULL THEN {BITS[Difference.NULL]}"
        return f"CASE {null} WHEN {a} = {b} THEN 0 ELSE {BITS[Difference.TIME_ZONE]} END"

    def _are_few_letters(self) -> bool:
        texts = [values[place].values for values in self.values.values() for place in self.texts]
        lengths = [pc.fill_null(pc.utf8_length(text), 0).to_numpy() for text in texts]
        low, high = LETTERS
        return sum(int(length[(low <= length) & (length <= high)].sum()) for length in lengths) <= MOST_LETTERS

    def _one_letter(self, place: int) -> _Pairs:
        """Give pairs of which one key differs by one letter: they are equal when each is without it, or one of them is.

        Of the rows of one side that have the same keys one stands for all.
        """
        others = "".join(f", k{other}" for other in self.places if other != place)
        equal = "".join(f" AND a.k{other} = b.k{other}" for other in self.places if other != place)
        shorter = (
            r"FROM (SELECT *, unnest(range(1, length(v) + 1)) AS i FROM {}) WHERE regexp_full_match(substr(v, i, 1), '\p{{L}}')"
        )
        tables = {}
        for side in self.sides:
            lengths = f"length(k{place}) BETWEEN {LETTERS[0]} AND {LETTERS[1]}"
            tables[f"{side}_all"] = f"SELECT r, m, k{place} AS v{others} FROM {side} WHERE {lengths}"
            tables[f"{side}_one"] = f"SELECT min(r) AS r, bool_and(m) AS m, v{others} FROM {side}_all GROUP BY v{others}"
            for rows in (f"{side}_all", f"{side}_one"):
                tables[f"{rows}_shorter"] = f"SELECT *, left(v, i - 1) || substr(v, i + 1) AS w {shorter.format(rows)}"
        bits = ", ".join(str(BITS[Difference.LETTER] if other == place else 0) for other in self.places)
        joined = " UNION ALL ".join(
            f"SELECT a.r, b.r, {bits} FROM {a} a JOIN {b} b ON {same}{equal} WHERE NOT (a.m AND b.m)"
            for s, t in (("s_all", "t_one"), ("s_one", "t_all"))
            for a, b, same in (
                (f"{s}_shorter", f"{t}_shorter", "a.w = b.w AND a.i = b.i AND a.v <> b.v"),
                (f"{s}_shorter", t, "a.w = b.v"),
                (s, f"{t}_shorter", "a.v = b.w"),
            )
        )
        pairs = self._pairs(f"WITH {', '.join(f'{name} AS MATERIALIZED ({rows})' for name, rows in tables.items())} {joined}")
        return replace(pairs, far=pairs.far + _ONE_LETTER)

    def _other_value(self, place: int) -> _Pairs:
        """Give pairs of which one key alone has another value, where few rows of the other side have the other keys."""
        equal, others = self._columns("a.k{0} = b.k{0}", place, " AND "), self._columns("k{0}", place)
        kind = (
            f"CASE WHEN a.k{place} IS NULL OR b.k{place} IS NULL THEN {BITS[Difference.NULL]} ELSE {BITS[Difference.VALUE]} END"
        )
        bits = ", ".join(kind if other == place else "0" for other in self.places)
        joins = []
        for one, other in (("a", "b"), ("b", "a")):
            few = f"SELECT {others} FROM {_SIDES[other]} GROUP BY {others} HAVING count(*) <= {MOST_ALIKE}"
            near = f"SELECT x.* FROM {_SIDES[other]} x SEMI JOIN ({few}) y USING ({others})"
            tables = {one: f"(SELECT * FROM {_SIDES[one]} WHERE NOT m)", other: f"({near})"}
            joins.append(
                f"SELECT a.r, b.r, {bits} FROM {tables['a']} a JOIN {tables['b']} b ON {equal} AND a.k{place} IS DISTINCT FROM b.k{place}"
            )
        pairs = self._pairs(" UNION ALL ".join(joins))
        return replace(pairs, far=pairs.far + _OTHER_VALUE)

    # -- as data ------------------------------------------------------------------------------------------------------

    def _told(self, side: str, other: str, free: Mapping[str, npt.NDArray[np.bool_]], best: _Pairs) -> NearSide:
        """Tell of the rows of a side that have no partner."""
        unmatched = np.flatnonzero(free[side])
        rows, partners = (best.source, best.target) if side == "s" else (best.target, best.source)
        # After those with a near key those without, of the source alone.
        alone = unmatched[~np.isin(unmatched, rows)][: max(MOST_TOLD - len(rows), 0) if side == "s" else 0]
        told = best.taken(np.arange(min(len(rows), MOST_TOLD)))
        near, partners = rows[: len(told.source)], partners[: len(told.source)]
        found = list(
            zip(
                self._records(side, near),
                self._keys(other, partners),
                self._others(other, partners, free),
                told.bits,
                self._said(told),
                strict=True,
            )
        )
        records = [
            replace(row, nearest=key, separations=self._separations(bits), answers=answers, alike=alike, taken=taken)
            for row, key, (alike, taken), bits, answers in found
        ]
        records += [replace(row, separations=self._nulls(row)) for row in self._records(side, alone)]
        return NearSide(len(free[side]), len(unmatched), tuple(records), _counts(best))

    def _records(self, side: str, rows: npt.NDArray[np.int64]) -> list[NearRow]:
        one = self.sides[side]
        taken = pa.array(rows)
        columns = one.columns.take(taken)
        values = [python_values(column) for column in columns.columns]
        names = [one.names[symbol] for symbol in columns.schema.names]
        numbers = [None] * len(rows) if one.numbers is None else one.numbers.take(taken).to_pylist()
        return [
            NearRow(number, {name: column[at] for name, column in zip(names, values, strict=True)}, key)
            for at, (number, key) in enumerate(zip(numbers, self._keys(side, rows), strict=True))
        ]

    def _keys(self, side: str, rows: npt.NDArray[np.int64]) -> list[tuple[Any, ...]]:
        return list(zip(*(python_values(key.shown.take(pa.array(rows))) for key in self.values[side]), strict=True))

    def _others(
        self, side: str, rows: npt.NDArray[np.int64], free: Mapping[str, npt.NDArray[np.bool_]]
    ) -> list[tuple[int, bool]]:
        """Count, for each of some rows of a side, the rows that have the same key, and tell whether one of these has a partner."""
        if not len(rows):
            return []
        self.connection.register("told", pa.table({"at": pa.array(np.arange(len(rows))), "r": pa.array(rows)}))
        same = self._columns("x.k{0} IS NOT DISTINCT FROM b.k{0}", separator=" AND ")
        found = self.connection.execute(
            f"SELECT count(*), bool_or(b.m) FROM told JOIN {side} x ON told.r = x.r JOIN {side} b ON {same} GROUP BY told.at ORDER BY told.at"
        ).fetchall()
        return [(int(alike), bool(taken)) for alike, taken in found]

    def _said(self, pairs: _Pairs) -> list[tuple[Answer, ...]]:
        columns = [[_ANSWERS[value] for value in answers.to_pylist()] for answers in self._answers(pairs.source, pairs.target)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(pairs.source)

    def _separations(self, bits: npt.NDArray[np.int64]) -> tuple[Separation, ...]:
        return tuple(Separation(key.place, kinds_of(int(one))) for key, one in zip(self.on.keys, bits, strict=True) if one)

    def _nulls(self, row: NearRow) -> tuple[Separation, ...]:
        """Say of a row that nothing is near to which of its keys are NULL."""
        return tuple(
            Separation(key.place, (Difference.NULL,)) for key, value in zip(self.on.keys, row.key, strict=True) if value is None
        )


_SIDES: Final = {"a": "s", "b": "t"}


def _nearest(pairs: _Pairs, rows: npt.NDArray[np.int64], free: npt.NDArray[np.bool_]) -> _Pairs:
    """Keep of each row without a partner the nearest pair, in the order of the rows."""
    kept = np.flatnonzero(free[rows])
    order = kept[np.lexsort((pairs.target[kept], pairs.source[kept], pairs.far[kept], rows[kept]))]
    first = np.ones(len(order), np.bool_)
    first[1:] = rows[order][1:] != rows[order][:-1]
    return pairs.taken(order[first])


def _counts(best: _Pairs) -> tuple[NearCount, ...]:
    """Count the rows by what separates them, where nothing else does."""
    bits = np.bitwise_or.reduce(best.bits, axis=1) if best.bits.size else np.zeros(0, np.int64)
    found, rows = np.unique(bits[(bits > 0) & (best.far % _KIND == 0)], return_counts=True)
    counts = [NearCount(kinds_of(int(kinds)), int(count)) for kinds, count in zip(found, rows, strict=True)]
    return tuple(sorted(counts, key=lambda count: -count.rows))
