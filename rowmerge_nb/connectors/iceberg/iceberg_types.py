"""Types: which SQL type a column of Iceberg's has, and which type of Iceberg's a column of SQL gets."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.iceberg.handles import Field
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
    Type,
    array_of,
    decimal_of,
    map_of,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

    from rowmerge_nb.spi.metadata import ColumnMetadata

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


def fields_of(schema: Schema, table: object) -> tuple[Field, ...]:
    """Return the columns of a schema.

    Raises:
        ConnectorError: NOT_SUPPORTED for a type that has no counterpart; the message names column and type.
    """
    return tuple(field_of(field, field.name, table) for field in schema.fields)


def field_of(field: NestedField, path: str, table: object) -> Field:
    """Return a field of a schema.

    Args:
        field: the field.
        path: how to call it in errors.
        table: the table that it belongs to.
    """
    from pyiceberg import types as t
    from pyiceberg.conversions import from_json

    kind, parts, length = field.field_type, tuple[Field, ...](), None
    if isinstance(kind, t.StructType):
        parts = tuple(field_of(part, f"{path}.{part.name}", table) for part in kind.fields)
        word, sql = "struct", row_of((part.name, part.type) for part in parts)
    elif isinstance(kind, t.ListType):
        parts = (field_of(kind.element_field, f"{path}.element", table),)
        word, sql = "list", array_of(parts[0].type)
    elif isinstance(kind, t.MapType):
        parts = (field_of(kind.key_field, f"{path}.key", table), field_of(kind.value_field, f"{path}.value", table))
        word, sql = "map", map_of(parts[0].type, parts[1].type)
    elif isinstance(kind, t.DecimalType):
        word, sql = "decimal", decimal_of(kind.precision, kind.scale)
    elif isinstance(kind, t.FixedType):
        word, sql, length = "fixed", VARBINARY, len(kind)
    elif str(kind) in _READ:
        word, sql = str(kind), _READ[str(kind)]
    else:
        raise ConnectorError(
            f"Column '{path}' of Iceberg table '{table}' is of type {kind}, which is not supported",
            hint="Read the table through a view of another engine that casts the column.",
        )
    default = field.initial_default
    if default is not None and isinstance(kind, t.PrimitiveType):
        default = from_json(kind, default)
    return Field(field.field_id, field.name, sql, word, field.required, default, parts, field.doc or None, length)


@contextmanager
def names_apart() -> Iterator[None]:
    """Report what is wrong with names that Iceberg takes for one: it names the fields of rows with a dot before them.

    Raises:
        AnalysisError: NOT_SUPPORTED.
    """
    try:
        yield
    except ValueError as error:
        if "multiple fields for name" not in str(error):
            raise
        raise AnalysisError(
            f"Iceberg cannot tell the columns and the fields of rows apart: {error}",
            code="NOT_SUPPORTED",
            hint="Give the column with a dot in its name another one.",
        ) from error


def schema_of(columns: Sequence[ColumnMetadata]) -> Schema:
    """Return the schema of a new table; types without a counterpart become the next wider one, as in Trino.

    Raises:
        AnalysisError: NOT_SUPPORTED; the message names column and type, or two columns and fields of one name.
    """
    from pyiceberg.schema import Schema, assign_fresh_schema_ids
    from pyiceberg.types import NestedField

    fields = []
    for number, column in enumerate(columns, 1):
        if column.default is not None:
            raise AnalysisError(
                f"Column '{column.name}' has a default value, which Iceberg tables of format version 2 do not have",
                code="NOT_SUPPORTED",
                hint="Leave DEFAULT out, and name the value in INSERT.",
            )
        kind = _written(column.type, column.name)
        fields.append(NestedField(number, column.name, kind, required=not column.nullable, doc=column.comment))
    with names_apart():
        return assign_fresh_schema_ids(Schema(*fields))


def _written(kind: Type, path: str) -> IcebergType:
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
    if kind.base in plain:
        made: IcebergType = plain[kind.base]()
        return made
    if kind.base == "decimal":
        return t.DecimalType(*kind.parameters)
    if kind.base == "array":
        return t.ListType(element_id=-1, element=_written(kind.parameters[0], f"{path}.element"), element_required=False)
    if kind.base == "map":
        key, value = (_written(part, f"{path}.{name}") for part, name in zip(kind.parameters, ("key", "value"), strict=True))
        return t.MapType(key_id=-1, key_type=key, value_id=-1, value_type=value, value_required=False)
    if kind.base == "row":
        if any(name is None for name in kind.fields):
            raise AnalysisError(
                f"Row type field does not have a name: {kind}, of column '{path}'",
                code="NOT_SUPPORTED",
                hint="Cast it to a row with names: CAST(c AS row(a integer, ...)).",
            )
        named = list(zip(kind.fields, kind.parameters, strict=True))
        parts = [
            t.NestedField(-1 - i, str(n), _written(part, f"{path}.{n}"), required=False) for i, (n, part) in enumerate(named)
        ]
        return t.StructType(*parts)
    raise AnalysisError(
        f"Type not supported for Iceberg: {kind}, of column '{path}'",
        code="NOT_SUPPORTED",
        hint="CAST it to a type that Iceberg has, for instance varchar.",
    )
