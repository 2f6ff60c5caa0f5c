"""Engines that run a scenario: the engine under test, DuckDB, PostgreSQL and Trino, with comparable
outcomes.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from proof.engines.trino import TrinoClient, TrinoError
from proof.oracle.oracle import DUPLICATE, NOT_NULL, OUT_OF_RANGE, Outcome, multiset, predict
from proof.statements.model import DeleteAction, InsertAction, MergeStatement, Table, UpdateAction
from proof.statements.printing import Printer
from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from proof.statements.model import Clause, Row, Scenario, Value
    from rowmerge_nb.spi.types import Type

__all__ = [
    "Backend",
    "DuckDB",
    "EngineUnderTest",
    "InexpressibleError",
    "Oracle",
    "PostgreSQL",
    "Trino",
    "arrow_table",
    "trino_class",
]


_TRINO_CLASSES: Final = {
    "MERGE_TARGET_ROW_MULTIPLE_MATCHES": DUPLICATE,
    "CONSTRAINT_VIOLATION": NOT_NULL,
    "NUMERIC_VALUE_OUT_OF_RANGE": OUT_OF_RANGE,
    "INVALID_CAST_ARGUMENT": OUT_OF_RANGE,
}


_OWN_FAILURES: Final = frozenset({"GENERIC_INTERNAL_ERROR", "COMPILER_ERROR"})
_READ: Final[Mapping[str, Callable[[Any], Value]]] = {
    "double": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}


class InexpressibleError(Exception):
    """The engine cannot express the scenario, which is skipped."""


class Backend(Protocol):
    """Runs scenarios.

    Attributes:
        name: the engine's name.
        rule: its rule for duplicates; None for that of the scenario's settings.
        eager: classes of error that it may raise for values that no row receives, since it computes
            constants or the values of other clauses in advance. Such an error is no evidence.
    """

    name: str
    rule: str | None
    eager: frozenset[str]

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario's statement on fresh tables.

        Raises:
            InexpressibleError: the engine cannot express it.
        """

    def close(self) -> None:
        """Release all resources."""


class Oracle:
    """The prediction, as an engine."""

    name: str = "oracle"
    rule: str | None = None
    eager: frozenset[str] = frozenset()

    def run(self, scenario: Scenario) -> Outcome:
        """Return the predicted outcome."""
        return predict(scenario)

    def close(self) -> None:
        """Release nothing."""


class DuckDB:
    """DuckDB within this process.

    For a MERGE it follows the standard's rule: no target row may be changed twice.

    >>> from proof.statements.scenarios import numbered_scenario
    >>> backend, scenario = DuckDB(), numbered_scenario(1, 2)
    >>> backend.run(scenario) == predict(scenario)
    True
    >>> backend.close()
    """

    name: str = "duckdb"
    rule: str | None = "standard"
    eager: frozenset[str] = frozenset({OUT_OF_RANGE})

    def __init__(self) -> None:
        import duckdb

        self._errors: Any = duckdb.Error
        self._connection = duckdb.connect()
        self._printer = Printer("duckdb")

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario's statement."""
        _refuse_unreachable(scenario)
        for table in scenario.tables:
            self._connection.execute(self._printer.create(table, "CREATE OR REPLACE TABLE"))
            if table.rows:
                self._connection.execute(self._printer.insert(table))
        try:
            answer = self._connection.execute(self._printer.statement(scenario)).fetchone()
        except self._errors as error:
            return _failed(error, _duckdb_class(error))
        rows = self._connection.execute(f"SELECT * FROM {scenario.target.name}").fetchall()
        return Outcome(multiset(rows), answer[0] if answer else None)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _duckdb_class(error: Exception) -> str:
    class_name, text = type(error).__name__, str(error)
    if "affect the same target row more than once" in text:
        return DUPLICATE
    if class_name == "ConstraintException" and "NOT NULL" in text:
        return NOT_NULL
    if class_name in {"ConversionException", "OutOfRangeException"}:
        return OUT_OF_RANGE
    return class_name


