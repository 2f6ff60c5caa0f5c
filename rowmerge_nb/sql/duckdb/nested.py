"""Arrays, maps and rows in DuckDB SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import UNKNOWN, Type
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, bound, duckdb_type, field_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CODE = "INVALID_FUNCTION_ARGUMENT"


def array_text(texts: Sequence[str], sql_type: Type) -> str:
    if sql_type.parameters[0] == UNKNOWN:
        raise UnprintableError(f"an array of type {sql_type}")
    return f"CAST([{', '.join(texts)}] AS {duckdb_type(sql_type)})"


def row_text(texts: Sequence[str], sql_type: Type) -> str:
    pairs = ", ".join(
        f"{quoted(name)} := {text}" for name, text in zip(field_names(sql_type), texts, strict=True)
    )
    return f"CAST(struct_pack({pairs}) AS {duckdb_type(sql_type)})"


def arrays_joined(texts: Sequence[str]) -> str:
    """Concatenate arrays; unlike `list_concat`, the operator returns NULL for NULL.

    >>> arrays_joined(["a", "b"])
    '(a || b)'
    """
    return f"({' || '.join(texts)})"


def subscript_text(texts: Sequence[str], sql_type: Type, fail: Callable[..., str]) -> str:
    """Write ``array[index]`` or ``map[key]``, an error if missing."""
    if sql_type.base == "map":

        def from_map(whole: str, key: str) -> str:
            missing = fail(_CODE, "'Key not present in map: '", f"CAST({key} AS VARCHAR)")
            value = f"CASE WHEN map_contains({whole}, {key}) THEN {whole}[{key}] ELSE {missing} END"
            return f"CASE WHEN {whole} IS NOT NULL AND {key} IS NOT NULL THEN {value} END"

        return bound(from_map, *texts)

    def from_array(whole: str, index: str) -> str:
        zero = fail(_CODE, "'SQL array indices start at 1'")
        index_text = f"CAST({index} AS VARCHAR)"
        negative = fail(_CODE, "'Array subscript is negative: '", index_text)
        beyond = fail(
            _CODE,
            "'Array subscript must be less than or equal to array length: '",
            index_text,
            "' > '",
            f"CAST(len({whole}) AS VARCHAR)",
        )
        return (
            f"CASE WHEN {whole} IS NULL OR {index} IS NULL THEN NULL WHEN {index} = 0 THEN {zero}"
            f" WHEN {index} < 0 THEN {negative} WHEN {index} > len({whole}) THEN {beyond} ELSE"
            f" {whole}[{index}] END"
        )

    return bound(from_array, *texts)


def nested_cast(
    text: str, source: Type, target: Type, cast: Callable[[str, Type, Type], str]
) -> str:
    part = f"part{_depth(source)}_"
    if source.base == "array":
        return (
            f"list_transform({text}, lambda {part}:"
            f" {cast(part, source.parameters[0], target.parameters[0])})"
        )
    if source.base == "map":
        sides = zip(("key", "value"), source.parameters, target.parameters, strict=True)
        entry = ", ".join(f"'{side}': " + cast(f"{part}['{side}']", a, b) for side, a, b in sides)
        return f"map_from_entries(list_transform(map_entries({text}), lambda {part}: {{{entry}}}))"

    def write(row: str) -> str:
        kinds = zip(source.parameters, target.parameters, strict=True)
        fields = [
            cast(f"struct_extract_at({row}, {index})", a, b)
            for index, (a, b) in enumerate(kinds, start=1)
        ]
        return f"CASE WHEN {row} IS NOT NULL THEN {row_text(fields, target)} END"

    return bound(write, text)


def _depth(sql_type: Type) -> int:
    return 1 + max(
        (_depth(part) for part in sql_type.parameters if isinstance(part, Type)), default=0
    )
