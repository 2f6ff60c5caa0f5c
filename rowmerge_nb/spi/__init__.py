"""The contract between engine and connectors, independent of Spark, SQL text and the engine.

A connector that reads, and merges by a key, needs a table handle, a `ConnectorMetadata`, a split
manager, a page source provider, a `ConnectorMergeSink` with its provider, and a `Connector`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.lazy import at_first_use

if TYPE_CHECKING:
    from rowmerge_nb.spi.alterations import AddColumn as AddColumn
    from rowmerge_nb.spi.alterations import AddField as AddField
    from rowmerge_nb.spi.alterations import ColumnPosition as ColumnPosition
    from rowmerge_nb.spi.alterations import DropColumn as DropColumn
    from rowmerge_nb.spi.alterations import DropDefault as DropDefault
    from rowmerge_nb.spi.alterations import DropField as DropField
    from rowmerge_nb.spi.alterations import DropNotNull as DropNotNull
    from rowmerge_nb.spi.alterations import RenameColumn as RenameColumn
    from rowmerge_nb.spi.alterations import RenameField as RenameField
    from rowmerge_nb.spi.alterations import RenameTable as RenameTable
    from rowmerge_nb.spi.alterations import SetColumnType as SetColumnType
    from rowmerge_nb.spi.alterations import SetDefault as SetDefault
    from rowmerge_nb.spi.alterations import SetFieldType as SetFieldType
    from rowmerge_nb.spi.alterations import SetProperties as SetProperties
    from rowmerge_nb.spi.connector import Connector as Connector
    from rowmerge_nb.spi.connector import Orphan as Orphan
    from rowmerge_nb.spi.factory import ConnectorFactory as ConnectorFactory
    from rowmerge_nb.spi.factory import ConnectorProperty as ConnectorProperty
    from rowmerge_nb.spi.factory import PropertyType as PropertyType
    from rowmerge_nb.spi.handles import ColumnHandle as ColumnHandle
    from rowmerge_nb.spi.handles import ConnectorInsertTableHandle as ConnectorInsertTableHandle
    from rowmerge_nb.spi.handles import ConnectorMergeTableHandle as ConnectorMergeTableHandle
    from rowmerge_nb.spi.handles import ConnectorOutputTableHandle as ConnectorOutputTableHandle
    from rowmerge_nb.spi.handles import ConnectorPartitioningHandle as ConnectorPartitioningHandle
    from rowmerge_nb.spi.handles import ConnectorSession as ConnectorSession
    from rowmerge_nb.spi.handles import ConnectorSplit as ConnectorSplit
    from rowmerge_nb.spi.handles import ConnectorTableExecuteHandle as ConnectorTableExecuteHandle
    from rowmerge_nb.spi.handles import ConnectorTableHandle as ConnectorTableHandle
    from rowmerge_nb.spi.handles import ConnectorTableVersion as ConnectorTableVersion
    from rowmerge_nb.spi.handles import ConnectorTransactionHandle as ConnectorTransactionHandle
    from rowmerge_nb.spi.handles import Fragments as Fragments
    from rowmerge_nb.spi.handles import PointerType as PointerType
    from rowmerge_nb.spi.handles import ReadFile as ReadFile
    from rowmerge_nb.spi.handles import SchemaTableName as SchemaTableName
    from rowmerge_nb.spi.handles import own as own
    from rowmerge_nb.spi.layout import BucketFunction as BucketFunction
    from rowmerge_nb.spi.layout import (
        ConnectorNodePartitioningProvider as ConnectorNodePartitioningProvider,
    )
    from rowmerge_nb.spi.layout import ConnectorTableLayout as ConnectorTableLayout
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink as ConnectorMergeSink
    from rowmerge_nb.spi.metadata import ColumnMetadata as ColumnMetadata
    from rowmerge_nb.spi.metadata import ConnectorMetadata as ConnectorMetadata
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata as ConnectorTableMetadata
    from rowmerge_nb.spi.metadata import ConnectorViewDefinition as ConnectorViewDefinition
    from rowmerge_nb.spi.metadata import IndependentRows as IndependentRows
    from rowmerge_nb.spi.metadata import SystemTable as SystemTable
    from rowmerge_nb.spi.metadata import TableStatistics as TableStatistics
    from rowmerge_nb.spi.operations import Era as Era
    from rowmerge_nb.spi.operations import Operation as Operation
    from rowmerge_nb.spi.operations import RowChangeParadigm as RowChangeParadigm
    from rowmerge_nb.spi.operations import SaveMode as SaveMode
    from rowmerge_nb.spi.output import ConnectorOutputMetadata as ConnectorOutputMetadata
    from rowmerge_nb.spi.output import Written as Written
    from rowmerge_nb.spi.page import MergePage as MergePage
    from rowmerge_nb.spi.page import Page as Page
    from rowmerge_nb.spi.page import PageLayout as PageLayout
    from rowmerge_nb.spi.page import concat_pages as concat_pages
    from rowmerge_nb.spi.page import operations_of as operations_of
    from rowmerge_nb.spi.page import row_ids_of as row_ids_of
    from rowmerge_nb.spi.page import rows_with as rows_with
    from rowmerge_nb.spi.page import split_page as split_page
    from rowmerge_nb.spi.page_sink import ConnectorPageSink as ConnectorPageSink
    from rowmerge_nb.spi.page_sink import ConnectorPageSinkProvider as ConnectorPageSinkProvider
    from rowmerge_nb.spi.page_source import ColumnDomain as ColumnDomain
    from rowmerge_nb.spi.page_source import ConnectorPageSource as ConnectorPageSource
    from rowmerge_nb.spi.page_source import (
        ConnectorPageSourceProvider as ConnectorPageSourceProvider,
    )
    from rowmerge_nb.spi.page_source import ConnectorSplitManager as ConnectorSplitManager
    from rowmerge_nb.spi.page_source import Constraint as Constraint
    from rowmerge_nb.spi.page_source import PagesSource as PagesSource
    from rowmerge_nb.spi.procedures import Procedure as Procedure
    from rowmerge_nb.spi.procedures import ProcedureArgument as ProcedureArgument
    from rowmerge_nb.spi.procedures import ProcedureOutcome as ProcedureOutcome
    from rowmerge_nb.spi.procedures import TableExecution as TableExecution
    from rowmerge_nb.spi.procedures import TableProcedure as TableProcedure
    from rowmerge_nb.spi.procedures import TableProcedureArgument as TableProcedureArgument
    from rowmerge_nb.spi.types import Type as Type
    from rowmerge_nb.spi.types import from_arrow as from_arrow
    from rowmerge_nb.spi.types import parse_type as parse_type
    from rowmerge_nb.spi.updatable import UpdatablePageSource as UpdatablePageSource
    from rowmerge_nb.spi.updatable import values_and_row_ids as values_and_row_ids

_HOMES: Final = {
    "AddColumn": "alterations",
    "AddField": "alterations",
    "BucketFunction": "layout",
    "ColumnDomain": "page_source",
    "ColumnHandle": "handles",
    "ColumnMetadata": "metadata",
    "ColumnPosition": "alterations",
    "Connector": "connector",
    "ConnectorFactory": "factory",
    "ConnectorInsertTableHandle": "handles",
    "ConnectorOutputTableHandle": "handles",
    "ConnectorMergeSink": "merge_sink",
    "ConnectorMergeTableHandle": "handles",
    "ConnectorMetadata": "metadata",
    "ConnectorNodePartitioningProvider": "layout",
    "ConnectorOutputMetadata": "output",
    "ConnectorPageSink": "page_sink",
    "ConnectorPageSinkProvider": "page_sink",
    "ConnectorPageSource": "page_source",
    "ConnectorPageSourceProvider": "page_source",
    "ConnectorPartitioningHandle": "handles",
    "ConnectorProperty": "factory",
    "ConnectorSession": "handles",
    "ConnectorSplit": "handles",
    "ConnectorSplitManager": "page_source",
    "ConnectorTableExecuteHandle": "handles",
    "ConnectorTableHandle": "handles",
    "ConnectorTableLayout": "layout",
    "ConnectorTableMetadata": "metadata",
    "ConnectorTableVersion": "handles",
    "ConnectorTransactionHandle": "handles",
    "ConnectorViewDefinition": "metadata",
    "Constraint": "page_source",
    "DropColumn": "alterations",
    "DropField": "alterations",
    "DropDefault": "alterations",
    "DropNotNull": "alterations",
    "Era": "operations",
    "Fragments": "handles",
    "MergePage": "page",
    "Operation": "operations",
    "Orphan": "connector",
    "Page": "page",
    "PageLayout": "page",
    "PagesSource": "page_source",
    "PointerType": "handles",
    "Procedure": "procedures",
    "ProcedureArgument": "procedures",
    "ProcedureOutcome": "procedures",
    "PropertyType": "factory",
    "TableExecution": "procedures",
    "TableProcedure": "procedures",
    "TableProcedureArgument": "procedures",
    "RenameColumn": "alterations",
    "RenameField": "alterations",
    "RenameTable": "alterations",
    "ReadFile": "handles",
    "RowChangeParadigm": "operations",
    "SaveMode": "operations",
    "SchemaTableName": "handles",
    "SetColumnType": "alterations",
    "SetDefault": "alterations",
    "SetFieldType": "alterations",
    "SetProperties": "alterations",
    "IndependentRows": "metadata",
    "SystemTable": "metadata",
    "TableStatistics": "metadata",
    "Type": "types",
    "UpdatablePageSource": "updatable",
    "Written": "output",
    "concat_pages": "page",
    "from_arrow": "types",
    "operations_of": "page",
    "own": "handles",
    "parse_type": "types",
    "row_ids_of": "page",
    "rows_with": "page",
    "split_page": "page",
    "values_and_row_ids": "updatable",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list of names, not two


__getattr__, __dir__ = at_first_use(__name__, _HOMES)
