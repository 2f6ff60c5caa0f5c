"""Validation of a Hive table's columns and properties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.connectors.hive_acid.buckets import check_bucket_type
from rowmerge_nb.connectors.hive_acid.layout_names import BUCKET_LIMIT
from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable
from rowmerge_nb.connectors.hive_acid.orc_values import check_column_type, check_partition_type
from rowmerge_nb.connectors.shared.properties import invalid_property, listed_names, require_known
from rowmerge_nb.spi import ColumnMetadata, SchemaTableName, Type, parse_type

TABLE_PROPERTIES: Final = {
    "format": "'ORC', the only one",
    "transactional": "rows can be changed: true (default) or false",
    "partitioned_by": "the table's last columns, one folder per value, ARRAY['...']",
    "bucketed_by": "columns whose hash decides the bucket, ARRAY['...']",
    "bucket_count": "number of buckets",
    "bucketing_version": "Hive's bucket function: 1 (default) or 2",
}
"""The table properties that CREATE TABLE accepts."""

_INVALID: Final = "INVALID_TABLE_PROPERTY"


def defined_table(
    identity: str,
    name: SchemaTableName,
    columns: Sequence[ColumnMetadata],
    properties: Mapping[str, Any],
    location: str,
    *,
    managed: bool,
    comment: str | None = None,
) -> HiveTable:
    require_known(properties, TABLE_PROPERTIES, "Catalog 'hive'")
    if str(properties.get("format") or "ORC").upper() != "ORC":
        raise invalid_property(
            "format",
            f"Tables of format {properties['format']} are not supported; format can be 'ORC'",
            "Omit the property format.",
        )
    _check_columns(columns)
    partitioned_by = _partition_columns(columns, properties)
    bucketed_by, count, version = _buckets(columns, partitioned_by, properties)
    transactional = properties.get("transactional")
    if transactional not in (None, True, False):
        raise invalid_property(
            "transactional",
            f"Invalid value for table property 'transactional': Cannot convert [{transactional}] to"
            " boolean",
            "It must be true or false.",
        )
    return HiveTable(
        identity,
        name,
        location,
        tuple(columns),
        partitioned_by,
        bucketed_by,
        count,
        version,
        managed,
        True if transactional is None else bool(transactional),
        comment,
    )


def described_columns(columns: Any) -> list[ColumnMetadata]:
    """Return columns from a program's names and types, or raise INVALID_ARGUMENTS.

    >>> [(column.name, str(column.type)) for column in described_columns({"id": "bigint", "v": "varchar(5)"})]
    [('id', 'bigint'), ('v', 'varchar(5)')]
    >>> described_columns({"id": "digits"})
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: Column 'id' cannot have the type 'digits': Unknown type: digits. Give names and types: columns={'id': 'bigint', 'name': 'varchar'}.
    """
    form = "names and types: columns={'id': 'bigint', 'name': 'varchar'}"
    pairs = list(columns.items()) if isinstance(columns, Mapping) else columns
    if isinstance(pairs, Iterable) and not isinstance(pairs, str | bytes):
        pairs = list(pairs)
    checked(
        pairs,
        "columns",
        lambda value: isinstance(value, list) and bool(value) and all(map(_is_column, value)),
        form,
    )
    described = []
    for name, column_type in pairs:
        try:
            described.append(
                ColumnMetadata(
                    name, parse_type(column_type) if isinstance(column_type, str) else column_type
                )
            )
        except ValueError as error:
            raise RowMergeError.invalid(
                f"Column '{name}' cannot have the type '{column_type}': {error}",
                hint=f"Give {form}.",
            ) from error
    repeated = [
        name
        for name, count in Counter(column.name.lower() for column in described).items()
        if count > 1
    ]
    if repeated:
        raise RowMergeError.invalid(
            f"Column '{repeated[0]}' occurs twice",
            hint="Give each column a different name; case does not count.",
        )
    return described


def _is_column(pair: Any) -> bool:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    name, column_type = pair
    return isinstance(name, str) and bool(name.strip()) and isinstance(column_type, str | Type)


def _check_columns(columns: Sequence[ColumnMetadata]) -> None:
    for column in columns:
        check_column_type(column.name, column.type)
        if column.default is not None:
            raise AnalysisError.unsupported(
                f"Column '{column.name}' has a default value, which is not supported"
                " for Hive tables",
                hint="Remove DEFAULT, and write the value in INSERT.",
            )


def _partition_columns(
    columns: Sequence[ColumnMetadata], properties: Mapping[str, Any]
) -> tuple[str, ...]:
    listed = _names(columns, properties, "partitioned_by", "Partition")
    if not listed:
        return ()
    if len(listed) == len(columns):
        raise invalid_property(
            "partitioned_by",
            "Table contains only partition columns; partitioned_by names all of them",
            "Remove at least one column from partitioned_by.",
        )
    last = tuple(column.name for column in columns[len(columns) - len(listed) :])
    if last != listed:
        msg = (
            "Partition keys must be the last columns in the table and in the same order as the"
            f" table properties: [{', '.join(listed)}]"
        )
        ordered = [*(c.name for c in columns if c.name not in listed), *listed]
        raise AnalysisError(
            msg,
            code="HIVE_COLUMN_ORDER_MISMATCH",
            hint=f"Write the columns of partitioned_by last: {', '.join(ordered)}.",
        )
    for column in columns[-len(listed) :]:
        check_partition_type(column.name, column.type)
    return listed


def _buckets(
    columns: Sequence[ColumnMetadata], partitioned_by: Sequence[str], properties: Mapping[str, Any]
) -> tuple[tuple[str, ...], int | None, int]:
    listed = _names(columns, properties, "bucketed_by", "Bucketing")
    count, version = properties.get("bucket_count"), properties.get("bucketing_version") or 1
    if type(version) is not int or version not in {1, 2}:
        raise invalid_property(
            "bucketing_version",
            f"bucketing_version must be 1 or 2, not {version}",
            "It is 2 for tables created by Hive 3, and 1 for older ones.",
        )
    if (not listed) != (not count) or (
        count and (type(count) is not int or not 1 <= count <= BUCKET_LIMIT)
    ):
        raise AnalysisError(
            f"bucketed_by = {list(listed)} and bucket_count = {count} cannot be combined",
            code=_INVALID,
            properties=("bucketed_by", "bucket_count"),
            hint=f"Set both, with a bucket_count from 1 to {BUCKET_LIMIT}, or neither.",
        )
    both = [name for name in listed if name in partitioned_by]
    if both:
        raise AnalysisError(
            f"Bucketing columns {both} are also used as partition columns",
            code=_INVALID,
            hint="In a partition, all rows have the same value in it: bucket by another column.",
        )
    for name in listed:
        check_bucket_type(name, next(column.type for column in columns if column.name == name))
    return listed, count or None, int(version)


def _names(
    columns: Sequence[ColumnMetadata], properties: Mapping[str, Any], name: str, what: str
) -> tuple[str, ...]:
    requested_names = listed_names(properties, name)
    spellings = {column.name.lower(): column.name for column in columns}
    missing = [column for column in requested_names if column.lower() not in spellings]
    if missing:
        raise invalid_property(
            name,
            f"{what} columns [{', '.join(missing)}] of {name} not present in schema",
            f"The columns are: {', '.join(spellings.values())}.",
        )
    names = tuple(spellings[column.lower()] for column in requested_names)
    if len(set(names)) < len(names):
        raise invalid_property(
            name,
            f"Table property '{name}' names a column twice: {', '.join(names)}",
            "Name each column once.",
        )
    return names
