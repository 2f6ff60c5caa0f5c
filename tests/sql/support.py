"""A catalog without an engine: tables described in one line each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.sql.analyzer.analysis import (
    Analysis,
    CreateTableAnalysis,
    InsertAnalysis,
    QueryAnalysis,
    TableBinding,
)
from rowmerge_nb.sql.analyzer.statements.statement import analyze
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.spark.query_printer import print_query


class FakeTables:
    """Tables of one catalog and schema, and DataFrames of a notebook."""

    def __init__(
        self,
        tables: Mapping[str, Sequence[Sequence[str]]],
        catalog: str = "memory",
        schema: str = "default",
    ) -> None:
        self.catalog, self.schema = catalog, schema
        self.tables = tables
        self.frames: dict[str, TableBinding] = {}

    def resolve(self, parts: Sequence[str], version: object = None) -> TableBinding | None:
        name = parts[-1]
        if len(parts) == 1 and name in self.frames:
            return self.frames[name]
        if (
            name not in self.tables
            or tuple(parts[:-1]) != (self.catalog, self.schema)[3 - len(parts) :]
        ):
            return None
        columns = tuple(
            ColumnMetadata(c[0], parse_type(c[1]), nullable=len(c) < 3) for c in self.tables[name]
        )
        return TableBinding(
            ".".join(parts), self.catalog, (self.catalog, self.schema, name), columns, f"v_{name}"
        )

    def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
        catalog, schema, table = (self.catalog, self.schema, "")[: 3 - len(parts)] + tuple(parts)
        if catalog != self.catalog:
            msg = f"Catalog '{catalog}' not found"
            raise RowMergeError(msg, code="CATALOG_NOT_FOUND")
        if schema != self.schema:
            msg = f"Schema '{schema}' does not exist"
            raise RowMergeError(msg, code="SCHEMA_NOT_FOUND")
        return catalog, schema, table

    def catalogs(self) -> Sequence[str]:
        return [self.catalog]

    def default(self) -> tuple[str, str]:
        return self.catalog, self.schema

    def has_schema(self, catalog: str, schema: str) -> bool:
        return (catalog, schema) == (self.catalog, self.schema)

    def settings(self) -> Mapping[str, str]:
        return {}

    def store(self, catalog: str) -> Any:
        return SimpleNamespace(
            keeps_sizes=True,
            keeps_branches=False,
            evolves_tables=True,
            evolves_types=False,
            replaces_tables=True,
        )

    def user(self) -> str:
        return "ann"

    def view(self, parts: Sequence[str]) -> None:
        return None

    def source_hint(self, name: str) -> str | None:
        return None

    def frame_hint(self, column: str) -> str | None:
        return None

    def candidates(self, parts: Sequence[str]) -> Sequence[str]:
        return [*self.tables, *self.frames]

    def branches(self, table: TableBinding) -> Sequence[str]:
        return ()

    def evolved(self, table: TableBinding, columns: Sequence[ColumnMetadata]) -> TableBinding:
        return replace(table, columns=(*table.columns, *columns))


ACCOUNTS = FakeTables(
    {
        "accounts": [("customer", "varchar"), ("purchases", "decimal"), ("address", "varchar")],
        "monthly_accounts_update": [
            ("customer", "varchar"),
            ("purchases", "decimal"),
            ("address", "varchar"),
        ],
        "numbers": [
            ("i", "integer"),
            ("l", "bigint"),
            ("n", "decimal(10,2)"),
            ("d", "double"),
            ("s", "varchar"),
            ("b", "boolean"),
        ],
        "parts": [
            ("id", "integer", "not null"),
            ("code", "varchar(3)"),
            ("tags", "array(varchar)"),
            ("made", "date"),
        ],
    }
)


def with_rows(spark: Any, analysis: Analysis) -> Analysis:
    """Let Spark find the rows of VALUES of an analysis, like the engine."""
    for binding in analysis.bindings:
        if binding.rows is not None:
            rows = spark.createDataFrame(binding.rows.table())
            rows.toDF(*(f"c{place}" for place in range(len(rows.columns)))).createOrReplaceTempView(
                binding.view
            )
    return analysis


def spark_text(analysis: Analysis) -> str:
    """Return the query of an analysis as Spark SQL."""
    assert isinstance(analysis, QueryAnalysis | InsertAnalysis | CreateTableAnalysis)
    assert analysis.tree is not None
    return print_query(analysis.tree)


def unmarked(text: str) -> str:
    """Return Spark SQL without the marks by which errors find their expressions."""
    return re.sub(r"/\*\d*\*/|(?<=[A-Z])@\d+(?=\]\])", "", text)


def meaning(
    sql: str, *, tables: FakeTables = ACCOUNTS, era: Era = Era.DOCUMENTS, dialect: str = "trino"
) -> Analysis:
    """Parse and analyze."""
    return analyze(parse(sql, dialect=dialect), tables, era=era)


def refusal(
    sql: str, *, tables: FakeTables = ACCOUNTS, era: Era = Era.DOCUMENTS, dialect: str = "trino"
) -> RowMergeError:
    """Return the error of a statement that must be refused."""
    try:
        meaning(sql, tables=tables, era=era, dialect=dialect)
    except RowMergeError as error:
        return error
    pytest.fail(f"not refused: {sql}")


def told(error: RowMergeError) -> str:
    """Write an error's code, position and message in one line."""
    where = "" if error.line is None else f"line {error.line}:{error.column}: "
    return f"{error.code}: {where}{error.message}"


def place(error: RowMergeError) -> tuple[str, int | None, int | None]:
    """The compared parts of an error: its code and its position."""
    return error.code, error.line, error.column
