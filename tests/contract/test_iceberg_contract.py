"""The contract of Iceberg tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.testing.contract import ConnectorContract
from rowmerge_nb.testing.contract.reading_checks import ReadingChecks


@pytest.mark.each_value
class TestIceberg(ConnectorContract):
    layouts = {
        "plain": {},
        "by column": {"partitioning": ("name",)},
        "by transforms": {"partitioning": ("bucket(id, 3)", "truncate(name, 2)")},
    }
    types = (
        "boolean",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal(5,2)",
        "decimal(38,10)",
        "varchar",
        "varbinary",
        "date",
        "time(6)",
        "timestamp(6)",
        "uuid",
        "array(integer)",
        "map(varchar, bigint)",
        "row(a integer, b varchar)",
    )

    def make_connector(self, directory: Path) -> IcebergConnector:
        return IcebergConnector(directory)


COPY_ON_WRITE = {"extra_properties": {"write.merge.mode": "copy-on-write"}}


@pytest.mark.not_quick
@pytest.mark.era_in_turn
class TestIcebergCopyOnWrite(TestIceberg):
    """A sample of the same tables with rewritten files."""

    layouts = {"by transforms": {**TestIceberg.layouts["by transforms"], **COPY_ON_WRITE}}
    types = ("integer", "decimal(38,10)", "varchar", "row(a integer, b varchar)")


@pytest.mark.not_quick
@pytest.mark.era_in_turn
class TestIcebergVersionThree(TestIceberg):
    """A sample of the same tables with deleted rows in deletion vectors."""

    layouts = {"by column": {"partitioning": ("name",), "format_version": 3}}
    types = ("bigint", "varchar")


for check in vars(ReadingChecks):
    # INSERT and reading are those of `TestIceberg`; a MERGE numbers the files that it rewrites.
    if check.startswith("test_") and "once_the_merge_has_begun" not in check:
        setattr(TestIcebergCopyOnWrite, check, None)
