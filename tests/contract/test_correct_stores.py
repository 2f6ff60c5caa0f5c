"""The kit passes a correct connector with any unusual table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import spi
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.spi import ColumnHandle, ColumnMetadata, parse_type
from rowmerge_nb.testing.contract import ConnectorContract
from rowmerge_nb.testing.examples import price_store
from tests.contract.exchangeable_store import Store


class WithoutSpark:
    """Omits the checks on Spark, which take seconds each, and of faults: some of the contracts below run them."""

    test_a_fault_at_any_step_leaves_the_table_as_it_was = None
    test_a_fault_at_any_step_of_the_older_flow_leaves_the_table_as_it_was = None
    test_a_fault_leaves_columns_and_rows_as_they_were = None

    @pytest.fixture
    def spark(self):
        pytest.skip("other contracts of this file run on Spark")


class InMemory(ConnectorContract):
    """A store without bugs; other tests check its types."""

    types = ()
    column_names = ("id",)

    def make_connector(self, folder):
        return MemoryConnector()


class TestQuotedNames(WithoutSpark, InMemory):
    table = 'default.an "odd" table'
    columns = {
        "Order by": "bigint",
        'quo"ted': "double",
        "select": "varchar",
        "wanted": "varchar",
        "k": "varchar",
        "v0": "bigint",
    }


class TestOneColumn(InMemory):
    columns = {"id": "varchar"}
    layouts = {"plain": {}, "partitioned": {"partitioned_by": ("id",)}}
    paradigms = ("DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS")


class TestFortyColumns(WithoutSpark, InMemory):
    columns = {
        f"c{n}": ("integer", "tinyint", "boolean", "decimal(3,2)", "char(1)")[n % 5]
        for n in range(40)
    }


class TestNoNullableColumn(WithoutSpark, InMemory):
    nullable = ()
    layouts = {"plain": {}, "bucketed": {"bucketed_by": ("id",), "bucket_count": 4}}


class TestOnlyPartitionColumns(WithoutSpark, InMemory):
    columns = {"id": "bigint", "Region": "varchar", "day": "date"}
    layouts = {"partitioned": {"partitioned_by": ("id", "Region", "day")}}


class TestUnusualKeys(InMemory):
    columns = {
        "key": "decimal(12,2)",
        "one": "real",
        "two": "real",
        "moment": "timestamp(6) with time zone",
        "text": "json",
    }
    layouts = {"bucketed": {"bucketed_by": ("key",), "bucket_count": 4}}


class TestKeysThatAreRows(WithoutSpark, InMemory):
    columns = {
        "key": "row(a bigint, b varchar)",
        "elements": "array(decimal(5,2))",
        "entries": "map(varchar, double)",
    }


class RefusesRows(Store):
    """Stores no rows."""

    def get_metadata(self, transaction_handle):
        metadata = super().get_metadata(transaction_handle)
        create = metadata.create_table

        def create_table(session: Any, table: Any, *save_mode: Any) -> None:
            if any(column.type.base == "row" for column in table.columns):
                raise ConnectorError("There are no columns of rows here")
            create(session, table, *save_mode)

        metadata.create_table = create_table  # type: ignore[method-assign]
        return metadata


class TestATypeThatCreateTableRefusesIsSkipped(WithoutSpark, InMemory):
    types = ("bigint", "row(a integer, b varchar)")

    def make_connector(self, folder):
        return RefusesRows({})


# -- the store of the documentation, with other types


class Prices(price_store.Metadata):
    """The metadata of the store in the documentation, with columns of the contract's types."""

    def get_table_metadata(self, session, table):
        columns = tuple(
            ColumnMetadata(name, of, nullable=nullable) for name, of, nullable in self.store.kinds
        )
        return spi.ConnectorTableMetadata(spi.SchemaTableName("default", "prices"), columns)

    def get_merge_row_id_column_handle(self, session, table):
        name, of, _ = self.store.kinds[0]
        return ColumnHandle(name, of)


class Reader(price_store.Reader):
    def get_splits(self, transaction, session, table, constraint):
        return [(STORES[0].kinds, dict(STORES[0].rows))]

    def create_page_source(self, transaction, session, split, table, columns):
        ((key, of, _), (price, to, _)), rows = split
        values = {key: pa.array(rows.keys(), of.arrow), price: pa.array(rows.values(), to.arrow)}
        return spi.PagesSource(
            [
                pa.RecordBatch.from_arrays(
                    [values[c.name] for c in columns], names=[c.name for c in columns]
                )
            ]
        )


class PriceStore(price_store.PriceStore):
    def __init__(self, kinds):
        self.kinds, self.rows = kinds, {}
        STORES[:] = [self]

    get_metadata = lambda self, transaction: Prices(self)
    get_split_manager = get_page_source_provider = lambda self: Reader()


STORES: list[PriceStore] = []


class OfPrices(WithoutSpark, ConnectorContract):
    table = "default.prices"
    keyed, creates_tables, inserts = True, False, False
    types = ()
    required = False

    def make_connector(self, folder):
        return PriceStore(
            [
                (name, parse_type(of), not self.required and n > 0)
                for n, (name, of) in enumerate(self.columns.items())
            ]
        )

    def make_table(self, connector, metadata, rows):
        assert not self.required or all(value is not None for row in rows for value in row)
        connector.rows = dict(rows)


class TestPricesAreDecimals(OfPrices):
    columns = {"id": "bigint", "price": "decimal(12,2)"}


class TestPricesOfDecimalKeys(OfPrices):
    columns = {"Number": "decimal(5,1)", "price": "real"}


class TestPricesAreNotNull(OfPrices):
    columns = {"id": "bigint", "price": "double"}
    required = True


class TestPricesHaveATextAsKey(OfPrices):
    columns = {'the "key"': "varchar(20)", "select": "timestamp(3)"}
