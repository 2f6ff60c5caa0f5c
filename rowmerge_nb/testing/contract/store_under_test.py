"""The connector under test, and the tables of the checks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.contract.contract_statement import (
    Changes,
    PageStatement,
    Row,
    expected_rows,
)
from rowmerge_nb.testing.contract.differences import CommonCause, RowsDiffer, differences, same_rows
from rowmerge_nb.testing.contract.sample_values import (
    TYPES,
    identity,
    numbered_value,
    stored_values,
)

ROWS = 14
_APART = 17
"""The distance of the numbers of two columns' values in a row, to detect swapped columns."""


@dataclass(frozen=True)
class Way:
    """A layout, an era of pages, and a row change paradigm, None for the table's own."""

    layout: str
    era: Era = Era.DOCUMENTS
    paradigm: str | None = None

    def __str__(self) -> str:
        return "-".join(filter(None, [self.layout, str(self.era), self.paradigm]))


class ContractStore:
    """The connector under test.

    Attributes:
        table: schema and name of the checks' table.
        columns: its columns and types; the first one identifies rows.
        nullable: the nullable columns; by default all but the first, or those of an existing
            table's metadata.
        layouts: table properties by a name of your choice; checks of changes run on each.
        evolution_properties: the properties of a table whose columns may get wider types.
        paradigms: the row change paradigms that a statement may request; ``(None,)`` for the
            table's own only.
        types: the storable types; types that CREATE TABLE refuses with NOT_SUPPORTED are skipped.
        column_names: spellings of column names that must be preserved.
        keyed: the row id is a key, so that no two rows are equal.
        creates_tables: CREATE TABLE works; otherwise `make_table` is called only for the table
            above.
        inserts: INSERT works.
    """

    table: ClassVar[str] = "default.contract"
    columns: ClassVar[Mapping[str, str]] = {"id": "bigint", "Price": "double", "name": "varchar"}
    nullable: ClassVar[Collection[str] | None] = None
    layouts: ClassVar[Mapping[str, Mapping[str, Any]]] = {"plain": {}}
    evolution_properties: ClassVar[Mapping[str, Any]] = {}
    paradigms: ClassVar[Sequence[str | None]] = (None,)
    types: ClassVar[Sequence[str]] = TYPES
    column_names: ClassVar[Sequence[str]] = (
        "id",
        "select",
        "Mixed Case",
        'quo"ted',
        "it's",
        "a.b",
        "naïve",
    )
    keyed: ClassVar[bool] = False
    creates_tables: ClassVar[bool] = True
    inserts: ClassVar[bool] = True

    _learned: Collection[str] | None = None

    varies: ClassVar[Collection[str]] = ()
    """The parameters of a class of checks: ``layout``, ``era``, ``paradigm``."""

    # -- to be written

    def make_connector(self, folder: Path) -> Connector:
        """Return a connector over an empty store."""
        raise NotImplementedError(
            f"{type(self).__name__} has no make_connector; write one that returns your"
            " connector, over an empty store"
        )

    def make_table(
        self, connector: Connector, metadata: ConnectorTableMetadata, rows: Sequence[Row]
    ) -> None:
        """Create a table with rows; by default with CREATE TABLE and INSERT, or MERGE."""
        self.create_table(connector, metadata)
        if rows:
            statement = PageStatement(connector, metadata.name)
            if self.inserts:
                statement.insert(rows)
            else:
                statement.merge(Changes(inserted=rows))
            statement.commit()

    def leftovers(self, connector: Connector) -> Collection[Any]:
        """Return leftovers of ended statements: files, stages, open transactions.

        There must be none.

        The default is the connector's ``orphans()``, if it has that method.
        """
        orphans = getattr(connector, "orphans", None)
        return orphans() if orphans is not None else ()

    # -- for the checks

    @staticmethod
    def create_table(connector: Connector, metadata: ConnectorTableMetadata) -> None:
        statement = PageStatement(connector, metadata.name)
        statement.metadata.create_table(statement.session, metadata)
        statement.commit()

    def name(self) -> SchemaTableName:
        schema, _, table = self.table.lower().rpartition(".")
        return SchemaTableName(schema or "default", table)

    def metadata(self, layout: str, *, nullable_key: bool = False) -> ConnectorTableMetadata:
        """Return the table's definition in a layout; ``nullable_key`` is for the first column."""
        first = next(iter(self.columns))
        nullable = {*self.nullable_columns(), *([first] if nullable_key else [])}
        columns = (
            ColumnMetadata(c, parse_type(sql_type), nullable=c in nullable)
            for c, sql_type in self.columns.items()
        )
        return ConnectorTableMetadata(self.name(), tuple(columns), self.layouts[layout])

    def nullable_columns(self) -> Collection[str]:
        """Return the columns that may be NULL in the rows of `row`."""
        default = list(self.columns)[1:] if self._learned is None else self._learned
        return default if self.nullable is None else self.nullable

    def learn_nullable(self, connector: Connector) -> None:
        """Read the nullable columns from the metadata of an existing table."""
        if self.creates_tables or self.nullable is not None:
            return
        statement = PageStatement(connector, self.name())
        try:
            if statement.handle is not None:
                columns = statement.metadata.get_table_metadata(
                    statement.session, statement.handle
                ).columns
                required = {column.name.lower() for column in columns if not column.nullable}
                self._learned = [
                    name for name in list(self.columns)[1:] if name.lower() not in required
                ]
        finally:
            statement.rollback()

    def row(self, number: int, *, shift: int = 0) -> Row:
        """Return a row by its number; every fifth has NULL in nullable columns but the first."""
        nullable = set(self.nullable_columns()) if number % 5 == 0 and not shift else set()
        first, *others = self.columns.items()
        values = [
            (
                None
                if name in nullable
                else numbered_value(parse_type(sql_type), number + shift + _APART * index)
            )
            for index, (name, sql_type) in enumerate(others)
        ]
        return (numbered_value(parse_type(first[1]), number), *values)

    def key(self, number: int) -> Any:
        return self.row(number)[0]

    def new_key(self, number: int) -> Any:
        """Return the key of a row after an update with `new_values`."""
        return self.new_values(number).get(next(iter(self.columns)), self.key(number))

    def new_values(self, number: int) -> dict[str, Any]:
        """Return new values for all columns but the first; for a table with one column, an unused
        key.
        """
        if len(self.columns) == 1:
            return {next(iter(self.columns)): self.key(number + 50)}
        return dict(list(zip(self.columns, self.row(number, shift=20), strict=True))[1:])

    def some_changes(self) -> Changes:
        """Return changes of every kind: two UPDATE clauses, NULL overwritten and written, deletes,
        inserts.
        """
        last = list(self.columns)[-1]
        updated = [
            (self.key(3), self.new_values(3)),
            (self.key(5), self.new_values(5)),
            (self.key(9), {last: self.new_values(9)[last]}),
            (
                self.key(11),
                {last: None if last in self.nullable_columns() else self.new_values(11)[last]},
            ),
        ]
        return Changes(
            (self.key(2), self.key(10)), updated, (self.row(21), self.row(22), self.row(25))
        )

    # -- fixtures

    @staticmethod
    def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
        contract: Any = metafunc.cls
        if names := {"way", "subject"}.intersection(metafunc.fixturenames):
            name = metafunc.function.__name__
            varies = next(base for base in contract.__mro__ if name in vars(base)).varies
            layouts = list(contract.layouts) if "layout" in varies else list(contract.layouts)[-1:]
            eras = list(Era) if "era" in varies else [Era.DOCUMENTS]
            paradigms = contract.paradigms if "paradigm" in varies else contract.paradigms[:1]
            ways = [
                Way(layout, era, paradigm)
                for layout in layouts
                for era in eras
                for paradigm in paradigms
            ]
            metafunc.parametrize(
                names.pop(),
                ways if "way" in metafunc.fixturenames else [*ways, *contract.types],
                ids=str,
            )
        if "type_name" in metafunc.fixturenames:
            metafunc.parametrize("type_name", contract.types)

    @pytest.fixture
    def connector(self, tmp_path: Path) -> Iterator[Connector]:
        connector = self.make_connector(tmp_path)
        yield connector
        connector.close()

    @pytest.fixture
    def filled_table(self, connector: Connector, way: Way) -> FilledTable:
        return self.fill(connector, way)

    def fill(self, connector: Connector, way: Way) -> FilledTable:
        self.learn_nullable(connector)
        before = [self.row(number) for number in range(1, ROWS + 1)]
        self.make_table(connector, self.metadata(way.layout), before)
        return FilledTable(self, connector, way, before)


