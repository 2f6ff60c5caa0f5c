"""The order of rows within data files: the property ``sorted_by``, Iceberg's sort orders, and
sorting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.connectors.shared.properties import invalid_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.sorting import SortField, SortOrder

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField

_KEY: Final = re.compile(
    r'\s*(?:"(?P<quoted>(?:""|[^"])*)"|(?P<plain>[a-z_][a-z0-9_]*))'
    r"(?:\s+(?P<order>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE,
)
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True)
class SortKey:
    name: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        name = (
            self.name
            if _PLAIN.fullmatch(self.name)
            else '"{}"'.format(self.name.replace('"', '""'))
        )
        return (
            f"{name} {'DESC' if self.descending else 'ASC'} NULLS"
            f" {'FIRST' if self.nulls_first else 'LAST'}"
        )


def parse_keys(texts: Sequence[str]) -> tuple[SortKey, ...]:
    """Parse ``sorted_by``, or raise INVALID_TABLE_PROPERTY.

    >>> [str(key) for key in parse_keys(["ID", '"a b" desc', "c ASC NULLS LAST"])]
    ['id ASC NULLS FIRST', '"a b" DESC NULLS LAST', 'c ASC NULLS LAST']
    """
    keys = []
    for text in texts:
        match = _KEY.fullmatch(text)
        if match is None:
            msg = f"Unable to parse sort field: [{text}]"
            hint = "Write ARRAY['column', 'other DESC NULLS FIRST']."
            raise invalid_property("sorted_by", msg, hint)
        name = match["plain"] if match["quoted"] is None else match["quoted"].replace('""', '"')
        descending = (match["order"] or "").upper() == "DESC"
        nulls_first = (
            not descending if match["nulls"] is None else match["nulls"].upper() == "FIRST"
        )
        keys.append(SortKey(name.lower(), descending, nulls_first))
    return tuple(keys)


def order_of(keys: Sequence[SortKey], schema: Schema) -> SortOrder:
    """Return Iceberg's sort order for keys, or raise COLUMN_NOT_FOUND or INVALID_TABLE_PROPERTY."""
    from pyiceberg.table.sorting import (
        UNSORTED_SORT_ORDER,
        NullOrder,
        SortDirection,
        SortField,
        SortOrder,
    )
    from pyiceberg.transforms import IdentityTransform

    fields = []
    for key in keys:
        source = next((field for field in schema.fields if field.name.lower() == key.name), None)
        if source is None:
            raise AnalysisError(
                f"Column not found: {key.name}",
                code="COLUMN_NOT_FOUND",
                properties=("sorted_by",),
                hint=(
                    f"The table has the columns {', '.join(field.name for field in schema.fields)}."
                ),
            )
        if not source.field_type.is_primitive:
            msg = "Invalid sorted_by definition"
            hint = f"Values of column '{source.name}', of type {source.field_type}, have no order."
            raise invalid_property("sorted_by", msg, hint)
        direction = SortDirection.DESC if key.descending else SortDirection.ASC
        nulls = NullOrder.NULLS_FIRST if key.nulls_first else NullOrder.NULLS_LAST
        fields.append(SortField(source.field_id, IdentityTransform(), direction, nulls))
    return SortOrder(*fields, order_id=1) if fields else UNSORTED_SORT_ORDER


def sort_fields(metadata: TableMetadata) -> Sequence[SortField]:
    return next(
        (
            order.fields
            for order in metadata.sort_orders
            if order.order_id == metadata.default_sort_order_id
        ),
        (),
    )


def shown_keys(table: Table) -> tuple[SortKey, ...]:
    """Return the keys of a table's sort order, or () if it is not supported."""
    from pyiceberg.table.sorting import NullOrder, SortDirection

    schema, keys = table.schema(), []
    for part in sort_fields(table.metadata):
        name = next(
            (field.name for field in schema.fields if field.field_id == part.source_id), None
        )
        if name is None or str(part.transform) != "identity":
            return ()
        keys.append(
            SortKey(
                name, part.direction == SortDirection.DESC, part.null_order == NullOrder.NULLS_FIRST
            )
        )
    return tuple(keys)


def keys_of(
    keys: Sequence[SortKey], fields: Sequence[IcebergField]
) -> tuple[tuple[int, bool, bool], ...]:
    """Return each key's column index, descending flag and NULLS FIRST flag."""
    names = [field.name for field in fields]
    return tuple((names.index(key.name), key.descending, key.nulls_first) for key in keys)


def sorted_rows(rows: pa.Table, keys: Sequence[tuple[int, bool, bool]]) -> pa.Table:
    """Sort rows; NaN is the greatest number.

    >>> rows = pa.table({"a": [1.0, None, float("nan"), 2.0], "b": [1, 2, 3, 4]})
    >>> sorted_rows(rows, [(0, True, False)])["b"].to_pylist()
    [3, 4, 1, 2]
    """
    columns: dict[str, pa.ChunkedArray] = {}
    order: list[tuple[str, str]] = []
    for number, (index, descending, nulls_first) in enumerate(keys):
        values, direction = rows.column(index), "descending" if descending else "ascending"
        if isinstance(values.type, pa.BaseExtensionType):
            # Arrow cannot sort UUIDs; their order is that of their bytes.
            values = values.cast(values.type.storage_type)
        parts = [(pc.is_null(values), "descending" if nulls_first else "ascending")]
        if pa.types.is_floating(values.type):
            parts.append((pc.is_nan(values), direction))
        parts.append((values, direction))
        for part, (value, how) in enumerate(parts):
            columns[f"{number}.{part}"] = value
            order.append((f"{number}.{part}", how))
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=order))
