"""Copies of a table in other catalogs, for one statement each, and their removal."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, StatementInterrupted
from rowmerge_nb.base.names import quoted, quoted_path
from rowmerge_nb.base.words import join
from rowmerge_nb.engine.spark.interrupts import to_its_end
from rowmerge_nb.spi.information_schema import INFORMATION_SCHEMA
from rowmerge_nb.sql.constants import property_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata

PREFIX: Final = "rowmerge_copy_"
"""The names of copies and of their schemas begin so."""
COPIED_PROPERTIES: Final = (
    ("partitioned_by", "partitioning"),
    ("bucketed_by",),
    ("bucket_count",),
    ("primary_key",),
    ("sorted_by",),
    ("paradigm",),
    ("check_constraints",),
)
"""Table properties that a copy takes over, each with its names in the connectors."""

PARTICULAR: Final = frozenset({"paradigm"})
"""Copied properties that describe a store more than its tables: their absence is not reported."""


@dataclass(frozen=True)
class ScratchCopy:
    """A copy of a table.

    Args:
        remarks: what it lacks, as sentences.
    """

    name: TableName
    remarks: tuple[str, ...]


class ScratchCopies:
    """Copies of one table, which `remove` drops.

    Args:
        engine: an engine whose undo log and transactions are not those of the user.
    """

    def __init__(
        self,
        engine: RunningEngine,
        connectors: Mapping[str, Connector],
        table: TableName,
        metadata: ConnectorTableMetadata,
    ) -> None:
        self._engine, self._connectors = engine, connectors
        self._table, self._metadata = table, metadata
        self._begun: list[TableName] = []
        self._schemas: list[tuple[str, str]] = []

    def create(self, catalog: str, further: Mapping[str, str] | None = None) -> ScratchCopy:
        """Create the empty copy in a catalog, with further properties as SQL."""
        name = (catalog, self._schema(catalog), f"{PREFIX}{uuid.uuid4().hex[:12]}")
        self._begun.append(name)
        properties, missing = self._properties(catalog)
        reasons: list[RowMergeError] = []
        for with_properties, with_constraints in self._forms(properties):
            options = properties if with_properties else {}
            try:
                self._engine.run(
                    self._definition(name, options, further or {}, constraints=with_constraints)
                )
            except StatementInterrupted:
                raise
            except RowMergeError as error:
                reasons.append(error)
                continue
            remarks = list(missing)
            if properties and not with_properties:
                reason = reasons[0].message
                remarks.append(f"The copy in {catalog} has no {join(list(properties))}: {reason}")
            if not with_constraints:
                remarks.append(
                    f"The copy in {catalog} has no NOT NULL and no defaults: {reasons[-1].message}"
                )
            return ScratchCopy(name, (*remarks, *self._other_types(name)))
        raise self._refusal(catalog, name, reasons[-1])

    def fill(self, copy: ScratchCopy, source: RunningEngine) -> None:
        """Store the rows of the table, as ``source`` reads it, in a copy."""
        columns = ", ".join(quoted(column.name) for column in self._metadata.columns)
        copy_metadata = self._engine.table_metadata(*copy.name)
        types = {} if copy_metadata is None else {c.name: c.type for c in copy_metadata.columns}
        values = ", ".join(
            quoted(column.name)
            if types.get(column.name, column.type) == column.type
            else f"CAST({quoted(column.name)} AS {types[column.name]})"
            for column in self._metadata.columns
        )
        try:
            source.run(
                f"INSERT INTO {quoted_path(copy.name)} ({columns})"
                f" SELECT {values} FROM {quoted_path(self._table)}"
            )
        except StatementInterrupted:
            raise
        except RowMergeError as error:
            raise ConnectorError(
                f"The rows of table '{'.'.join(self._table)}' cannot be copied to catalog"
                f" '{copy.name[0]}': {error.message}",
                code=error.code,
                hint="Omit the catalog.",
            ) from error

    def remove(self) -> list[str]:
        """Drop everything that was created, also after an interrupt; return sentences about what
        could not be dropped.
        """
        problems: list[str] = []
        statements = [f"DROP TABLE IF EXISTS {quoted_path(name)}" for name in self._begun]
        statements += [f"DROP SCHEMA IF EXISTS {quoted_path(schema)}" for schema in self._schemas]
        self._begun, self._schemas = [], []

        def drop_all() -> None:
            while statements:
                try:
                    self._engine.run(statements[0])
                except RowMergeError as error:
                    problems.append(f"A copy remains: {error.message}. Run `{statements[0]}`.")
                del statements[0]

        to_its_end(drop_all)
        return problems + [f"A copy remains. Run `{rest}`." for rest in statements]

    # -- definitions

    def _schema(self, catalog: str) -> str:
        """Return a schema for the copy: the table's, the default one, or a new one."""
        rows = self._engine.run(f"SHOW SCHEMAS FROM {quoted(catalog)}").table
        names = [] if rows is None else rows.column(0).to_pylist()
        names = [name for name in names if name != INFORMATION_SCHEMA]
        for name in (self._table[1], "default"):
            if name in names:
                return name
        schema = f"{PREFIX}{uuid.uuid4().hex[:12]}"
        self._schemas.append((catalog, schema))
        try:
            self._engine.run(f"CREATE SCHEMA {quoted_path((catalog, schema))}")
        except StatementInterrupted:
            raise
        except RowMergeError:
            self._schemas.pop()
            if not names:
                raise
            return str(names[0])
        return schema

    def _properties(self, catalog: str) -> tuple[dict[str, Any], list[str]]:
        """Return the properties of the copy, and sentences about those that the catalog lacks."""
        accepted = self._connectors[catalog].get_table_properties()
        properties, missing = {}, []
        for names in COPIED_PROPERTIES:
            own_name = next((n for n in names if self._metadata.properties.get(n)), None)
            if own_name is None:
                continue
            name = (
                own_name
                if own_name in accepted
                else next(filter(accepted.__contains__, names), None)
            )
            if name is not None:
                properties[name] = self._metadata.properties[own_name]
            elif own_name not in PARTICULAR:
                missing.append(own_name)
        if not missing:
            return properties, []
        return properties, [
            f"The copy in {catalog} has no {join(missing)}, for which the catalog has no property"
        ]

    def _forms(self, properties: Mapping[str, Any]) -> Iterator[tuple[bool, bool]]:
        """Yield the forms of a definition, with properties and with constraints, the most faithful
        first.
        """
        is_constrained = any(not c.nullable or c.default for c in self._metadata.columns)
        for with_constraints in (True, False) if is_constrained else (True,):
            for with_properties in (True, False) if properties else (True,):
                yield with_properties, with_constraints

    def _definition(
        self,
        name: TableName,
        properties: Mapping[str, Any],
        further: Mapping[str, str],
        *,
        constraints: bool,
    ) -> str:
        columns = ", ".join(
            _column(column, constraints=constraints) for column in self._metadata.columns
        )
        texts = {**{key: property_text(value) for key, value in properties.items()}, **further}
        values = ", ".join(f"{key} = {text}" for key, text in texts.items())
        return f"CREATE TABLE {quoted_path(name)} ({columns})" + (
            f" WITH ({values})" if values else ""
        )

    def _other_types(self, name: TableName) -> Iterator[str]:
        copy_metadata = self._engine.table_metadata(*name)
        types = {} if copy_metadata is None else {c.name: c.type for c in copy_metadata.columns}
        for column in self._metadata.columns:
            if (sql_type := types.get(column.name, column.type)) != column.type:
                yield (
                    f"The copy in {name[0]} has column '{column.name}' as {sql_type}, not as"
                    f" {column.type}"
                )

    def _refusal(self, catalog: str, name: TableName, reason: RowMergeError) -> RowMergeError:
        """Return the error of a catalog that cannot have the copy, with the column that it refuses
        if others are accepted.
        """
        table = ".".join(self._table)
        if self._creates(name, "c bigint") is None:
            for column in self._metadata.columns:
                if reason_of_column := self._creates(name, _column(column, constraints=False)):
                    return ConnectorError(
                        f"Catalog '{catalog}' cannot store column '{column.name}' of"
                        f" type {column.type} of table '{table}': {reason_of_column.message}",
                        code=reason_of_column.code,
                        hint="Omit the catalog, or compare on a table without this column.",
                    )
        return ConnectorError(
            f"Catalog '{catalog}' cannot hold a copy of table '{table}': {reason.message}",
            code=reason.code,
            hint="Omit the catalog.",
        )

    def _creates(self, name: TableName, columns: str) -> RowMergeError | None:
        trial = (*name[:2], f"{PREFIX}{uuid.uuid4().hex[:12]}")
        self._begun.append(trial)
        try:
            self._engine.run(f"CREATE TABLE {quoted_path(trial)} ({columns})")
        except StatementInterrupted:
            raise
        except RowMergeError as error:
            return error
        return None


def _column(column: ColumnMetadata, *, constraints: bool) -> str:
    parts = [quoted(column.name), str(column.type)]
    if constraints and column.default:
        parts.append(f"DEFAULT {column.default}")
    if constraints and not column.nullable:
        parts.append("NOT NULL")
    return " ".join(parts)