class PostgreSQL:
    """A PostgreSQL server, version 15 or newer.

    Args:
        uri: its address; tables are created in the connection's temporary schema.
    """

    name: str = "postgresql"
    rule: str | None = "standard"
    eager: frozenset[str] = frozenset({OUT_OF_RANGE})
    _CLASSES: Final = {"21000": DUPLICATE, "23502": NOT_NULL, "22003": OUT_OF_RANGE}

    def __init__(self, uri: str) -> None:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi

        self._errors = Error
        self._connection = dbapi.connect(uri, autocommit=True)
        self._printer = Printer("postgresql")

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario's statement."""
        _refuse_unreachable(scenario)
        with self._connection.cursor() as cursor:
            for table in scenario.tables:
                cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{table.name}")
                cursor.execute(self._printer.create(table, "CREATE TEMPORARY TABLE"))
                if table.rows:
                    cursor.execute(self._printer.insert(table))
            try:
                cursor.execute(self._printer.statement(scenario))
            except self._errors as error:
                return _failed(
                    error, self._CLASSES.get(error.sqlstate or "", f"SQLSTATE {error.sqlstate}")
                )
            count = cursor.rowcount
            cursor.execute(f"SELECT * FROM {scenario.target.name}")
            rows = _rows(cursor.fetch_arrow_table(), scenario.target)
        return Outcome(multiset(rows), count)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _refuse_unreachable(scenario: Scenario) -> None:
    """Refuse clauses after one without a condition: Trino ignores them, DuckDB and PostgreSQL
    reject them.
    """
    statement = scenario.statement
    if isinstance(statement, MergeStatement):
        for matched in (True, False):
            clauses = [clause for clause in statement.clauses if clause.matched is matched]
            if any(clause.condition is None for clause in clauses[:-1]):
                raise InexpressibleError("A WHEN clause cannot be reached")


class Trino:
    """A Trino server with a catalog that supports MERGE.

    Tables are created in a schema of this backend, which is dropped at the end.

    Args:
        url: the server and the catalog, as for `TrinoClient`.
    """

    name: str = "trino"
    rule: str | None = "trino"
    eager: frozenset[str] = frozenset()

    def __init__(self, url: str) -> None:
        self._client = TrinoClient(url)
        self._schema = f"fuzz_{uuid.uuid4().hex[:12]}"
        self._client.run(f"CREATE SCHEMA {self._schema}")
        self._client.use(self._schema)
        self._printer = Printer("trino")

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario's statement; failures of Trino itself are skipped."""
        _refuse_single_columns(scenario)
        target, partitioned_by = scenario.target, scenario.settings.partitioned_by
        for table in scenario.tables:
            listed = (
                ", ".join(f"'{column}'" for column in partitioned_by) if table is target else ""
            )
            self._client.run(f"DROP TABLE IF EXISTS {table.name}")
            self._client.run(
                self._printer.create(table)
                + (f" WITH (partitioning = ARRAY[{listed}])" if listed else "")
            )
            if table.rows:
                self._client.run(self._printer.insert(table))
        try:
            count = self._client.run(self._printer.statement(scenario)).count
        except TrinoError as error:
            if error.code in _OWN_FAILURES:
                raise InexpressibleError(str(error)) from error
            return _failed(error, trino_class(error))
        kinds = [column.type for column in target.columns]
        rows = self._client.run(f"SELECT * FROM {target.name}").rows
        # Trino may omit the count if no row changed.
        return Outcome(multiset(tuple(map(_from_json, row, kinds)) for row in rows), count or 0)

    def close(self) -> None:
        """Drop the schema."""
        self._client.run(f"DROP SCHEMA {self._schema} CASCADE")


def _refuse_single_columns(scenario: Scenario) -> None:
    """Refuse scenarios whose outcome differs in stores that change single columns: Iceberg writes
    whole rows.
    """
    rows = replace(
        scenario, settings=replace(scenario.settings, paradigm="DELETE_ROW_AND_INSERT_ROW")
    )
    if predict(rows, "trino") != predict(scenario, "trino"):
        raise InexpressibleError("A row cannot have two versions in a store of single columns")


def trino_class(error: TrinoError | RowMergeError) -> str:
    """Return the class of an error that has one of Trino's codes."""
    # UPDATE has another code than MERGE for the same sentence.
    if error.code == "INVALID_ARGUMENTS" and "NOT NULL" in error.message:
        return NOT_NULL
    return _TRINO_CLASSES.get(error.code, error.code)


def _from_json(value: Any, sql_type: Type) -> Value:
    """Return a value from its form in Trino's protocol.

    >>> from rowmerge_nb.spi.types import DATE
    >>> _from_json("2024-02-29", DATE)
    datetime.date(2024, 2, 29)
    """
    if value is None:
        return None
    read = _READ.get(sql_type.base)
    return value if read is None else read(value)


