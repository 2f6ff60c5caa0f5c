"""Partition transforms as Iceberg defines them, such as ``bucket(id, 16)`` and ``month(day)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.connectors.shared.murmur import murmur3
from rowmerge_nb.connectors.shared.properties import invalid_property
from rowmerge_nb.spi import Type
from rowmerge_nb.spi.uuids import uuid_bytes

_INTEGERS: Final = {"tinyint", "smallint", "integer", "bigint"}
_MOMENTS: Final = {"timestamp", "timestamp with time zone"}
_NESTED: Final = {"array", "map", "row"}
_TAKES: Final = {
    "year": {"date", *_MOMENTS},
    "month": {"date", *_MOMENTS},
    "day": {"date", *_MOMENTS},
    "hour": _MOMENTS,
    "bucket": {*_INTEGERS, *_MOMENTS, "decimal", "date", "time", "varchar", "varbinary", "uuid"},
    "truncate": {*_INTEGERS, "decimal", "varchar", "varbinary"},
}
"""The types that each transform takes."""
_FORMS: Final = "column, year(c), month(c), day(c), hour(c), bucket(c, n), truncate(c, n), void(c)"
_CALL: Final = re.compile(
    r"""\s*(\w+)\s*\(\s*("(?:[^"]|"")+"|[^",()]+?)\s*(?:,\s*(\d+)\s*)?\)\s*"""
)
_QUOTED: Final = re.compile('"(?:[^"]|"")+"')
_MOST: Final = 2**31 - 1
_LEAST: Final = -(2**31)
_PERIODS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
"""The units of NumPy for periods."""


@dataclass(frozen=True)
class Transform:
    """A partition transform of a column.

    Args:
        width: the number of buckets, or the width of truncate; None for the others.
    """

    name: str
    column: str
    width: int | None = None
    base: str = ""

    def __str__(self) -> str:
        column = self.column if re.fullmatch(r"\w+", self.column) else quoted(self.column)
        if self.name == "identity":
            return column
        return f"{self.name}({column}{'' if self.width is None else f', {self.width}'})"

    def apply(self, values: pa.Array) -> pa.Array:
        """Return the partition value of each row; NULL for NULL."""
        if self.name == "identity":
            return values
        if self.name == "void":
            return pa.nulls(len(values), pa.int32())
        if self.name == "bucket":
            return self._bucket(values)
        if self.name == "truncate":
            return self._truncate(values)
        return self._period(values)

    def _bucket(self, values: pa.Array) -> pa.Array:
        hashed = murmur3(uuid_bytes(values).cast(pa.binary()) if self.base == "uuid" else values)
        numbers = (hashed & np.int32(_MOST)) % np.int32(self.width or 1)
        return pa.array(numbers, pa.int32(), mask=pc.is_null(values).to_numpy(zero_copy_only=False))

    def _truncate(self, values: pa.Array) -> pa.Array:
        width = self.width or 1
        arrow_type = values.type
        if pa.types.is_string(arrow_type):
            return pc.utf8_slice_codeunits(values, 0, width)
        if pa.types.is_binary(arrow_type):
            return pc.binary_slice(values, 0, width)
        if pa.types.is_decimal(arrow_type):
            # The multiple below a negative number may need another digit.
            wide = values.cast(pa.decimal128(38, arrow_type.scale))
            multiple = pa.scalar(
                Decimal(width).scaleb(-arrow_type.scale), pa.decimal128(38, arrow_type.scale)
            )
            try:
                return pc.round_to_multiple(wide, multiple=multiple, round_mode="down").cast(
                    arrow_type
                )
            except pa.ArrowInvalid as error:
                raise self._out_of_range(values) from error
        numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        mask = pc.is_null(values).to_numpy(zero_copy_only=False)
        multiples = numbers - numbers % width
        # Partition values of all integer types but bigint have 32 bits.
        if arrow_type.bit_width <= 32 and len(multiples) and multiples.min() < _LEAST:
            raise self._out_of_range(values)
        return pa.array(multiples, pa.int64(), mask=mask)

    def _out_of_range(self, values: pa.Array) -> ConnectorError:
        least = pc.min(values).as_py()
        return ConnectorError(
            f"Value {least} of column '{self.column}' is in no partition {self}: the multiple below"
            " it is out of the range of its type",
            code="NUMERIC_VALUE_OUT_OF_RANGE",
            hint="Write another value, or partition the table by another transform.",
        )

    def _period(self, values: pa.Array) -> pa.Array:
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("us"))
        is_date = pa.types.is_date(values.type)
        moments = pc.fill_null(values.cast(pa.int32() if is_date else pa.int64()), 0).to_numpy(
            zero_copy_only=False
        )
        # NumPy supports all years; Arrow's calendar ends after 32,767.
        exact = moments.astype(np.int64).view("datetime64[D]" if is_date else "datetime64[us]")
        periods = exact.astype(f"datetime64[{_PERIODS[self.name]}]").astype(np.int64)
        return pa.array(periods, pa.int64(), mask=pc.is_null(values).to_numpy(zero_copy_only=False))


def parse_transforms(
    texts: Iterable[str],
    columns: Mapping[str, tuple[str, Type]],
    table_property: str = "partitioned_by",
) -> tuple[Transform, ...]:
    """Parse the entries of ``partitioned_by`` or a similar property, or raise
    INVALID_TABLE_PROPERTY.
    """
    transforms: list[Transform] = []
    try:
        for text in texts:
            transform = _parsed(str(text), columns)
            if transform in transforms:
                _refuse(f": {transform} is named twice", "Name each of them once.")
            transforms.append(transform)
    except _UnfitEntryError as error:
        raise invalid_property(
            table_property, f"Table property '{table_property}'{error.what}", error.hint
        ) from None
    return tuple(transforms)


class _UnfitEntryError(Exception):
    """An invalid entry; `parse_transforms` puts the name of the property before ``what``."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint


