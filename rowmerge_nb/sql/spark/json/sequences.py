"""The items at the end of an SQL/JSON path, in Spark SQL.

An item is a text whose first character determines its type. Strings begin with a quotation mark
(``"abc``), even within JSON, since Spark's JSON functions do not distinguish "1" from 1. A failure
is an exclamation mark and a message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.functions.json_functions import escaped
from rowmerge_nb.sql.tree import json_paths as t
from rowmerge_nb.sql.typed.expressions import text_literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.sql.tree.json_paths import JsonPath, Member, Range, Subscripts

_STRING: Final = r'"((?:[^"\\\\]++|\\\\.)*+)"'

# Column names never begin with $, so these lambda parameters hide none.
_KIND: Final = (
    "CASE substring(`$x`, 1, 1) WHEN '[' THEN 'ARRAY' WHEN '{' THEN 'OBJECT' WHEN '\"' THEN"
    " 'STRING' WHEN 'n' THEN 'NULL' WHEN 't' THEN 'BOOLEAN' WHEN 'f' THEN 'BOOLEAN' ELSE"
    " 'NUMBER' END"
)
_ELEMENTS: Final = "transform(from_json(`$x`, 'ARRAY<STRING>'), `$v` -> coalesce(`$v`, 'null'))"
_ENTRIES: Final = "map_entries(from_json(`$x`, 'MAP<STRING, STRING>'))"
_EACH_LAST: Final = (
    f"transform(array({_ENTRIES}), `$m` -> transform(array_distinct(transform(`$m`, `$e` ->"
    " `$e`.key)), `$k` -> coalesce(element_at(filter(`$m`, `$e` -> `$e`.key = `$k`), -1).value,"
    " 'null')))[0]"
)


def sequence(text: str, path: JsonPath, variables: Mapping[str, str] | None = None) -> str:
    """Write the items at the end of a path as an array, or a failure as its only item; NULL if the
    text is not JSON.

    ``text``, the document, is used three times.
    """
    marked = f"regexp_replace({text}, '{_STRING}', '\"\\\\\\\\\"$1\"')"
    # Text after the first value is ignored, as in Trino.
    read = f"IF(try_parse_json({text}) IS NULL, NULL, array(get_json_object({marked}, '$')))"
    # Blank text is null.
    items = f"IF({text} RLIKE '^[ \\\\t\\\\r\\\\n]*\\\\z', array('null'), {read})"
    if _is_chain(path.root):
        return _Sequences(path.strict, items, {}).items(path.root)
    variable_items = {name: f"`$v`.{backquoted(name)}" for name in variables or {}}
    items_text = _Sequences(path.strict, "`$d`", variable_items).items(path.root)
    if variables:
        fields = ", ".join(
            f"{text_literal(name)}, {items_sql}" for name, items_sql in variables.items()
        )
        broken = "".join(f" OR {items_sql} IS NULL" for items_sql in variable_items.values())
        items_text = (
            f"transform(array(named_struct({fields})), `$v` -> IF(`$d` IS NULL{broken}, NULL,"
            f" {items_text}))[0]"
        )
    else:
        items_text = f"IF(`$d` IS NULL, NULL, {items_text})"
    return f"transform(array({items}), `$d` -> {items_text})[0]"


def _is_chain(root: t.Part) -> bool:
    plain = (t.Document, t.Walk, t.Member, t.Descendants, t.Subscripts, t.Range, t.Method)
    return all(isinstance(part, plain) for part in t.parts_of_path(root))


def _value(key: str) -> str:
    same = f"filter({_ENTRIES}, `$e` -> `$e`.key = {text_literal(chr(34) + key)})"
    return f"transform(slice({same}, -1, 1), `$e` -> coalesce(`$e`.value, 'null'))"


def _descendants(key: str) -> str:
    """Write the values of a key in an item and its descendants, level by level instead of
    recursively.
    """
    brackets = r"""regexp_replace(`$x`, '"(?:[^"\\\\]++|\\\\.)*+"|[^\\[\\]{}]', '')"""
    now = "`$d`.now + CASE WHEN `$c` IN ('[', '{') THEN 1 WHEN `$c` = '' THEN 0 ELSE -1 END"
    deeper = f"named_struct('now', {now}, 'most', greatest(`$d`.most, {now}))"
    depth = (
        f"aggregate(split({brackets}, ''), named_struct('now', 0, 'most', 0), (`$d`, `$c`) ->"
        f" {deeper}, `$d` -> `$d`.most)"
    )
    parts = (
        f"CASE substring(`$x`, 1, 1) WHEN '[' THEN {_ELEMENTS} WHEN '{{' THEN {_EACH_LAST} ELSE"
        " array() END"
    )
    expansion = (
        "concat(array(named_struct('x', `$o`.x, 'open', false)),"
        f" transform(transform(array(`$o`.x), `$x` -> {parts})[0], `$i` -> named_struct('x', `$i`,"
        " 'open', true)))"
    )
    step = f"flatten(transform(`$p`, `$o` -> IF(`$o`.open, {expansion}, array(`$o`))))"
    values = (
        "flatten(transform(`$p`, `$o` -> transform(array(`$o`.x), `$x` -> IF(startswith(`$x`,"
        f" '{{'), {_value(key)}, array()))[0]))"
    )
    begin = "array(named_struct('x', `$x`, 'open', true))"
    return (
        f"IF(`$x` RLIKE '^[\\\\[{{]', aggregate(sequence(1, {depth}), {begin}, (`$p`, `$n`) ->"
        f" {step}, `$p` -> {values}), array())"
    )


def _first_failure(items: str) -> str:
    failures = "filter(`$s`, `$x` -> startswith(`$x`, '!'))"
    whole = f"IF(exists(`$s`, `$x` -> startswith(`$x`, '!')), slice({failures}, 1, 1), `$s`)"
    return f"transform(array({items}), `$s` -> {whole})[0]"


def _may_fail(part: t.Part) -> bool:
    if isinstance(part, t.Walk):
        return _may_fail(part.begin) or any(
            isinstance(step, t.Method) and step.name not in {"size", "type"} for step in part.steps
        )
    return isinstance(part, t.Sign | t.Arithmetic)


def _unfit(expected: str) -> str:
    return f"array(concat('!invalid item type. Expected: {expected}, actual: ', {_KIND}))"


class _Sequences:
    def __init__(self, strict: bool, document: str, variables: Mapping[str, str]) -> None:
        self.strict = strict
        self.document = document
        self.variables = variables

    def items(self, part: t.Part) -> str:
        if isinstance(part, t.Document):
            return self.document
        if isinstance(part, t.Current):
            return "array(`$at`)"
        if isinstance(part, t.PathVariable):
            return self.variables[part.name]
        if isinstance(part, t.PathLiteral):
            is_double = re.fullmatch(r"[0-9.]+[eE].*", part.item)
            return f"array({f'CAST({part.item}D AS STRING)' if is_double else text_literal(part.item)})"
        if isinstance(part, t.Sign):
            return self._signed(part)
        if isinstance(part, t.Arithmetic):
            return self._computed(part)
        assert isinstance(part, t.Walk)
        items, failing = self.items(part.begin), self.strict or _may_fail(part.begin)
        for step in part.steps:
            items = self._stepped(items, step, failing)
            failing = failing or _may_fail(t.Walk(t.Document(), (step,)))
        return items

    def _each(self, items: str, result: str, *, failing: bool) -> str:
        if not failing:
            return f"flatten(transform({items}, `$x` -> {result}))"
        result_or_failure = f"IF(startswith(`$x`, '!'), array(`$x`), {result})"
        return _first_failure(f"flatten(transform({items}, `$x` -> {result_or_failure}))")

    def _unwrapped(self, items: str) -> str:
        return (
            items
            if self.strict
            else (
                f"flatten(transform({items}, `$x` -> IF(startswith(`$x`, '['), {_ELEMENTS},"
                " array(`$x`))))"
            )
        )

    def _stepped(self, items: str, step: t.Part, failing: bool) -> str:
        if isinstance(step, t.Subscripts):
            other = _unfit("ARRAY") if self.strict else _chosen("array(`$x`)", step, strict=False)
            selected = _chosen(_ELEMENTS, step, strict=self.strict)
            return self._each(
                items, f"IF(startswith(`$x`, '['), {selected}, {other})", failing=failing
            )
        if isinstance(step, t.Member):
            other = _unfit("OBJECT") if self.strict else "array()"
            selected = self._values(step)
            return self._each(
                self._unwrapped(items),
                f"IF(startswith(`$x`, '{{'), {selected}, {other})",
                failing=failing,
            )
        if isinstance(step, t.Descendants):
            return self._each(items, _descendants(step.key), failing=failing)
        if isinstance(step, t.PathFilter):
            condition = f"coalesce({self.condition(step.predicate)}, false)"
            return (
                f"filter({self._unwrapped(items)}, `$at` ->"
                f" {f'''startswith(`$at`, '!') OR {condition}''' if failing else condition})"
            )
        assert isinstance(step, t.Method)
        return self._method(items, step.name, failing)

    def _values(self, step: Member) -> str:
        if step.key is None:
            return _EACH_LAST
        values = _value(step.key)
        if not self.strict:
            return values
        missing = text_literal(f"!structural error: missing member '{step.key}' in JSON object")
        return f"transform(array({values}), `$f` -> IF(size(`$f`) = 0, array({missing}), `$f`))[0]"

    # -- methods and numbers

    def _method(self, items: str, name: str, failing: bool) -> str:
        if name == "type":
            return self._each(items, f"array(concat('\"', lower({_KIND})))", failing=failing)
        if name == "size":
            other = _unfit("ARRAY") if self.strict else "array('1')"
            size_text = f"array(CAST(size({_ELEMENTS}) AS STRING))"
            return self._each(
                items, f"IF(startswith(`$x`, '['), {size_text}, {other})", failing=failing
            )
        if name == "keyvalue":
            return self._keys_and_values(self._unwrapped(items))
        if name == "double":
            read = (
                "transform(array(CAST(try_cast(substring(`$x`, 2) AS DOUBLE) AS STRING)), `$n` ->"
                " array(coalesce(`$n`, '!')))[0]"
            )
            outcome = (
                f"CASE WHEN {_IS_NUMBER.format('`$x`')} THEN array(CAST(CAST(`$x` AS DOUBLE) AS"
                f" STRING)) WHEN startswith(`$x`, '\"') THEN {read} ELSE"
                f" {_unfit('NUMBER or TEXT')} END"
            )
            return self._each(self._unwrapped(items), outcome, failing=True)
        return self._numbers(items, *_ROUNDINGS[name])

    def _numbers(self, items: str, whole: str, fraction: str) -> str:
        outcome = (
            f"CASE WHEN NOT {_IS_NUMBER.format('`$x`')} THEN {_unfit('NUMBER')} WHEN `$x` RLIKE"
            f" '{_FRACTION}' THEN transform(array(CAST(`$x` AS DOUBLE)), `$n` -> CAST({fraction} AS"
            " STRING)) ELSE transform(array(CAST(`$x` AS DECIMAL(38,0))), `$n` ->"
            f" {_in_range(whole, '`$n`')}) END"
        )
        return self._each(self._unwrapped(items), outcome, failing=True)

    def _signed(self, part: t.Sign) -> str:
        return self._numbers(
            self.items(part.operand), *(("-`$n`", "-`$n`") if part.negative else ("`$n`", "`$n`"))
        )

    def _computed(self, part: t.Arithmetic) -> str:
        left, right = (self._unwrapped(self.items(side)) for side in (part.left, part.right))
        a, b = "get(`$p`.l, 0)", "get(`$p`.r, 0)"
        several = "array('!arithmetic binary expression requires singleton operands')"
        n, m = f"CAST({a} AS DECIMAL(38,0))", f"CAST({b} AS DECIMAL(38,0))"
        doubles = f"CAST({a} AS DOUBLE) {part.operator} CAST({b} AS DOUBLE)"
        whole = f"CAST({n} {part.operator} {m} AS DECIMAL(38,0))"
        zero = "false"
        if part.operator in {"/", "%"}:
            # Spark refuses to divide by 0: to multiply with the infinite gives what Java gives.
            none = (
                f"CAST({a} AS DOUBLE) * CAST('Infinity' AS DOUBLE)"
                if part.operator == "/"
                else "CAST('NaN' AS DOUBLE)"
            )
            doubles = f"IF(CAST({b} AS DOUBLE) = 0, {none}, {doubles})"
            zero = f"{m} = 0"
        if part.operator == "/":
            whole = f"CAST({n} div {m} AS DECIMAL(38,0))"
        outcome = (
            f"CASE WHEN startswith({a}, '!') THEN `$p`.l WHEN startswith({b}, '!') THEN `$p`.r WHEN"
            f" size(`$p`.l) <> 1 OR size(`$p`.r) <> 1 THEN {several} WHEN NOT"
            f" {_IS_NUMBER.format(a)} THEN transform(`$p`.l, `$x` -> {_unfit('NUMBER')}[0]) WHEN"
            f" NOT {_IS_NUMBER.format(b)} THEN transform(`$p`.r, `$x` -> {_unfit('NUMBER')}[0])"
            f" WHEN concat({a}, {b}) RLIKE '{_FRACTION}' THEN array(CAST({doubles} AS STRING)) WHEN"
            f" {zero} THEN array('!') ELSE array({_in_range(whole, n, m)}) END"
        )
        return f"transform(array(named_struct('l', {left}, 'r', {right})), `$p` -> {outcome})[0]"

    def _keys_and_values(self, items: str) -> str:
        value = (
            f"IF(startswith(`$k`.value, '\"'), {_json_string('`$k`.value')}, coalesce(`$k`.value,"
            " 'null'))"
        )
        entry = (
            f'concat(\'{{"\\\\"name":\', {_json_string("`$k`.key")}, \',"\\\\"value":\', {value},'
            " ',\"\\\\\"id\":', CAST(`$i` AS STRING), '}')"
        )
        last = (
            "filter(`$m`, (`$k`, `$j`) -> NOT exists(slice(`$m`, `$j` + 2, size(`$m`)), `$e` ->"
            " `$e`.key = `$k`.key))"
        )
        outcome = f"transform(array({_ENTRIES}), `$m` -> transform({last}, `$k` -> {entry}))[0]"
        entries = (
            "CASE WHEN startswith(`$x`, '!') THEN array(`$x`) WHEN startswith(`$x`, '{') THEN"
            f" {outcome} ELSE {_unfit('OBJECT')} END"
        )
        return _first_failure(f"flatten(transform({items}, (`$x`, `$i`) -> {entries}))")

    # -- predicates

    def condition(self, part: t.Part) -> str:
        """Write a predicate: true, false, or NULL for unknown."""
        if isinstance(part, t.PathLogical):
            return f"({self.condition(part.left)} {part.operator} {self.condition(part.right)})"
        if isinstance(part, t.PathNot):
            return f"(NOT {self.condition(part.predicate)})"
        if isinstance(part, t.IsUnknown):
            return f"({self.condition(part.predicate)} IS NULL)"
        if isinstance(part, t.PathExists):
            exists = f"IF({_FAILED.format('`$s`')}, NULL, size(`$s`) > 0)"
            return f"transform(array({self.items(part.items)}), `$s` -> {exists})[0]"
        if isinstance(part, t.StartsWith):
            begins = (
                "IF(startswith(`$l`, '\"') AND startswith(`$p`.r[0], '\"'), startswith(`$l`,"
                " `$p`.r[0]), NULL)"
            )
            return self._any(
                part.whole, part.initial, f"transform(`$p`.l, `$l` -> {begins})", "false", "false"
            )
        assert isinstance(part, t.PathComparison)
        pairs = (
            "flatten(transform(`$p`.l, `$l` -> transform(`$p`.r, `$r` ->"
            f" {_compared(part.operator)})))"
        )
        is_null = "exists(`$p`.{}, `$x` -> `$x` = 'null')"
        nested = "exists(`$p`.{}, `$x` -> `$x` RLIKE '^[\\\\[{{]')"
        other = "exists(`$p`.{}, `$x` -> `$x` <> 'null')"
        apart = " OR ".join(f"({nested.format(a)} AND {other.format(b)})" for a, b in ("lr", "rl"))
        nulls = {
            "==": f"({is_null.format('l')} AND {is_null.format('r')})",
            "<>": " OR ".join(
                f"({is_null.format(a)} AND {other.format(b)})" for a, b in ("lr", "rl")
            ),
        }
        return self._any(part.left, part.right, pairs, nulls.get(part.operator, "false"), apart)

    def _any(self, left: t.Part, right: t.Part, pairs: str, certain: str, unknown: str) -> str:
        """Write whether a pair is true: in lax mode the first that is not false decides, in strict
        mode none may be unknown.

        In lax mode, ``certain`` makes it true in any case; ``unknown`` is tested before scalars are
        compared.
        """
        ours, theirs = (self._unwrapped(self.items(side)) for side in (left, right))
        first = (
            "transform(array(filter(`$b`, `$x` -> `$x` IS NULL OR `$x`)), `$f` -> IF(size(`$f`) ="
            " 0, false, `$f`[0]))[0]"
        )
        all_known = "IF(exists(`$b`, `$x` -> `$x` IS NULL), NULL, exists(`$b`, `$x` -> `$x`))"
        result = f"transform(array({pairs}), `$b` -> {all_known if self.strict else first})[0]"
        sure = "" if self.strict else f"WHEN {certain} THEN true "
        outcome = (
            f"CASE WHEN {_FAILED.format('`$p`.l')} OR {_FAILED.format('`$p`.r')} THEN NULL"
            f" {sure}WHEN {unknown} THEN NULL ELSE {result} END"
        )
        return f"transform(array(named_struct('l', {ours}, 'r', {theirs})), `$p` -> {outcome})[0]"


_FAILED: Final = "(size({0}) = 1 AND startswith({0}[0], '!'))"
_IS_NUMBER: Final = "{} RLIKE '^[-0-9IN]'"
_FRACTION: Final = "[.EIN]"
_LARGE: Final = "abs(`$n`) >= 4503599627370496D OR `$n` = 0"
_ROUNDINGS: Final = {
    "abs": ("abs(`$n`)", "IF(`$n` < 0, -`$n`, `$n`)"),
    "ceiling": ("`$n`", f"IF({_LARGE}, `$n`, -CAST(floor(-`$n`) AS DOUBLE))"),
    "floor": ("`$n`", f"IF({_LARGE}, `$n`, CAST(floor(`$n`) AS DOUBLE))"),
}
"""Per method the formulas for an integer and for a double."""


def _in_range(result: str, *numbers: str) -> str:
    """Write an integer as an item, or a failure above the type of its operands, integer or bigint."""
    small = " AND ".join(f"{number} BETWEEN -2147483648 AND 2147483647" for number in numbers)
    low, high = "-9223372036854775808BD", "9223372036854775807BD"
    return (
        f"transform(array({result}), `$q` -> IF(IF({small}, `$q` BETWEEN -2147483648 AND"
        f" 2147483647, `$q` BETWEEN {low} AND {high}), CAST(`$q` AS STRING), '!'))[0]"
    )


def _compared(operator: str) -> str:
    sign = "=" if operator == "==" else operator
    alike = {"==": "`$l` = `$r`", "<>": "`$l` <> `$r`"}.get(operator, "false")
    numbers = " AND ".join(_IS_NUMBER.format(side) for side in ("`$l`", "`$r`"))
    words = "`$l` IN ('true', 'false') AND `$r` IN ('true', 'false')"
    return (
        f"CASE WHEN `$l` = 'null' OR `$r` = 'null' THEN {alike} WHEN (startswith(`$l`, '\"') AND"
        f" startswith(`$r`, '\"')) OR ({words}) THEN `$l` {sign} `$r` WHEN NOT ({numbers}) THEN"
        f" NULL WHEN concat(`$l`, `$r`) RLIKE '{_FRACTION}' THEN CAST(`$l` AS DOUBLE) {sign}"
        f" CAST(`$r` AS DOUBLE) ELSE CAST(`$l` AS DECIMAL(38,0)) {sign} CAST(`$r` AS"
        " DECIMAL(38,0)) END"
    )


def _json_string(string: str) -> str:
    return f"regexp_replace(to_json(array({string})), '^.|.$', '')"


def _chosen(elements: str, step: Subscripts, *, strict: bool) -> str:
    if not step.ranges:
        return elements
    parts = [_slice(part, strict=strict) for part in step.ranges]
    body = parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
    empty = (
        "array('!structural error: invalid array subscript for empty array')"
        if strict
        else "array()"
    )
    return f"transform(array({elements}), `$a` -> IF(size(`$a`) = 0, {empty}, {body}))[0]"


def _slice(part: Range, *, strict: bool) -> str:
    first, last = _index(part.first), _index(part.last)
    low, high = f"greatest({first}, 0)", f"least({last}, size(`$a`) - 1)"
    inside = f"{first} <= {last} AND {low} <= {high}"
    slice_text = f"slice(`$a`, {low} + 1, {high} - {low} + 1)"
    if not strict:
        return f"IF({inside}, {slice_text}, array())"
    message = (
        f"concat('!structural error: invalid array subscript: [', CAST({first} AS STRING), ', ',"
        f" CAST({last} AS STRING), '] for array of size ', CAST(size(`$a`) AS STRING))"
    )
    return (
        f"IF({first} BETWEEN 0 AND {last} AND {last} < size(`$a`), {slice_text}, array({message}))"
    )


def _index(offset: tuple[int, bool]) -> str:
    number, from_last = offset
    return f"(size(`$a`) - 1 + ({number}))" if from_last else f"({number})"


def json_text(item: str) -> str:
    string = _json_string(f"substring({item}, 2)")
    unmarked = f"regexp_replace({item}, '\"\\\\\\\\{_STRING}', '\"$1\"')"
    # Numbers beyond double are infinite, which JSON expresses as text.
    whole = (
        f"CASE WHEN startswith({item}, '\"') THEN {string} "
        f"WHEN endswith({item}, 'Infinity') THEN concat('\"', {item}, '\"') ELSE {unmarked} END"
    )
    return escaped(whole, where=item)
