"""Mapping between Iceberg's types and SQL types."""

from __future__ import annotations

from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.iceberg.default_values import value_of
from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField
from rowmerge_nb.connectors.iceberg.version_three import VERSION
from rowmerge_nb.spi import ColumnMetadata, Type
from rowmerge_nb.spi.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    UUID,
    VARBINARY,
    VARCHAR,
    array_of,
    decimal_of,
    map_of,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField


_READ: Final = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": BIGINT,
    "float": REAL,
    "double": DOUBLE,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP_TZ,
    "string": VARCHAR,
    "uuid": UUID,
    "binary": VARBINARY,
}


def fields_of(schema: Schema, table: object) -> tuple[IcebergField, ...]:
    """Return the columns of a schema, or raise NOT_SUPPORTED."""
    return tuple(field_of(field, field.name, table) for field in schema.fields)


def field_of(field: NestedField, path: str, table: object) -> IcebergField:
    from pyiceberg import types as t
    from pyiceberg.conversions import from_json

    iceberg_type, parts, length = field.field_type, tuple[IcebergField, ...](), None
    if isinstance(iceberg_type, t.StructType):
        parts = tuple(field_of(part, f"{path}.{part.name}", table) for part in iceberg_type.fields)
        word, sql = "struct", row_of((part.name, part.type) for part in parts)
    elif isinstance(iceberg_type, t.ListType):
        parts = (field_of(iceberg_type.element_field, f"{path}.element", table),)
        word, sql = "list", array_of(parts[0].type)
    elif isinstance(iceberg_type, t.MapType):
        parts = (
            field_of(iceberg_type.key_field, f"{path}.key", table),
            field_of(iceberg_type.value_field, f"{path}.value", table),
        )
        word, sql = "map", map_of(parts[0].type, parts[1].type)
    elif isinstance(iceberg_type, t.DecimalType):
        word, sql = "decimal", decimal_of(iceberg_type.precision, iceberg_type.scale)
    elif isinstance(iceberg_type, t.FixedType):
        word, sql, length = "fixed", VARBINARY, len(iceberg_type)
    elif str(iceberg_type) in _READ:
        word, sql = str(iceberg_type), _READ[str(iceberg_type)]
    else:
        raise ConnectorError(
            f"Column '{path}' of Iceberg table '{table}' is of type {iceberg_type}, which is not"
            " supported",
            hint="Read the table through a view of another engine that casts the column.",
        )
    initial, write = (
        from_json(iceberg_type, default)
        if default is not None and isinstance(iceberg_type, t.PrimitiveType)
        else default
        for default in (field.initial_default, field.write_default)
    )
    return IcebergField(
        field.field_id,
        field.name,
        sql,
        word,
        field.required,
        initial,
        parts,
        field.doc or None,
        length,
        write,
    )


@contextmanager
def names_apart() -> Iterator[None]:
    """Convert pyiceberg's error for ambiguous names to NOT_SUPPORTED; it joins the names of nested
    fields with dots.
    """
    try:
        yield
    except ValueError as error:
        if "multiple fields for name" not in str(error):
            raise
        raise AnalysisError.unsupported(
            f"Iceberg cannot distinguish columns from fields of rows: {error}",
            hint="Rename the column that has a dot in its name.",
        ) from error


def schema_of(columns: Sequence[ColumnMetadata], version: int = 2) -> Schema:
    """Return the schema of a new table; as in Trino, a type without a counterpart is widened.
    Others are NOT_SUPPORTED.
    """
    from pyiceberg.schema import Schema, assign_fresh_schema_ids
    from pyiceberg.types import NestedField

    fields = []
    for number, column in enumerate(columns, 1):
        if column.default is not None and version < VERSION:
            raise AnalysisError.unsupported(
                "Default column values are not supported for Iceberg table format version < 3:"
                f" column '{column.name}'",
                hint="Remove DEFAULT and write the value in INSERT, or add format_version = 3.",
            )
        iceberg_type = _to_iceberg(column.type, column.name)
        default = default_of(column.default, iceberg_type, column.name)
        fields.append(
            NestedField(
                number,
                column.name,
                iceberg_type,
                required=not column.nullable,
                doc=column.comment,
                initial_default=default,
                write_default=default,
            )
        )
    with names_apart():
        return assign_fresh_schema_ids(Schema(*fields))


def default_of(text: str | None, iceberg_type: IcebergType, column: str) -> Any:
    """Return a default value as pyiceberg keeps it in a schema, or raise NOT_SUPPORTED."""
    from pyiceberg.expressions.literals import literal
    from pyiceberg.types import DecimalType

    if text is None:
        return None
    type_name = "decimal" if isinstance(iceberg_type, DecimalType) else str(iceberg_type)
    value = value_of(text, type_name, column)
    if isinstance(iceberg_type, DecimalType) and value is not None:
        value = value.quantize(Decimal(1).scaleb(-iceberg_type.scale))
    return None if value is None else literal(value).to(iceberg_type).value


def _to_iceberg(sql_type: Type, path: str) -> IcebergType:
    from pyiceberg import types as t

    plain: dict[str, Callable[[], Any]] = {
        "boolean": t.BooleanType,
        "tinyint": t.IntegerType,
        "smallint": t.IntegerType,
        "integer": t.IntegerType,
        "bigint": t.LongType,
        "real": t.FloatType,
        "double": t.DoubleType,
        "date": t.DateType,
        "time": t.TimeType,
        "timestamp": t.TimestampType,
        "timestamp with time zone": t.TimestamptzType,
        "varchar": t.StringType,
        "char": t.StringType,
        "uuid": t.UUIDType,
        "varbinary": t.BinaryType,
    }
    if sql_type.base in plain:
        iceberg_type: IcebergType = plain[sql_type.base]()
        return iceberg_type
    if sql_type.base == "decimal":
        return t.DecimalType(*sql_type.parameters)
    if sql_type.base == "array":
        return t.ListType(
            element_id=-1,
            element=_to_iceberg(sql_type.parameters[0], f"{path}.element"),
            element_required=False,
        )
    if sql_type.base == "map":
        key, value = (
            _to_iceberg(part, f"{path}.{name}")
            for part, name in zip(sql_type.parameters, ("key", "value"), strict=True)
        )
        return t.MapType(
            key_id=-1, key_type=key, value_id=-1, value_type=value, value_required=False
        )
    if sql_type.base == "row":
        if any(name is None for name in sql_type.fields):
            raise AnalysisError.unsupported(
                f"Row type field does not have a name: {sql_type}, of column '{path}'",
                hint="Cast it to a row with names: CAST(c AS row(a integer, ...)).",
            )
        parts = list(zip(sql_type.fields, sql_type.parameters, strict=True))
        fields = [
            t.NestedField(-1 - i, str(n), _to_iceberg(part, f"{path}.{n}"), required=False)
            for i, (n, part) in enumerate(parts)
        ]
        return t.StructType(*fields)
    raise AnalysisError.unsupported(
        f"Type not supported for Iceberg: {sql_type}, of column '{path}'",
        hint="CAST it to a type that Iceberg has, for instance varchar.",
    )
