"""The contract between engine and connectors. Nothing in here knows Spark, SQL text or the engine.

A connector that only reads and merges by a key needs a table handle, a `ConnectorMetadata`, a split manager, a page source
provider, a `ConnectorMergeSink` with its provider, and the `Connector` that ties them together.
"""

from rowmerge_nb.spi.connector import Connector, Orphan
from rowmerge_nb.spi.handles import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPartitioningHandle,
    ConnectorSession,
    ConnectorSplit,
    ConnectorTableHandle,
    ConnectorTableVersion,
    ConnectorTransactionHandle,
    Fragments,
    PointerType,
    SchemaTableName,
    own,
)
from rowmerge_nb.spi.layout import BucketFunction, ConnectorNodePartitioningProvider, ConnectorTableLayout
from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
from rowmerge_nb.spi.metadata import (
    ColumnMetadata,
    ConnectorMetadata,
    ConnectorTableMetadata,
    ConnectorViewDefinition,
    TableStatistics,
)
from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
from rowmerge_nb.spi.output import ConnectorOutputMetadata, Written
from rowmerge_nb.spi.page import MergePage, Page, PageLayout, concat_pages, operations_of, row_ids_of, rows_with, split_page
from rowmerge_nb.spi.page_sink import ConnectorPageSink, ConnectorPageSinkProvider
from rowmerge_nb.spi.page_source import (
    ColumnDomain,
    ConnectorPageSource,
    ConnectorPageSourceProvider,
    ConnectorSplitManager,
    Constraint,
    PagesSource,
)
from rowmerge_nb.spi.procedures import Procedure, ProcedureArgument
from rowmerge_nb.spi.types import Type, from_arrow, parse_type
from rowmerge_nb.spi.updatable import UpdatablePageSource, values_and_row_ids

__all__ = [
    "BucketFunction",
    "ColumnDomain",
    "ColumnHandle",
    "ColumnMetadata",
    "Connector",
    "ConnectorInsertTableHandle",
    "ConnectorMergeSink",
    "ConnectorMergeTableHandle",
    "ConnectorMetadata",
    "ConnectorNodePartitioningProvider",
    "ConnectorOutputMetadata",
    "ConnectorPageSink",
    "ConnectorPageSinkProvider",
    "ConnectorPageSource",
    "ConnectorPageSourceProvider",
    "ConnectorPartitioningHandle",
    "ConnectorSession",
    "ConnectorSplit",
    "ConnectorSplitManager",
    "ConnectorTableHandle",
    "ConnectorTableLayout",
    "ConnectorTableMetadata",
    "ConnectorTableVersion",
    "ConnectorTransactionHandle",
    "ConnectorViewDefinition",
    "Constraint",
    "Era",
    "Fragments",
    "MergePage",
    "Operation",
    "Orphan",
    "Page",
    "PageLayout",
    "PagesSource",
    "PointerType",
    "Procedure",
    "ProcedureArgument",
    "RowChangeParadigm",
    "SchemaTableName",
    "TableStatistics",
    "Type",
    "UpdatablePageSource",
    "Written",
    "concat_pages",
    "from_arrow",
    "operations_of",
    "own",
    "parse_type",
    "row_ids_of",
    "rows_with",
    "split_page",
    "values_and_row_ids",
]
