"""Tables and partitions as Hive's metastore keeps them, made of ours and read into ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pymetastore.hive_metastore import ttypes

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import BUCKET_LIMIT, DEFAULT_PARTITION
from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, partition_texts
from rowmerge_nb.connectors.hive_acid.metastore.thrift_types import hive_type_name, type_of_hive
from rowmerge_nb.spi.metadata import ColumnMetadata

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.spi.handles import SchemaTableName

_ORC: Final = "org.apache.hadoop.hive.ql.io.orc."
_COMMENT: Final = "comment"
"""The parameter in which Hive and Trino keep the comment on a table."""
_IDENTITY: Final = "rowmerge_nb.table_id"
_REGISTERED: Final = "rowmerge_nb.registered"
"""Hive calls every transactional table its own; this says that the files were there before, and stay when it is dropped."""


def folder_of(location: str | None, what: str) -> Path:
    """Return the folder that a location names.

    Raises:
        ConnectorError: NOT_SUPPORTED, it is not on a file system that the operating system mounts.

    >>> folder_of("file:///lake/a%20b/t", "Table 's.t'").as_posix(), folder_of("file:/lake/t", "Table 's.t'").as_posix()
    ('/lake/a%20b/t', '/lake/t')
    """
    # Hive writes paths as they are, and does not encode what is special in addresses. Two slashes would name a host.
    text = str(location or "")
    path = text.removeprefix("file:")
    names_host = path.startswith("//") and not path.startswith("///") and path != text
    if not path.startswith("/") or names_host or "\0" in path:
        raise ConnectorError(
            f"{what} lies at '{location}', and only folders of mounted file systems are read",
            hint="Mount the store, and make the table at the mounted folder.",
        )
    return Path("/" + path.lstrip("/"))


def hive_table_of(name: SchemaTableName, found: Any, not_null: Collection[str]) -> HiveTable:
    """Return a table of the metastore.

    Args:
        name: its schema and name.
        found: what the metastore says.
        not_null: the columns that must not be NULL.

    Raises:
        ConnectorError: NOT_SUPPORTED, with what is not: a view, another format, insert-only, a type, a store; HIVE_METASTORE_ERROR if
            what it says of the table cannot be.
    """
    try:
        return _table_of(name, found, not_null)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ConnectorError(
            f"The Hive Metastore describes table '{name}' by what cannot be: {error}",
            code="HIVE_METASTORE_ERROR",
            hint="Repair the table in Hive, or drop it there.",
        ) from error


def _table_of(name: SchemaTableName, found: Any, not_null: Collection[str]) -> HiveTable:
    parameters = {key.lower(): value for key, value in (found.parameters or {}).items()}
    storage = found.sd
    if found.tableType not in {"MANAGED_TABLE", "EXTERNAL_TABLE"}:
        raise ConnectorError(
            f"'{name}' is of kind {found.tableType} in the metastore, and only tables are read",
            hint="Make a table of it in Hive or Trino: CREATE TABLE ... AS SELECT.",
        )
    if not str(storage.inputFormat).startswith(_ORC):
        raise ConnectorError(
            f"Table '{name}' is stored as {storage.inputFormat}, and only ORC tables are read",
            hint="Copy it in Hive or Trino into a table WITH (format = 'ORC', transactional = true).",
        )
    transactional = parameters.get("transactional", "false").lower() == "true"
    if transactional and parameters.get("transactional_properties", "default") != "default":
        raise ConnectorError(
            f"Table '{name}' is transactional as '{parameters['transactional_properties']}', and only 'default' is read",
            hint="Copy it in Hive or Trino into a full ACID table.",
        )
    folder = folder_of(storage.location, f"Table '{name}'")
    data = [(field.name, type_of_hive(field.type), field.comment) for field in storage.cols]
    keys = [(field.name, type_of_hive(field.type), field.comment) for field in found.partitionKeys or ()]
    bucketed = storage.numBuckets is not None and storage.numBuckets > 0 and bool(storage.bucketCols)
    version = int(parameters.get("bucketing_version") or 1)
    _require_layout([column for column, _, _ in data], storage if bucketed else None, version)
    return HiveTable(
        parameters.get(_IDENTITY) or f"{name}@{found.createTime}",
        name,
        str(folder),
        tuple(ColumnMetadata(column, kind, column not in not_null, comment=text) for column, kind, text in (*data, *keys)),
        tuple(column for column, _, _ in keys),
        tuple(storage.bucketCols) if bucketed else (),
        storage.numBuckets if bucketed else None,
        version,
        found.tableType == "MANAGED_TABLE" and _REGISTERED not in parameters,
        transactional,
        parameters.get(_COMMENT),
    )


def _require_layout(names: Sequence[str], buckets: Any, version: int) -> None:
    """Raise a ValueError if a table has no columns, or buckets that no table has."""
    if not names:
        raise ValueError("it has no columns")
    if buckets is not None and (
        buckets.numBuckets > BUCKET_LIMIT or version not in {1, 2} or not {*buckets.bucketCols} <= {*names}
    ):
        raise ValueError(f"{buckets.numBuckets} buckets by {buckets.bucketCols}, bucketing_version {version}")


def thrift_table(table: HiveTable, owner: str) -> Any:
    """Make a table of the metastore, with the parameters by which Hive and Trino know a transactional one."""
    parameters = {_IDENTITY: table.id} if table.comment is None else {_IDENTITY: table.id, _COMMENT: table.comment}
    if table.transactional:
        parameters |= {"transactional": "true", "transactional_properties": "default"}
    if table.bucket_count is not None:
        parameters["bucketing_version"] = str(table.bucketing_version)
    if not table.managed:
        parameters |= {_REGISTERED: "true"} if table.transactional else {"EXTERNAL": "TRUE"}
    managed = table.managed or table.transactional
    return ttypes.Table(
        tableName=table.name.table,
        dbName=table.name.schema,
        owner=owner,
        createTime=int(time.time()),
        lastAccessTime=0,
        retention=0,
        sd=_storage(table, table.location),
        partitionKeys=_fields(table.partition_columns),
        parameters=parameters,
        tableType="MANAGED_TABLE" if managed else "EXTERNAL_TABLE",
    )


def set_comments(found: Any, table: HiveTable) -> None:
    """Set the comments of a metastore's table to those of one of ours, and leave everything else.

    >>> found = ttypes.Table(parameters={"comment": "old"}, sd=ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("id", "int", None)]))
    >>> set_comments(found, HiveTable("1", None, "/t", (ColumnMetadata("ID", None, comment="key"),)))
    >>> found.parameters, found.sd.cols[0].comment
    ({}, 'key')
    """
    given = {column.name.lower(): column.comment for column in table.columns}
    for field in (*found.sd.cols, *(found.partitionKeys or ())):
        field.comment = given.get(field.name)
    others = {key: value for key, value in (found.parameters or {}).items() if key.lower() != _COMMENT}
    found.parameters = others if table.comment is None else {**others, _COMMENT: table.comment}


def thrift_partition(table: HiveTable, name: str) -> Any:
    """Make a partition of the metastore."""
    values = [DEFAULT_PARTITION if text is None else text for text in partition_texts(name)]
    storage = _storage(table, f"{table.location}/{name}")
    return ttypes.Partition(values, table.name.schema, table.name.table, int(time.time()), 0, storage, {})


def constraints_of(table: HiveTable) -> list[Any]:
    """Make the constraints of the columns that must not be NULL."""
    name = table.name
    return [
        ttypes.SQLNotNullConstraint("hive", name.schema, name.table, column.name.lower(), None, True, True, True)
        for column in table.columns
        if not column.nullable
    ]


def _storage(table: HiveTable, location: str) -> Any:
    return ttypes.StorageDescriptor(
        cols=_fields(table.data_columns),
        location=f"file:{location}",
        inputFormat=f"{_ORC}OrcInputFormat",
        outputFormat=f"{_ORC}OrcOutputFormat",
        compressed=False,
        numBuckets=table.bucket_count or 0,
        serdeInfo=ttypes.SerDeInfo(table.name.table, f"{_ORC}OrcSerde", {}),
        bucketCols=[column.lower() for column in table.bucketed_by],
        sortCols=[],
        parameters={},
        storedAsSubDirectories=False,
    )


def _fields(columns: Collection[ColumnMetadata]) -> list[Any]:
    return [ttypes.FieldSchema(column.name.lower(), hive_type_name(column.type), column.comment) for column in columns]