class EngineUnderTest:
    """The engine of this package, through its public API: text in, table out.

    Args:
        engine: an `rowmerge_nb.Engine`.
        flow: how UPDATE and DELETE are executed; statements that the flow ``updatable`` refuses are
            skipped.
        rules_off: rules disabled for all statements.
    """

    name: str = "rowmerge_nb"
    rule: str | None = None
    eager: frozenset[str] = frozenset()

    def __init__(
        self, engine: Any, flow: str = "merge", rules_off: frozenset[str] = frozenset()
    ) -> None:
        self._engine = engine
        self._rules_off = rules_off
        self._printer = Printer("trino")
        self._flow = flow
        if flow != "merge":
            self.name = f"rowmerge_nb, flow {flow}"

    def run(self, scenario: Scenario) -> Outcome:
        """Run a scenario's statement."""
        from rowmerge_nb.plan.rules import RULES

        settings, target = scenario.settings, scenario.target
        self._engine.register(
            target.name,
            arrow_table(target),
            paradigm=settings.paradigm,
            partitioned_by=settings.partitioned_by,
            bucketed_by=settings.bucketed_by,
            bucket_count=3 if settings.bucketed_by else None,
            not_null=[column.name for column in target.columns if not column.nullable],
        )
        for table in scenario.tables[1:]:
            self._engine.register(table.name, arrow_table(table))
        before = self._engine.table(target.name)
        try:
            result = self._engine.run(
                self._printer.statement(scenario),
                era=settings.era,
                duplicates=settings.duplicates,
                trace=settings.trace,
                rules_off=self._rules_off if settings.rules else tuple(RULES),
                flow=self._flow,
            )
        except RowMergeError as error:
            self._pass_over(error)
            if not self._engine.table(target.name).equals(before):
                return _failed(error, f"{error.code}, and the table was changed")
            return _failed(error, trino_class(error))
        after = self._engine.table(target.name)
        if after.schema != before.schema:
            return Outcome(None, None, frozenset({f"the table's columns are now {after.schema}"}))
        problem = _told(scenario, result)
        if problem:
            return Outcome(None, None, frozenset({problem}))
        return Outcome(multiset(_rows(after, target)), result.count)

    def _pass_over(self, error: RowMergeError) -> None:
        """Skip what the older flow does not support."""
        if self._flow == "updatable" and (
            error.code == "NOT_SUPPORTED" or "Invalid descendant" in error.message
        ):
            raise InexpressibleError(str(error)) from error

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def _told(scenario: Scenario, result: Any) -> str:
    """Return what is wrong with the row counts of a MERGE, or ``""``."""
    if not isinstance(scenario.statement, MergeStatement):
        return ""
    per_clause = {
        clause.number: clause.rows for clause in result.trace.clauses if clause.number >= 0
    }
    if sum(per_clause.values()) != result.count:
        return f"the clauses' rows {per_clause} do not add up to the count {result.count}"
    for number, rows in per_clause.items():
        if rows and result.counts[_operation(scenario.statement.clauses[number])] < rows:
            return f"clause {number} took {rows} rows, and the counts are {result.counts}"
    return ""


def _operation(clause: Clause) -> str:
    return {InsertAction: "INSERT", UpdateAction: "UPDATE", DeleteAction: "DELETE"}[
        type(clause.action)
    ]


def _failed(error: Exception, kind: str) -> Outcome:
    return Outcome(None, None, frozenset({kind}), str(error))


def arrow_table(table: Table) -> pa.Table:
    """Return a table as Arrow data of its exact types.

    >>> from rowmerge_nb.spi.types import DATE
    >>> from proof.statements.model import ColumnDefinition
    >>> arrow_table(Table("t", (ColumnDefinition("d", DATE),), ())).schema.field("d").type
    DataType(date32[day])
    """
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    arrays = [
        pa.array(values, column.type.arrow)
        for values, column in zip(columns, table.columns, strict=True)
    ]
    return pa.table(arrays, names=list(table.names))


def _rows(data: pa.Table, table: Table) -> Iterable[Row]:
    """Return rows as tuples; texts of drivers are converted to numbers."""
    columns = []
    for column, array in zip(table.columns, data.columns, strict=True):
        values = array.to_pylist()
        if column.type.base == "decimal":
            values = [None if value is None else Decimal(value) for value in values]
        columns.append(values)
    return zip(*columns, strict=True)
