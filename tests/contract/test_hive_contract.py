"""The contract kit on Hive's transactional tables."""

from __future__ import annotations

import pytest

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.testing.contract import ConnectorContract


@pytest.mark.each_value
class TestHive(ConnectorContract):
    layouts = {
        "plain": {},
        "partitioned": {"partitioned_by": ("name",)},
        "bucketed": {"partitioned_by": ("name",), "bucketed_by": ("id",), "bucket_count": 3},
    }
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
        "varchar(20)",
        "char(4)",
        "varbinary",
        "date",
        "timestamp(3)",
        "timestamp(6)",
        "array(integer)",
        "map(varchar, bigint)",
        "row(a integer, b varchar)",
    )

    def make_connector(self, folder):
        return HiveAcidConnector(folder / "lake")

    def leftovers(self, connector):
        return [*connector.orphans(), *connector.open_transactions(), *connector._transactions]
