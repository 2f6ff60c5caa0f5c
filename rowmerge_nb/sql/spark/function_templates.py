"""Templates of Spark SQL for functions, filled with the texts of arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.arithmetic import absolute, divisor
from rowmerge_nb.sql.spark.casts.spark_casts import shown
from rowmerge_nb.sql.spark.comparisons import certain_keys
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import spark_type, without_unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.types import Type

_MARK: Final = re.compile(
    r"\{(\*|type|absolute|certain keys|rows|distinct|fail:[^{}]+|(?:int|divisor):\d|\d(?: names|"
    r" body)?)\}"
)


@dataclass(frozen=True)
class Template:
    """What fills the templates of a function.

    Args:
        texts: the arguments.
        sql_type: the type of the result.
        fail: writes an error with a code and the parts of a message.
        safe: whether failures are NULL (TRY).
        rows: FILTER or OVER of an aggregate.
        distinct: DISTINCT of an aggregate.
    """

    texts: list[str]
    sql_type: Type
    fail: Callable[..., str]
    safe: bool
    rows: str = ""
    distinct: str = ""

    def fill(self, template: str) -> str:
        return _MARK.sub(self._filled, template)

    def _filled(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "*":
            return ", ".join(self.texts)
        if name == "type":
            return spark_type(without_unknown(self.sql_type))
        if name == "absolute":
            return absolute(self.texts[0], self.sql_type)
        if name == "certain keys":
            return certain_keys(self.texts[0], self.sql_type.parameters[0], self.fail, shown)
        if name in {"rows", "distinct"}:
            return self.rows if name == "rows" else self.distinct
        if name.startswith("fail:"):
            _, code, message = name.split(":", 2)
            return self.fail(code, *_message(message, self.texts, self.sql_type))
        if name.startswith("int:"):
            return _as_int(self.texts[int(name[4:])])
        if name.startswith("divisor:"):
            return divisor(self.texts[int(name[8:])], safe=self.safe)
        if " " in name:
            names, body = self.texts[int(name[0])].split(" -> ", 1)
            return names if name.endswith("names") else body
        return self.texts[int(name)]


def _message(template: str, texts: list[str], sql_type: Type) -> list[str]:
    """Return the parts of a message: ``$0`` an argument, ``$(...)`` Spark SQL over arguments,
    ``$key(...)`` a map's key.
    """
    parts: list[str] = []
    plain = ""
    offset = 0
    while offset < len(template):
        end = offset + 1
        if template[offset] != "$":
            plain += template[offset]
            offset = end
            continue
        inner = template[end]
        is_key = template.startswith("key(", end)
        if inner == "(" or is_key:
            opening = template.index("(", end)
            end = _closing(template, opening)
            inner = template[opening + 1 : end]
        sql = re.sub(
            r"\$(\d)", lambda match: texts[int(match[1])], inner if len(inner) > 1 else f"${inner}"
        )
        value = (
            once(lambda key: shown(key, sql_type.parameters[0]), sql)
            if is_key
            else f"CAST({sql} AS STRING)"
        )
        parts += [*([text_literal(plain)] if plain else []), value]
        plain, offset = "", end + 1
    return [*parts, *([text_literal(plain)] if plain else [])]


def _closing(text: str, opening: int) -> int:
    depth = 0
    for index in range(opening, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if depth == 0:
            return index
    raise AssertionError(text)


_INTEGER_LITERAL: Final = re.compile(r"(?:CAST\()?\(?(-?\d{1,9})L?\)?(?: AS BIGINT\))?")


def _as_int(text: str) -> str:
    literal = _INTEGER_LITERAL.fullmatch(text)
    if literal:
        return f"({literal[1]})" if literal[1].startswith("-") else literal[1]
    return (
        f"CAST(CASE WHEN {text} > 2147483647 THEN 2147483647 WHEN {text} < -2147483648 THEN"
        f" -2147483648 ELSE {text} END AS INT)"
    )
