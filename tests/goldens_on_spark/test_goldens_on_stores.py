"""Statements recorded on Trino, on stores with tables in files: another program than the engine reads the rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rowmerge_nb import DeltaConnector, HiveAcidConnector, IcebergConnector
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.hive_acid.kit import Statement
from tests.goldens_on_spark.departures import DEPARTURES
from tests.goldens_on_spark.support import SCHEMA, Server, cases_on, columns_of, expected_answer
from tests.goldens_on_spark.test_goldens_on_spark import placed_like
from tests.goldens_on_spark.values import row_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = pytest.mark.spark

BUCKETED = re.compile(r"bucket\((\w+), (\d+)\)")
WITHOUT_TABLES = {
    "delta": {"part-by-month", "part-bucketed"},
    "hive": {"part-by-month"},
}
"""Cases with a table that the store cannot have: partitioned by a transform."""


def in_hives_order(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded table with its partition columns last, as Hive requires."""
    names = [column[0] for column in table["columns"]]
    last = [name for name in table.get("partitioned_by", ()) if name in names]
    order = [names.index(name) for name in [*(name for name in names if name not in last), *last]]
    columns, rows = (
        [[entry[index] for index in order] for entry in lines]
        for lines in ([table["columns"]], table["rows"])
    )
    return {**table, "columns": columns[0], "rows": rows}


class HiveServer(Server):
    def __init__(self, spark: Any, directory: Path) -> None:
        super().__init__(spark, connector=HiveAcidConnector(directory))

    def _create(self, name: str, table: Mapping[str, Any]) -> None:
        super()._create(name, in_hives_order(table))

    def _properties(self, transforms: tuple[str, ...]) -> list[str]:
        bucketed = BUCKETED.fullmatch(transforms[0]) if transforms else None
        if bucketed:
            return [f"bucketed_by = ARRAY['{bucketed[1]}']", f"bucket_count = {bucketed[2]}"]
        return super()._properties(transforms)

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        statement = Statement(self.connector, SchemaTableName(SCHEMA, case["target"]))
        rows = statement.rows()
        statement.commit()
        columns = columns_of(case["tables"][case["target"]])
        schema = pa.schema([(name, kind.arrow) for name, kind in columns])
        data = pa.Table.from_pylist(
            [{name.lower(): value for name, value in row.items()} for row in rows], schema=schema
        )
        return row_texts([kind for _, kind in columns], data)


class IcebergServer(Server):
    extra: Mapping[str, str] = {}

    def __init__(self, spark: Any, directory: Path) -> None:
        super().__init__(spark, connector=IcebergConnector(directory))

    def _properties(self, transforms: tuple[str, ...]) -> list[str]:
        parts = [f"partitioning = ARRAY{list(transforms)}"] if transforms else []
        if self.extra:
            keys, values = list(self.extra), list(self.extra.values())
            parts.append(f"extra_properties = MAP(ARRAY{keys}, ARRAY{values})")
        return parts

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        table = self.connector.catalog.load_table((SCHEMA, case["target"]))
        return in_case_types(case, table.scan().to_arrow())


class VersionThreeServer(IcebergServer):
    """Writes deletion vectors."""

    def _properties(self, transforms: tuple[str, ...]) -> list[str]:
        return [*super()._properties(transforms), "format_version = 3"]


class CopyOnWriteServer(IcebergServer):
    """Differs from `IcebergServer` only in the files written by commits of changed rows."""

    extra = {f"write.{word}.mode": "copy-on-write" for word in ("merge", "update", "delete")}


class DeltaServer(Server):
    def __init__(self, spark: Any, directory: Path) -> None:
        super().__init__(spark, connector=DeltaConnector(directory))
        self.directory = directory

    def _content(self, case: Mapping[str, Any]) -> list[str]:
        table = DeltaTable(self.directory / SCHEMA / case["target"])
        return in_case_types(case, table.to_pyarrow_table())


def in_case_types(case: Mapping[str, Any], rows: pa.Table) -> list[str]:
    columns = columns_of(case["tables"][case["target"]])
    arrays = [
        rows.column(index).combine_chunks().cast(kind.arrow)
        for index, (_, kind) in enumerate(columns)
    ]
    names = [name for name, _ in columns]
    return row_texts([kind for _, kind in columns], pa.Table.from_arrays(arrays, names=names))


def is_for(name: str, case: Mapping[str, Any]) -> bool:
    """Return whether a store has a case: its other ways of writing have those that commit changes."""
    themes = {"iceberg copy-on-write": {"clauses", "partitioned"}, "iceberg version 3": {"partitioned"}}  # fmt: skip
    return name not in themes or ("error" not in case["expect"] and case["theme"] in themes[name])


SERVERS = {
    "hive": HiveServer,
    "iceberg": IcebergServer,
    "iceberg copy-on-write": CopyOnWriteServer,
    "iceberg version 3": VersionThreeServer,
    "delta": DeltaServer,
}


@pytest.fixture(scope="module")
def server(request: Any, spark: Any, tmp_path_factory: Any) -> Iterator[Server]:
    with SERVERS[request.param](spark, tmp_path_factory.mktemp("gold")) as server:
        yield server


@pytest.mark.parametrize(
    ("server", "case"),
    [
        pytest.param(name, *case.values, id=f"{name}-{case.id}", marks=case.marks)
        for name in SERVERS
        for case in cases_on(name.split()[0], without=WITHOUT_TABLES.get(name, ()))
        if is_for(name, case.values[0])
    ],
    indirect=["server"],
)
def test_a_recorded_case_has_its_answer_on_a_store_of_files(
    server: Server, case: Mapping[str, Any]
) -> None:
    departure = DEPARTURES.get(case["id"])
    expected = expected_answer(case, departure["expect"] if departure else None)
    assert placed_like(server.answer(case), expected) == expected
