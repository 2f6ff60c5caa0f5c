"""Arrays, maps and rows in DuckDB SQL: how they are made, what is taken out of them, and casts of what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import UNKNOWN, Type
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, bound, duckdb_type, field_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CODE = "INVALID_FUNCTION_ARGUMENT"


def array_text(texts: Sequence[str], kind: Type) -> str:
    """Write an array.

    >>> from rowmerge_nb.spi.types import INTEGER, array_of
    >>> array_text(["1", "2"], array_of(INTEGER))
    'CAST([1, 2] AS INTEGER[])'
    """
    if kind.parameters[0] == UNKNOWN:
        raise UnprintableError(f"an array of type {kind}")
    return f"CAST([{', '.join(texts)}] AS {duckdb_type(kind)})"


def row_text(texts: Sequence[str], kind: Type) -> str:
    """Write a row.

    >>> from rowmerge_nb.spi.types import INTEGER, row_of
    >>> row_text(["1"], row_of([("a", INTEGER)]))
    'CAST(struct_pack("a" := 1) AS STRUCT("a" INTEGER))'
    """
    pairs = ", ".join(f"{quoted(name)} := {text}" for name, text in zip(field_names(kind), texts, strict=True))
    return f"CAST(struct_pack({pairs}) AS {duckdb_type(kind)})"


def arrays_joined(texts: Sequence[str]) -> str:
    """Write arrays one behind the other; NULL where one of them is.

    The operator, unlike the function `list_concat`, has NULL so. No value is written twice: a run of thirty is no longer than thirty.

    >>> arrays_joined(["a", "b"])
    '(a || b)'
    """
    return f"({' || '.join(texts)})"


def subscript_text(texts: Sequence[str], kind: Type, fail: Callable[..., str]) -> str:
    """Write ``array[index]`` or ``map[key]``, which must be there.

    Args:
        texts: the array or map, and the subscript.
        kind: the type of the first.
        fail: writes a failure.
    """
    if kind.base == "map":

        def from_map(whole: str, key: str) -> str:
            missing = fail(_CODE, "'Key not present in map: '", f"CAST({key} AS VARCHAR)")
            found = f"CASE WHEN map_contains({whole}, {key}) THEN {whole}[{key}] ELSE {missing} END"
            return f"CASE WHEN {whole} IS NOT NULL AND {key} IS NOT NULL THEN {found} END"

        return bound(from_map, *texts)

    def from_array(whole: str, index: str) -> str:
        zero = fail(_CODE, "'SQL array indices start at 1'")
        shown = f"CAST({index} AS VARCHAR)"
        negative = fail(_CODE, "'Array subscript is negative: '", shown)
        beyond = fail(
            _CODE,
            "'Array subscript must be less than or equal to array length: '",
            shown,
            "' > '",
            f"CAST(len({whole}) AS VARCHAR)",
        )
        return (
            f"CASE WHEN {whole} IS NULL OR {index} IS NULL THEN NULL WHEN {index} = 0 THEN {zero} WHEN {index} < 0 THEN {negative} "
            f"WHEN {index} > len({whole}) THEN {beyond} ELSE {whole}[{index}] END"
        )

    return bound(from_array, *texts)


def nested_cast(text: str, source: Type, target: Type, cast: Callable[[str, Type, Type], str]) -> str:
    """Write the cast of an array, a map or a row, part by part.

    Args:
        text: the value.
        source: its type.
        target: the type wanted, of the same kind.
        cast: writes the cast of a part from a type to another one.
    """
    part = f"part{_depth(source)}_"
    if source.base == "array":
        return f"list_transform({text}, lambda {part}: {cast(part, source.parameters[0], target.parameters[0])})"
    if source.base == "map":
        sides = zip(("key", "value"), source.parameters, target.parameters, strict=True)
        entry = ", ".join(f"'{side}': " + cast(f"{part}['{side}']", a, b) for side, a, b in sides)
        return f"map_from_entries(list_transform(map_entries({text}), lambda {part}: {{{entry}}}))"

    def write(row: str) -> str:
        kinds = zip(source.parameters, target.parameters, strict=True)
        fields = [cast(f"struct_extract_at({row}, {index})", a, b) for index, (a, b) in enumerate(kinds, start=1)]
        return f"CASE WHEN {row} IS NOT NULL THEN {row_text(fields, target)} END"

    return bound(write, text)


def _depth(kind: Type) -> int:
    """Return how many types there are one within the other, so that no parameter is taken for that of a lambda around it."""
    return 1 + max((_depth(part) for part in kind.parameters if isinstance(part, Type)), default=0)