def _parsed(text: str, columns: Mapping[str, tuple[str, Type]]) -> Transform:
    identifier = _unquoted(text) if _QUOTED.fullmatch(text) else text
    if identifier.lower() in columns:
        column, sql_type = columns[identifier.lower()]
        if sql_type.base in _NESTED:
            _refuse(
                f": column '{column}' is of type {sql_type}, which cannot determine"
                " where rows are stored",
                "Name columns of plain types.",
            )
        return Transform("identity", column, None, sql_type.base)
    call = _CALL.fullmatch(text)
    if call is None:
        if identifier != text or re.fullmatch(r"\w+", text):
            _unknown_column(identifier, columns)
        _refuse(f": '{text}' is not a partition transform", f"There are: {_FORMS}.")
    name, column_text, width = call[1].lower(), call[2], int(call[3]) if call[3] else None
    column = _unquoted(column_text) if column_text.startswith('"') else column_text
    if name not in {*_TAKES, "void"}:
        _refuse(f": '{text}' is not a partition transform", f"There are: {_FORMS}.")
    if column.lower() not in columns:
        _unknown_column(column, columns)
    takes_width = name in {"bucket", "truncate"}
    if takes_width != (width is not None):
        _refuse(
            f": '{text}' {'lacks its number' if takes_width else 'takes no number'}",
            f"There are: {_FORMS}.",
        )
    if width is not None and not 1 <= width <= _MOST:
        _refuse(f": {width} in '{text}' is out of range", f"It is from 1 to {_MOST}.")
    spelled, sql_type = columns[column.lower()]
    transform = Transform(name, spelled, width, sql_type.base)
    if name in _TAKES and sql_type.base not in _TAKES[name]:
        takes = ", ".join(sorted(_TAKES[name]))
        _refuse(
            f": {transform} cannot be computed for a column of type {sql_type}",
            f"{name} takes: {takes}.",
        )
    return transform


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"')


def _unknown_column(column: str, columns: Mapping[str, tuple[str, Type]]) -> NoReturn:
    _refuse(
        f" names column '{column}', which the table does not have",
        f"Its columns are: {', '.join(name for name, _ in columns.values())}.",
    )


def _refuse(what: str, hint: str) -> NoReturn:
    raise _UnfitEntryError(what, hint)
