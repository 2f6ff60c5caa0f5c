"""The contract of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowmerge_nb import DeltaConnector
from rowmerge_nb.testing.contract import ConnectorContract


@pytest.mark.each_value
class TestDelta(ConnectorContract):
    layouts = {
        "plain": {},
        "by column": {"partitioned_by": ("name",)},
        "wider types": {"type_widening_enabled": True},
    }
    evolution_properties = {"type_widening_enabled": True}
    types = (
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal(5,2)",
        "decimal(38,10)",
        "varchar",
        "varbinary",
        "date",
        "timestamp(6)",
        "timestamp(6) with time zone",
        "array(integer)",
        "map(varchar, bigint)",
        "row(a integer, b varchar)",
    )
    column_names = ("id", "select", 'quo"ted', "it's", "naïve")

    def make_connector(self, directory: Path) -> DeltaConnector:
        return DeltaConnector(directory)
