"""SELECT in Spark SQL; missing features become queries below or around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import BIGINT, BOOLEAN
from rowmerge_nb.sql.functions.overloads import overloads
from rowmerge_nb.sql.spark.columns import names, output, restored
from rowmerge_nb.sql.spark.limits import tail, with_ties
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.readings import outer_columns
from rowmerge_nb.sql.typed.type_rules import entries_type, has_map

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ONE_ROW: Final = "(SELECT 1)"
"""The relation of a SELECT without FROM."""


def select_text(query: q.Selected, relation: str | None, new_name: Callable[[str], str]) -> str:
    return _Select(query, relation, new_name).text()


@dataclass(frozen=True)
class _Total:
    mark: e.Typed
    condition: str


class _Select:
    def __init__(
        self, query: q.Selected, relation: str | None, new_name: Callable[[str], str]
    ) -> None:
        self.query = query
        self.new_name = new_name
        self.keys = query.keys
        where = f" WHERE {print_spark(query.where)}" if query.where is not None else ""
        self.fields = () if query.source is None else q.columns_of(query.source)
        self.has_source = relation is not None
        self.rows = f"{relation or _ONE_ROW}{where}"
        self.source = f" FROM {relation}{where}" if relation is not None else where

    def text(self) -> str:
        is_alone = self.query.sets is not None and bool(self.keys) and not outer_columns(self.query)
        self._compute_below()
        sets, total = self.query.sets, None
        if self.has_source and self.keys and sets is not None and is_alone:
            total = self._add_total(sets, self.keys)
        if (
            self.has_source
            and self.keys is not None
            and sets is not None
            and self._is_twofold(sets, self.keys)
        ):
            self._group_below(sets, self.keys, total or _Total(e.TRUE, ""))
            total, self.keys = None, None
        elif total is not None:
            self._replace(_masked(self._values(), total.mark))
        self._number_groups()
        return self._final_text(total)

    # -- steps

    def _values(self) -> list[e.Typed]:
        query = self.query
        values = [*(value for _, value in query.outputs), *(key.value for key in query.order_by)]
        return [*values, query.having] if query.having is not None else values

    def _change(self, change: Callable[[e.Typed], e.Typed]) -> None:
        def changed(value: e.Typed) -> e.Typed:
            new = change(value)
            return (
                new
                if new.origin is not None or value.origin is None
                else replace(new, origin=value.origin)
            )

        query = self.query
        self.query = replace(
            query,
            outputs=tuple((column, changed(value)) for column, value in query.outputs),
            having=None if query.having is None else changed(query.having),
            order_by=tuple(replace(key, value=changed(key.value)) for key in query.order_by),
        )

    def _replace(self, pairs: Sequence[tuple[e.Typed, e.Typed]]) -> None:
        if pairs:
            self._change(lambda value: e.replaced(value, pairs))

    def _compute_below(self) -> None:
        """Compute maps and nondeterministic calls, which Spark neither groups nor aggregates, in a
        query below.
        """
        values = _computed_below(self.keys or (), self._values())
        if not values:
            return
        columns = {
            value: e.Column(entries_type(value.type), self.new_name("value"))
            for value in dict.fromkeys(values)
        }
        computed = ", ".join(
            f"{print_spark(e.as_entries(value))} AS {backquoted(column.symbol)}"
            for value, column in columns.items()
        )
        self.source = f" FROM (SELECT *, {computed} FROM {self.rows}) AS {self._alias()}"
        self.fields, self.has_source = (*self.fields, *columns.values()), True
        groupings = (
            part for value in self._values() for part in e.walk(value) if _is_grouping(part)
        )
        pairs: list[tuple[e.Typed, e.Typed]] = [
            (part, replace(part, arguments=tuple(columns.get(key, key) for key in part.arguments)))
            for part in groupings
            if isinstance(part, e.Apply)
        ]
        pairs += [(value, e.as_maps(column, value.type)) for value, column in columns.items()]
        self.keys = None if self.keys is None else tuple(columns.get(key, key) for key in self.keys)
        self._replace(pairs)

    def _add_total(self, sets: q.Sets, keys: tuple[e.Typed, ...]) -> _Total | None:
        """Add a marked row of NULLs, which aggregates skip, so that a grand total of no rows has a group."""
        texts = _set_texts(sets, keys)
        if all(texts):
            return None
        mark = self.new_name("is_row")
        symbols = [backquoted(field.symbol) for field in self.fields]
        rows = f"SELECT {', '.join([*symbols, f'true AS {backquoted(mark)}'])}{self.source}"
        nulls = f"SELECT {', '.join([*(['NULL'] * len(symbols)), 'false'])}"
        everything = 2 ** len(frozenset[str]().union(*texts)) - 1
        self.source = f" FROM ({rows} UNION ALL {nulls}) AS {self._alias()}"
        return _Total(
            e.Column(BOOLEAN, mark),
            f"(bool_or({backquoted(mark)}) OR grouping_id() = {everything})",
        )

    def _is_twofold(self, sets: q.Sets, keys: tuple[e.Typed, ...]) -> bool:
        texts = _set_texts(sets, keys)
        return len(set(texts)) < len(texts) or any(
            isinstance(part, e.Windowed) for value in self._values() for part in e.walk(value)
        )

    def _group_below(self, sets: q.Sets, keys: tuple[e.Typed, ...], total: _Total) -> None:
        """Group in a query below: Spark has no window functions beside ROLLUP, and no HAVING with
        repeated sets.
        """
        parts = [part for value in self._values() for part in e.outside_windows(value)]
        values = [key for key in keys if not isinstance(key, e.Constant)]
        values += [part for part in parts if isinstance(part, e.Aggregate) or _is_grouping(part)]
        computed: list[tuple[e.Typed, e.Typed]] = []
        columns = []
        masked = _masked(self._values(), total.mark) if total.condition else []
        for part in dict.fromkeys(values):
            column = e.Column(part.type, self.new_name("value"))
            columns.append(
                f"{print_spark(e.replaced(part, masked))} AS {backquoted(column.symbol)}"
            )
            computed.append((part, column))
        comes_out = backquoted(self.new_name("comes_out"))
        columns.append(f"{total.condition or 'count(*) >= 0'} AS {comes_out}")
        groups = f" GROUP BY {_group_keys(keys, sets)}" if keys else ""
        self.source = f" FROM (SELECT {', '.join(columns)}{self.source}{groups}) AS {self._alias()}"
        if not keys:
            self.source += f" LATERAL VIEW explode(sequence(1, {len(sets)}))"
        self.source += f" WHERE {comes_out}"
        self._change(lambda value: _over_groups(value, computed))
        if self.query.having is not None:
            self.source += f" AND {print_spark(self.query.having)}"
        self.query = replace(self.query, having=None)

    def _number_groups(self) -> None:
        """Turn frames of GROUPS, which Spark lacks, into RANGE over group numbers."""
        windows = [
            part
            for value in self._values()
            for part in e.walk(value)
            if isinstance(part, e.Windowed)
        ]
        pairs: list[tuple[e.Typed, e.Typed]] = []
        numbers = []
        for part in windows:
            if part.frame is None or part.frame.unit != "GROUPS":
                continue
            symbol = self.new_name("group")
            rank = e.Windowed(BIGINT, _DENSE_RANK, part.partition_by, part.order_by, None)
            number = (e.Sort(e.Column(BIGINT, symbol), descending=False, nulls_first=False),)
            pairs.append(
                (part, replace(part, order_by=number, frame=replace(part.frame, unit="RANGE")))
            )
            numbers.append(f"{print_spark(rank)} AS {backquoted(symbol)}")
        if numbers:
            self._replace(pairs)
            self.source = f" FROM (SELECT *, {', '.join(numbers)}{self.source})"

    def _hide_keys(self) -> list[str]:
        """Sort by additional columns where needed, and return them.

        Spark sorts neither by window functions nor by subqueries. WITH TIES needs columns.
        """
        query = self.query
        outputs = {column.symbol for column, _ in query.outputs} if query.ties else None
        keys, key_columns = [], []
        for key in query.order_by:
            is_output = (
                isinstance(key.value, e.Column)
                and outputs is not None
                and key.value.symbol in outputs
            )
            needs_column = any(
                isinstance(part, (e.Windowed, e.Subquery)) for part in e.walk(key.value)
            )
            if (outputs is not None and not is_output) or needs_column:
                symbol = self.new_name("key")
                key_columns.append(f"{print_spark(key.value)} AS {backquoted(symbol)}")
                keys.append(replace(key, value=e.Column(key.value.type, symbol)))
            else:
                keys.append(key)
        self.query = replace(query, order_by=tuple(keys))
        return key_columns

    def _final_text(self, total: _Total | None) -> str:
        key_columns = self._hide_keys()
        query, columns = self.query, [column for column, _ in self.query.outputs]
        outputs = [
            output(column, value, distinct=query.distinct) for column, value in query.outputs
        ]
        items = ", ".join([*outputs, *key_columns]) or "1"
        parts = [f"SELECT {'DISTINCT ' if query.distinct else ''}{items}{self.source}"]
        parts += [f"GROUP BY {_group_keys(self.keys, query.sets)}"] if self.keys else []
        # GROUP BY () makes one group, even without an aggregate.
        conditions = [total.condition] if total else ["count(*) >= 0"] if self.keys == () else []
        conditions += [print_spark(query.having)] if query.having is not None else []
        parts += [f"HAVING {' AND '.join(conditions)}"] if conditions else []
        text = " ".join(parts)
        visible = (
            ", ".join(restored(column, column.symbol) for column in columns)
            if query.distinct
            else names(columns)
        )
        if query.ties:
            return with_ties(text, visible, query.order_by, query, self.new_name)
        is_within = key_columns or (
            query.distinct and any(has_map(column.type) for column in columns)
        )
        return (f"SELECT {visible} FROM ({text})" if is_within else text) + tail(
            query.order_by, query
        )

    def _alias(self) -> str:
        return backquoted(self.new_name("r"))


_DENSE_RANK: Final = e.Apply(BIGINT, "function", (), overloads("dense_rank")[0])


def _is_grouping(part: e.Typed) -> bool:
    return isinstance(part, e.Apply) and part.name == "grouping"


def _computed_below(keys: Sequence[e.Typed], values: Sequence[e.Typed]) -> list[e.Typed]:
    aggregates = [
        part
        for value in values
        for part in e.outside_windows(value)
        if isinstance(part, e.Aggregate)
    ]
    arguments = (
        part for call in aggregates for part in e.children(call) if not isinstance(part, e.Function)
    )
    opaque = (
        value for value in (*keys, *arguments) if e.is_opaque(value) and not _reads_outer(value)
    )
    return [*(key for key in keys if has_map(key.type)), *opaque]


def _reads_outer(value: e.Typed) -> bool:
    return any(isinstance(part, e.Column) and part.outer for part in e.walk(value))


def _set_texts(sets: q.Sets, keys: tuple[e.Typed, ...]) -> list[frozenset[str]]:
    return [frozenset(_group_key(keys[index]) for index in indexes) for indexes in sets]


def _over_groups(value: e.Typed, computed: Sequence[tuple[e.Typed, e.Typed]]) -> e.Typed:
    over = []
    for window in [part for part in e.walk(value) if isinstance(part, e.Windowed)]:
        inner = [
            (part, e.replaced(part, computed))
            for part in e.children(window)
            if part is not window.function
        ]
        inner += [(part, e.replaced(part, computed)) for part in e.children(window.function)]
        over.append((window, e.replaced(window, [pair for pair in inner if pair[0] != pair[1]])))
    return e.replaced(value, [*over, *computed])


def _masked(values: Sequence[e.Typed], mark: e.Typed) -> list[tuple[e.Typed, e.Typed]]:
    calls = [
        part
        for value in values
        for part in e.outside_windows(value)
        if isinstance(part, e.Aggregate)
    ]
    return [
        (
            call,
            replace(
                call,
                filter=(
                    mark if call.filter is None else e.Apply(BOOLEAN, "and", (mark, call.filter))
                ),
            ),
        )
        for call in calls
    ]


def _group_key(key: e.Typed) -> str:
    """Write a key of GROUP BY; a number would be a position."""
    return f"({print_spark(key)} IS NULL)" if isinstance(key, e.Constant) else print_spark(key)


def _group_keys(keys: tuple[e.Typed, ...], sets: q.Sets | None) -> str:
    texts = [_group_key(key) for key in keys]
    if sets is None:
        return ", ".join(texts)
    parts = (f"({', '.join(dict.fromkeys(texts[index] for index in indexes))})" for indexes in sets)
    return f"GROUPING SETS ({', '.join(parts)})"
