"""Checks of reading: rows, types, names, splits, row ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.page_source import ColumnDomain, Constraint
from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, travel
from rowmerge_nb.testing.contract.differences import RowsDiffer, differences, must_be, must_be_same
from rowmerge_nb.testing.contract.sample_values import (
    awkward_values,
    identity,
    read_values,
    stored_values,
)
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable, Way, in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.testing.contract.contract_statement import Row

_CONSTRAINED: Final = frozenset(
    {
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "decimal",
        "varchar",
        "date",
        "timestamp",
    }
)
"""The types for which the engine creates constraints."""
_REFUSALS: Final = frozenset(
    {"NOT_SUPPORTED", "NUMERIC_VALUE_OUT_OF_RANGE", "INVALID_CAST_ARGUMENT"}
)
"""The codes with which a store may refuse a value that it cannot hold."""

_STORABLE: Final[WeakKeyDictionary[type, dict[str, Sequence[Any] | str]]] = WeakKeyDictionary()
"""The storable values per contract and type, or why CREATE TABLE refuses the type."""


class ReadingChecks(ContractStore):
    """Requirements of a store that is read."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_rows_come_back_as_they_were_written(self, filled_table: FilledTable) -> None:
        filled_table.must_be_unchanged()

    def test_a_table_tells_its_columns_in_order_with_their_types(
        self, filled_table: FilledTable
    ) -> None:
        statement = filled_table.statement()
        handle_types = {column.name: column.type for column in statement.columns}
        metadata = statement.metadata.get_table_metadata(statement.session, statement.handle)
        statement.rollback()
        must_be(
            "column handles",
            [name.lower() for name in handle_types],
            [name.lower() for name in self.columns],
        )
        must_be(
            "types of column handles",
            [*map(str, handle_types.values())],
            [str(parse_type(sql_type)) for sql_type in self.columns.values()],
        )
        must_be(
            "columns of the metadata",
            {c.name: str(c.type) for c in metadata.columns},
            {n: str(t) for n, t in handle_types.items()},
        )

    def test_an_empty_table_has_no_rows(self, connector: Connector) -> None:
        self.make_table(connector, self.metadata(next(iter(self.layouts))), [])
        statement = PageStatement(connector, self.name())
        read = statement.read(row_id=True)
        statement.rollback()
        must_be("rows of an empty table", read.num_rows, 0)

    def test_a_table_that_is_not_there_has_no_handle(self, connector: Connector) -> None:
        statement = PageStatement(connector, SchemaTableName(self.name().schema, "no_such_table"))
        statement.rollback()
        must_be("handle of a table that does not exist", statement.handle, None)

    def test_values_of_every_type_come_back_as_they_were_written(
        self, connector: Connector, type_name: str
    ) -> None:
        """Limits of the type and NULL, in two columns with different values per row; one is the
        first column unless that is a key.
        """
        rows = self.typed_rows(connector, type_name)
        position = 0 if self.keyed else 1
        reordered = [
            (number, value, other) if self.keyed else (value, number, other)
            for number, value, other in rows
        ]
        self.typed_must_have(
            self.typed_table(connector, type_name, reordered, position), type_name, rows, position
        )

    def test_column_names_of_any_spelling_are_kept(self, connector: Connector) -> None:
        """Spaces, quotes, dots, keywords; a store may fold case."""
        self.only_where_tables_are_created()
        metadata = self._table_of([(name, "bigint") for name in self.column_names])
        rows = [(number, *range(len(self.column_names) - 1)) for number in range(3)]
        self.make_table(connector, metadata, rows)
        statement = PageStatement(connector, metadata.name)
        read = statement.read(*reversed(self.column_names))
        statement.rollback()
        must_be(
            "names",
            [name.lower() for name in read.column_names],
            [name.lower() for name in reversed(self.column_names)],
        )
        must_be_same(
            "rows",
            in_order(
                list(zip(*(column.to_pylist() for column in reversed(read.columns)), strict=True))
            ),
            rows,
        )

    def test_only_the_requested_columns_are_read_in_the_order_of_the_request(
        self, filled_table: FilledTable
    ) -> None:
        statement = filled_table.statement()
        columns, row_id = statement.columns, statement.row_id
        whole = [dict(zip(columns, row, strict=True)) for row in statement.rows()]
        for request in (
            [*reversed(columns)],
            columns[-1:],
            columns[:1],
            [*columns[1:], row_id],
            [row_id],
        ):
            pages = list(statement.pages(request))
            for page in pages:
                must_be(
                    f"channels of a page of {[column.name for column in request]}",
                    [str(channel.type) for channel in page.columns],
                    [str(column.type.arrow) for column in request],
                )
            data_indexes = [index for index, column in enumerate(request) if column in columns]
            rows = [
                row
                for page in pages
                for row in zip(
                    *(read_values(page.column(i), request[i].type) for i in data_indexes),
                    strict=True,
                )
            ]
            names = [request[i].name for i in data_indexes]
            must_be_same(
                f"rows of {names}",
                in_order(rows),
                (
                    in_order([tuple(row[request[i]] for i in data_indexes) for row in whole])
                    if data_indexes
                    else []
                ),
            )
            must_be(
                f"number of rows of {names}",
                sum(page.num_rows for page in pages),
                len(filled_table.before),
            )
        statement.rollback()

    def test_pages_come_in_the_same_order_every_time(self, filled_table: FilledTable) -> None:
        """And splits: a rerun task must see rows at the same positions."""
        statement = filled_table.statement()
        first, second = statement.rows(), statement.rows()
        again = [
            row
            for page in statement.pages(statement.columns)
            for row in zip(
                *map(read_values, page.columns, [column.type for column in statement.columns]),
                strict=True,
            )
        ]
        statement.rollback()
        must_be_same("rows of a second scan", second, first)
        must_be_same("rows of a third scan", again, first)

    def test_what_tasks_need_travels_to_them(self, filled_table: FilledTable) -> None:
        statement = filled_table.statement()
        splits = [travel(travel(split)) for split in statement.splits()]
        columns = statement.columns
        source = travel(travel(self._provider(filled_table.connector)))
        rows: list[Row] = []
        for split in splits:
            page_source = source.create_page_source(
                travel(statement.transaction),
                travel(statement.session),
                split,
                travel(travel(statement.handle)),
                columns,
            )
            while (page := page_source.get_next_page()) is not None:
                rows += zip(
                    *map(read_values, page.columns, [column.type for column in columns]),
                    strict=True,
                )
            page_source.close()
        travel(filled_table.connector.get_page_sink_provider())
        travel(filled_table.connector.get_node_partitioning_provider())
        statement.rollback()
        must_be_same(
            "rows read by copies of copies",
            in_order(rows),
            in_order(filled_table.stored(filled_table.before)),
        )

    @staticmethod
    def _provider(connector: Connector) -> Any:
        return connector.get_page_source_provider()

    def test_a_constraint_hides_no_row_that_satisfies_it(
        self, connector: Connector, subject: Way | str
    ) -> None:
        """Other rows may be skipped.

        Constraints are on the key in each layout, and on a column of each type.
        """
        if isinstance(subject, str):
            self._check_constraints_on_type(connector, subject)
            return
        filled_table = self.fill(connector, subject)
        sql_type = constrained_type(next(iter(self.columns.values())))
        keys = stored_values([self.key(number) for number in (4, 8, 99)], sql_type)
        low, high = sorted(stored_values([self.key(3), self.key(6)], sql_type))
        domains = [
            ColumnDomain(values=tuple(keys)),
            ColumnDomain(low=low, high=high),
            ColumnDomain(low=high),
            ColumnDomain(high=low),
        ]
        check_domains(
            filled_table.statement(),
            0,
            [row[0] for row in filled_table.stored(filled_table.before)],
            domains,
        )

    def _check_constraints_on_type(self, connector: Connector, type_name: str) -> None:
        sql_type = constrained_type(type_name)
        rows = self.typed_rows(connector, type_name)
        values = stored_values([row[1] for row in rows], sql_type)
        domains = [
            domain
            for number, value in enumerate(value for value in values if value is not None)
            for domain in (
                ColumnDomain((value,), value, value),
                ColumnDomain(low=value) if number % 2 else ColumnDomain(high=value),
            )
        ]
        check_domains(self.typed_table(connector, type_name, rows), 1, values, domains)

    def test_a_constraint_leaves_out_the_same_rows_whatever_columns_are_asked_for(
        self, filled_table: FilledTable
    ) -> None:
        """The engine numbers the rows that it reads, and relies on the numbers when it reads other
        columns.
        """
        constrained_type(next(iter(self.columns.values())))
        statement = filled_table.statement()
        first, *others = [column.name for column in statement.columns]
        (value,) = stored_values([filled_table.before[-1][0]], statement.columns[0].type)
        constraint = Constraint({first: ColumnDomain((value,), value, value)})
        first_only = statement.read(first, constraint=constraint)
        whole = statement.read(first, *others, constraint=constraint)
        statement.rollback()
        must_be_same(
            "rows that satisfy a constraint, with other columns requested",
            whole.column(0).to_pylist(),
            first_only.column(0).to_pylist(),
        )

    def test_the_number_of_rows_is_exact_where_it_is_told(self, filled_table: FilledTable) -> None:
        """Or None."""
        statement = filled_table.statement()
        row_count = statement.metadata.row_count(statement.session, statement.handle)
        statement.rollback()
        must_be(
            "row_count", row_count, row_count if row_count is None else len(filled_table.before)
        )

    def test_the_statistics_tell_of_no_fewer_rows_than_there_are(
        self, filled_table: FilledTable
    ) -> None:
        """Or None. A count that is too low has a large statement executed like a small one."""
        statement = filled_table.statement()
        row_count = statement.metadata.get_table_statistics(
            statement.session, statement.handle
        ).row_count
        statement.rollback()
        assert row_count is None or row_count >= len(filled_table.before), (
            f"the statistics report {row_count} rows, but there are {len(filled_table.before)}"
        )

    # -- row ids

    def test_row_ids_are_unique_and_never_null(self, filled_table: FilledTable) -> None:
        """Over all splits, together with the columns of the insert layout, which sinks receive as
        well.
        """
        statement = filled_table.statement()
        layout = statement.metadata.get_insert_layout(statement.session, statement.handle)
        read = statement.read(row_id=True)
        statement.rollback()
        *layout_values, ids = _texts(
            read.select([*(layout.partition_columns if layout else ()), "$row_id"])
        )
        must_be("row ids that are NULL", ids.count("None"), 0)
        identities = set(zip(*layout_values, ids, strict=True))
        assert len(identities) == len(filled_table.before), (
            f"{len(filled_table.before)} rows have {len(identities)} row ids"
        )

    def test_row_ids_are_the_same_however_often_a_handle_is_read(
        self, filled_table: FilledTable
    ) -> None:
        statement = filled_table.statement()
        key = statement.columns[0].name
        first = dict(zip(*_texts(statement.read(key, row_id=True)), strict=True))
        second = statement.read(row_id=True)
        again = dict(zip(*_texts(second.select([key, "$row_id"])), strict=True))
        statement.rollback()
        must_be("row ids by key, read again", again, first)

    def test_row_ids_are_the_same_once_the_merge_has_begun(self, filled_table: FilledTable) -> None:
        """The merge scans the handle from begin_merge."""
        statement = filled_table.statement()
        before = sorted(_texts(statement.read(row_id=True))[-1])
        statement.begin()
        after = sorted(_texts(statement.read(row_id=True))[-1])
        statement.rollback()
        must_be("row ids after begin_merge was called", after, before)

    # -- tables of other columns

    def only_where_tables_are_created(self) -> None:
        if not self.creates_tables:
            pytest.skip(
                f"creates_tables = False: {type(self).__name__} has the one table {self.table}"
            )

    def test_comments_are_kept(self, connector: Connector) -> None:
        self.only_where_tables_are_created()
        metadata = self._table_of([(name, "bigint") for name in self.column_names])
        statement = PageStatement(connector, metadata.name)
        statement.rollback()
        if not statement.metadata.stores_comments:
            pytest.skip("stores_comments = False: the engine refuses comments")
        first, *others = metadata.columns
        commented = replace(
            metadata, columns=(replace(first, comment="it's the key"), *others), comment="a table"
        )
        self.create_table(connector, commented)
        stored_metadata = _stored_metadata(connector, metadata.name)
        must_be("the comment on the table", stored_metadata.comment, "a table")
        must_be(
            "the comments on its columns",
            [column.comment for column in stored_metadata.columns],
            ["it's the key", *[None for _ in others]],
        )

    def test_default_values_are_kept(self, connector: Connector) -> None:
        self.only_where_tables_are_created()
        metadata = self._table_of([(name, "bigint") for name in self.column_names])
        statement = PageStatement(connector, metadata.name)
        statement.rollback()
        if not statement.metadata.stores_defaults:
            pytest.skip("stores_defaults = False: the engine refuses default values")
        first, *others = metadata.columns
        with_defaults = replace(
            metadata,
            columns=(first, *(replace(column, default=f"{n}") for n, column in enumerate(others))),
        )
        try:
            self.create_table(connector, with_defaults)
        except RowMergeError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            # Stores may keep them in some tables only, such as Iceberg's of format version 3.
            pytest.skip(f"this table has no default values: {error.message}")
        stored_metadata = _stored_metadata(connector, metadata.name)
        must_be(
            "the default values",
            [c.default for c in stored_metadata.columns],
            [None, *(f"{n}" for n in range(len(others)))],
        )

    def _table_of(
        self, columns: Sequence[tuple[str, str]], key: int = 0, name: str = "other"
    ) -> ConnectorTableMetadata:
        handles = tuple(
            ColumnMetadata(name, parse_type(sql_type), nullable=n != key)
            for n, (name, sql_type) in enumerate(columns)
        )
        names = {name for name, _ in columns}
        layout = next(iter(self.layouts.values()))
        properties = {k: v for k, v in layout.items() if k == "primary_key" and names.issuperset(v)}
        return ConnectorTableMetadata(
            SchemaTableName(self.name().schema, name), handles, properties
        )

    def typed_rows(self, connector: Connector, type_name: str) -> list[Row]:
        """Return rows of a number and two values of a type, at its limits and NULL.

        Values that the store refuses are omitted; a type that CREATE TABLE refuses skips the check.
        """
        values = self._storable_values(connector, type_name)
        others = [*values[1:], *values[:1]]
        pairs = [
            *zip(values, others, strict=True),
            (None, values[0]),
            (values[0], None),
            (None, None),
        ]
        return [(number, *pair) for number, pair in enumerate(pairs)]

    def _storable_values(self, connector: Connector, type_name: str) -> Sequence[Any]:
        self.only_where_tables_are_created()
        by_type = _STORABLE.setdefault(type(self), {})
        if type_name not in by_type:
            by_type[type_name] = self._try_values(connector, type_name)
        values = by_type[type_name]
        if isinstance(values, str):
            pytest.skip(values)
        return values

    def _try_values(self, connector: Connector, type_name: str) -> Sequence[Any] | str:
        metadata = self._typed_metadata(type_name, 0, "probe")
        try:
            self.create_table(connector, metadata)
        except RowMergeError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            return f"CREATE TABLE refuses columns of type {type_name}: {error.message}"
        values = awkward_values(type_name)
        statement = PageStatement(connector, metadata.name)
        statement.rollback()
        if not statement.metadata.keeps_negative_zero:
            values = tuple(
                value for value in values if repr((-0.0).hex()) not in repr(identity(value))
            )
        rows = [(number, value, value) for number, value in enumerate(values)]
        if not self._refusal(connector, metadata, rows):
            return values
        reasons = [
            self._refusal(connector, metadata, [(len(rows) + row[0], *row[1:])]) for row in rows
        ]
        assert not all(reasons), f"every value of type {type_name} is refused: {reasons[0]}"
        return [value for value, reason in zip(values, reasons, strict=True) if not reason]

    def _refusal(
        self, connector: Connector, metadata: ConnectorTableMetadata, rows: Sequence[Row]
    ) -> str:
        statement = PageStatement(connector, metadata.name)
        try:
            if self.inserts:
                statement.insert(rows)
            else:
                statement.merge(Changes(inserted=rows))
        except RowMergeError as error:
            if error.code not in _REFUSALS:
                raise
            return str(error)
        finally:
            statement.rollback()
        return ""

    def typed_table(
        self, connector: Connector, type_name: str, rows: Sequence[Row], position: int = 0
    ) -> PageStatement:
        """Create a table of a number, at ``position``, and two columns of a type; begin a
        statement on it.
        """
        metadata = self._typed_metadata(type_name, position)
        self.make_table(connector, metadata, rows)
        return PageStatement(connector, metadata.name)

    def _typed_metadata(
        self, type_name: str, position: int, name: str = "other"
    ) -> ConnectorTableMetadata:
        key = next(iter(self.columns))
        columns = [
            (column, type_name)
            for column in ("value", "Other", "third")
            if column.lower() != key.lower()
        ][:2]
        columns.insert(position, (key, "bigint"))
        return self._table_of(columns, position, name)

    def typed_must_have(
        self, statement: PageStatement, type_name: str, rows: Sequence[Row], position: int = 0
    ) -> None:
        """Fail unless a table of `typed_table` has these rows, each with its number first; end the
        statement.
        """
        __tracebackhide__ = True
        names = [column.name for column in statement.columns]
        actual = [
            (row[position], *row[:position], *row[position + 1 :]) for row in statement.rows()
        ]
        statement.rollback()
        sql_type = parse_type(type_name)
        numbers, *channels = zip(*rows, strict=True)
        expected = list(
            zip(numbers, *(stored_values(channel, sql_type) for channel in channels), strict=True)
        )
        columns = [names[position], *names[:position], *names[position + 1 :]]
        if wrong := differences(expected, actual, columns):
            types = [pa.int64(), *[sql_type.arrow] * (len(columns) - 1)]
            raise RowsDiffer(wrong, columns, about=f"values of type {type_name}", types=types)


