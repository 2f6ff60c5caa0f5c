"""UNNEST as one array of rows for Spark's generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.spark.printer import print_spark

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.queries import Unnested


def unnested_rows(node: Unnested) -> str:
    """Write the rows of UNNEST: arrays zipped up to the longest; NULL is empty."""
    arrays, values = [], []
    for index, item in enumerate(node.items):
        text, is_map = print_spark(item), item.type.base == "map"
        arrays.append(f"coalesce({f'map_entries({text})' if is_map else text}, array())")
        names = _field_names(item.type)
        values += (
            [f"z.`{index}`"]
            if names is None
            else [f"z.`{index}`.{backquoted(name)}" for name in names]
        )
    if node.ordinality:
        values.append("CAST(i + 1 AS BIGINT)")
    body = ", ".join(f"'{index}', {value}" for index, value in enumerate(values))
    assert len(values) == len(node.columns)
    return f"transform({_zipped(arrays)}, (z, i) -> named_struct({body}))"


def _field_names(sql_type: Type) -> list[str] | None:
    if sql_type.base == "map":
        return ["key", "value"]
    element = sql_type.parameters[0]
    return (
        [name or f"field{i}" for i, name in enumerate(element.fields)]
        if element.base == "row"
        else None
    )


def _zipped(arrays: list[str]) -> str:
    """Zip arrays into structs with the fields `0`, `1`, ...; Spark's zip may use column names."""
    if len(arrays) == 1:
        return f"transform({arrays[0]}, x -> named_struct('0', x))"
    longest = f"greatest({', '.join(f'size({array})' for array in arrays)})"
    fields = ", ".join(f"'{i}', get({array}, n)" for i, array in enumerate(arrays))
    return (
        f"transform(IF({longest} = 0, CAST(array() AS ARRAY<INT>), sequence(0, {longest} - 1)), n"
        f" -> named_struct({fields}))"
    )