@dataclass
class FilledTable:
    """A table with the rows ``before``."""

    contract: ContractStore
    connector: Connector
    way: Way
    before: list[Row]
    _last: PageStatement | None = None

    def statement(self, connector: Connector | None = None) -> PageStatement:
        self._last = self._begun(connector or self.connector)
        return self._last

    def _begun(self, connector: Connector) -> PageStatement:
        return PageStatement(connector, self.contract.name(), self.way.era, self.way.paradigm)

    def contents(self) -> list[Row]:
        """Return its current rows, sorted."""
        statement = self._begun(self.connector)
        try:
            return in_order(statement.rows())
        finally:
            statement.rollback()

    def unchanged(self) -> bool:
        return same_rows(self.contents(), self.stored(self.before))

    def expected(self, changes: Changes) -> list[Row]:
        """Return the rows that it should have after changes."""
        return in_order(
            self.stored(expected_rows(self.before, list(self.contract.columns), changes))
        )

    def stored(self, rows: Sequence[Row]) -> list[Row]:
        types = [parse_type(sql_type) for sql_type in self.contract.columns.values()]
        channels = [
            stored_values([row[index] for row in rows], sql_type)
            for index, sql_type in enumerate(types)
        ]
        return list(zip(*channels, strict=True))

    # -- assertions: a failed one says which rows are wrong

    def must_hold(self, changes: Changes, about: str = "") -> None:
        self.must_have(self.expected(changes), about)

    def must_be_unchanged(self, about: str = "") -> None:
        self.must_have(self.before, about)

    def must_have(self, rows: Sequence[Row], about: str = "") -> None:
        """Fail unless it has these rows, in any order; ``about`` explains the failure."""
        __tracebackhide__ = True
        actual, before = self.contents(), self.stored(self.before)
        if not (
            wrong := differences(self.stored(rows), actual, list(self.contract.columns), before)
        ):
            return
        causes = {}
        if self._last is not None and self._last.without_fragment:
            row_count = plural(self._last.without_fragment, "row")
            causes[CommonCause.NO_FRAGMENT] = (
                f"finish() of a merge sink returned no fragment for {row_count} that it received"
            )
        if not actual:
            causes[CommonCause.EMPTY] = f"the table is read as empty but must have {len(rows)}"
        elif same_rows(actual, before):
            causes[CommonCause.AS_BEFORE] = "the table is unchanged by the statement"
        types = [parse_type(sql_type).arrow for sql_type in self.contract.columns.values()]
        raise RowsDiffer(wrong, list(self.contract.columns), causes, about, types)

    def must_have_left_nothing(self) -> None:
        __tracebackhide__ = True
        if leftovers := sorted(map(str, self.contract.leftovers(self.connector))):
            raise AssertionError(
                f"{plural(len(leftovers), 'thing')} left behind by a finished"
                f" statement: {', '.join(leftovers)}"
            )

    def merge(self, changes: Changes) -> None:
        """Run a MERGE; roll back on failure."""
        statement = self.statement()
        try:
            statement.merge(changes)
            statement.commit()
        except BaseException:
            statement.rollback()
            raise


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Sort rows of any types."""
    return sorted(rows, key=lambda row: repr(identity(row)))
