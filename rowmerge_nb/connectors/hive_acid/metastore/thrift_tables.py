"""Conversion of a Hive Metastore's tables and partitions."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from pymetastore.hive_metastore import ttypes

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import BUCKET_LIMIT, DEFAULT_PARTITION
from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, partition_texts
from rowmerge_nb.connectors.hive_acid.metastore.thrift_types import hive_type_name, type_of_hive
from rowmerge_nb.spi import ColumnMetadata, SchemaTableName

_ORC: Final = "org.apache.hadoop.hive.ql.io.orc."
_COMMENT: Final = "comment"
"""The parameter in which Hive and Trino store a table's comment."""
_IDENTITY: Final = "rowmerge_nb.table_id"
_REGISTERED: Final = "rowmerge_nb.registered"
"""Marks a registered table, whose files stay when it is dropped.

Hive treats every transactional table as managed.
"""


def folder_of(location: str | None, subject: str) -> Path:
    # Hive does not percent-encode paths. Two slashes would begin a host.
    text = str(location or "")
    path = text.removeprefix("file:")
    names_host = path.startswith("//") and not path.startswith("///") and path != text
    if not path.startswith("/") or names_host or "\0" in path:
        raise ConnectorError(
            f"{subject} is at '{location}', but only folders of mounted file systems are read",
            hint="Mount the store, and create the table in the mounted folder.",
        )
    return Path("/" + path.lstrip("/"))


def hive_table_of(
    name: SchemaTableName, metastore_table: Any, not_null: Collection[str]
) -> HiveTable:
    try:
        return _table_of(name, metastore_table, not_null)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ConnectorError(
            f"The Hive Metastore has an invalid description of table '{name}': {error}",
            code="HIVE_METASTORE_ERROR",
            hint="Repair the table in Hive, or drop it there.",
        ) from error


def _table_of(name: SchemaTableName, metastore_table: Any, not_null: Collection[str]) -> HiveTable:
    parameters = {key.lower(): value for key, value in (metastore_table.parameters or {}).items()}
    storage = metastore_table.sd
    if metastore_table.tableType not in {"MANAGED_TABLE", "EXTERNAL_TABLE"}:
        raise ConnectorError(
            f"'{name}' has type {metastore_table.tableType} in the metastore, but only"
            " tables are read",
            hint="Copy it into a table in Hive or Trino: CREATE TABLE ... AS SELECT.",
        )
    if not str(storage.inputFormat).startswith(_ORC):
        raise ConnectorError(
            f"Table '{name}' is stored as {storage.inputFormat}, and only ORC tables are read",
            hint=(
                "Copy it in Hive or Trino into a table WITH (format = 'ORC', transactional = true)."
            ),
        )
    transactional = parameters.get("transactional", "false").lower() == "true"
    if transactional and parameters.get("transactional_properties", "default") != "default":
        raise ConnectorError(
            f"Table '{name}' is transactional as"
            f" '{parameters['transactional_properties']}', but only 'default' is supported",
            hint="Copy it in Hive or Trino into a full ACID table.",
        )
    folder = folder_of(storage.location, f"Table '{name}'")
    data = [(field.name, type_of_hive(field.type), field.comment) for field in storage.cols]
    keys = [
        (field.name, type_of_hive(field.type), field.comment)
        for field in metastore_table.partitionKeys or ()
    ]
    bucketed = (
        storage.numBuckets is not None and storage.numBuckets > 0 and bool(storage.bucketCols)
    )
    version = int(parameters.get("bucketing_version") or 1)
    _require_layout([column for column, _, _ in data], storage if bucketed else None, version)
    return HiveTable(
        parameters.get(_IDENTITY) or f"{name}@{metastore_table.createTime}",
        name,
        str(folder),
        tuple(
            ColumnMetadata(column, sql_type, column not in not_null, comment=text)
            for column, sql_type, text in (*data, *keys)
        ),
        tuple(column for column, _, _ in keys),
        tuple(storage.bucketCols) if bucketed else (),
        storage.numBuckets if bucketed else None,
        version,
        metastore_table.tableType == "MANAGED_TABLE" and _REGISTERED not in parameters,
        transactional,
        parameters.get(_COMMENT),
    )


def _require_layout(names: Sequence[str], buckets: Any, version: int) -> None:
    if not names:
        raise ValueError("it has no columns")
    if buckets is not None and (
        buckets.numBuckets > BUCKET_LIMIT
        or version not in {1, 2}
        or not {*buckets.bucketCols} <= {*names}
    ):
        raise ValueError(
            f"{buckets.numBuckets} buckets by {buckets.bucketCols}, bucketing_version {version}"
        )


def thrift_table(table: HiveTable, owner: str) -> Any:
    parameters = (
        {_IDENTITY: table.id}
        if table.comment is None
        else {_IDENTITY: table.id, _COMMENT: table.comment}
    )
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


def set_comments(metastore_table: Any, table: HiveTable) -> None:
    """Set the comments of a metastore's table, leaving everything else.

    >>> table = ttypes.Table(parameters={"comment": "old"}, sd=ttypes.StorageDescriptor(cols=[ttypes.FieldSchema("id", "int", None)]))
    >>> set_comments(table, HiveTable("1", None, "/t", (ColumnMetadata("ID", None, comment="key"),)))
    >>> table.parameters, table.sd.cols[0].comment
    ({}, 'key')
    """
    comments = {column.name.lower(): column.comment for column in table.columns}
    for field in (*metastore_table.sd.cols, *(metastore_table.partitionKeys or ())):
        field.comment = comments.get(field.name)
    others = {
        key: value
        for key, value in (metastore_table.parameters or {}).items()
        if key.lower() != _COMMENT
    }
    metastore_table.parameters = (
        others if table.comment is None else {**others, _COMMENT: table.comment}
    )


def thrift_partition(table: HiveTable, name: str) -> Any:
    values = [DEFAULT_PARTITION if text is None else text for text in partition_texts(name)]
    storage = _storage(table, f"{table.location}/{name}")
    return ttypes.Partition(
        values, table.name.schema, table.name.table, int(time.time()), 0, storage, {}
    )


def constraints_of(table: HiveTable) -> list[Any]:
    name = table.name
    return [
        ttypes.SQLNotNullConstraint(
            "hive", name.schema, name.table, column.name.lower(), None, True, True, True
        )
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
    return [
        ttypes.FieldSchema(column.name.lower(), hive_type_name(column.type), column.comment)
        for column in columns
    ]
