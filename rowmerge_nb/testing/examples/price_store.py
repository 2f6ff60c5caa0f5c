"""An example connector: a keyed store that updates rows in place."""

# The cell begins here.
import pickle

import pyarrow as pa

import rowmerge_nb as rm
from rowmerge_nb import spi
from rowmerge_nb.spi import ColumnHandle, ColumnMetadata, ConnectorTableMetadata, parse_type

KEY = ColumnHandle("id", parse_type("bigint"))
COLUMNS = (ColumnMetadata("id", KEY.type), ColumnMetadata("price", parse_type("double")))


class Metadata(spi.ConnectorMetadata):
    def __init__(self, store):
        self.store, self.before = store, store.rows

    def get_table_handle(self, session, name):
        return spi.ConnectorTableHandle() if name.table == "prices" else None

    def get_table_metadata(self, session, table):
        return ConnectorTableMetadata(spi.SchemaTableName("default", "prices"), COLUMNS)

    def get_row_change_paradigm(self, session, table):
        return spi.RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def get_merge_row_id_column_handle(self, session, table):
        return KEY

    def begin_merge(self, session, table, updated_columns=None):
        return spi.ConnectorMergeTableHandle(table)

    def finish_merge(self, session, handle, fragments):
        if self.store.rows is not self.before:
            raise rm.ConnectorError("The prices have changed", code="TRANSACTION_CONFLICT")
        changes = [change for fragment in fragments for change in pickle.loads(fragment)]
        removed_ids = {row_id for _, row_id, _, _ in changes}
        rows = {key: price for key, price in self.before.items() if key not in removed_ids}
        rows |= {key: price for op, _, key, price in changes if op != spi.Operation.DELETE}
        self.store.rows = rows


class Reader(spi.ConnectorSplitManager, spi.ConnectorPageSourceProvider):
    def get_splits(self, transaction, session, table, constraint):
        return [dict(STORE.rows)]

    def create_page_source(self, transaction, session, split, table, columns):
        values = {
            "id": pa.array(split.keys(), pa.int64()),
            "price": pa.array(split.values(), pa.float64()),
        }
        names = [column.name for column in columns]
        page = pa.RecordBatch.from_arrays([values[name] for name in names], names=names)
        return spi.PagesSource([page])


class Sink(spi.ConnectorMergeSink, spi.ConnectorPageSinkProvider):
    def create_merge_sink(self, transaction, session, handle):
        self.changes = []
        return self

    def store_merged_rows(self, page):
        key, price, operation, row_id = (
            page.column(i).to_pylist() for i in (0, 1, 2, page.num_columns - 1)
        )
        self.changes += zip(operation, row_id, key, price, strict=True)

    def finish(self):
        return [pickle.dumps(self.changes)]


class PriceStore(spi.Connector):
    commits_in_finish = True
    rows = {1: 9.5, 2: 3.0, 3: 7.25}
    get_metadata = lambda self, transaction: Metadata(self)
    get_split_manager = get_page_source_provider = lambda self: Reader()
    get_page_sink_provider = lambda self: Sink()


STORE = PriceStore()
# The cell ends here.

if __name__ == "__main__":
    engine = rm.Engine()
    engine.add_catalog("shop", STORE)
    news = pa.table({"id": [2, 3, 4], "price": [None, 8.0, 1.5]})
    result = engine.run(
        """MERGE INTO shop.default.prices p USING news n ON p.id = n.id
        WHEN MATCHED AND n.price IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET price = n.price
        WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.price)""",
        namespace={"news": news},
    )
    print(result.counts, dict(sorted(STORE.rows.items())))  # noqa: T201 - the test reads it
    engine.close()