def constrained_type(type_name: str) -> Type:
    """Return a type for which the engine creates constraints; skip the check for others."""
    sql_type = parse_type(type_name)
    if sql_type.base not in _CONSTRAINED:
        pytest.skip(f"the engine creates no constraints of type {sql_type.base}")
    return sql_type


def check_domains(
    statement: PageStatement, at: int, values: Sequence[Any], domains: Sequence[ColumnDomain]
) -> None:
    """Fail if a scan with a domain on column ``at`` lacks a value in the domain; end the statement."""
    __tracebackhide__ = True
    column = statement.columns[at]
    for domain in domains:
        expected = Counter(
            identity(value) for value in values if value is not None and _is_in(value, domain)
        )
        channel = statement.read(column.name, constraint=Constraint({column.name: domain})).column(
            0
        )
        absent = expected - Counter(map(identity, read_values(channel, column.type)))
        assert not absent, (
            f"rows with {sorted(map(repr, absent))} satisfy {domain} and were not read"
        )
    statement.rollback()


def _is_in(value: Any, domain: ColumnDomain) -> bool:
    return (
        (domain.values is None or value in domain.values)
        and (domain.low is None or value >= domain.low)
        and (domain.high is None or value <= domain.high)
    )


def _texts(table: pa.Table) -> list[list[str]]:
    return [
        [repr(identity(value)) if value is not None else "None" for value in column.to_pylist()]
        for column in table.columns
    ]


def _stored_metadata(connector: Connector, name: SchemaTableName) -> ConnectorTableMetadata:
    statement = PageStatement(connector, name)
    assert statement.handle is not None
    stored_metadata = statement.metadata.get_table_metadata(statement.session, statement.handle)
    statement.rollback()
    return stored_metadata
