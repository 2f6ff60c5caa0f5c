"""A requested check reads the table through another library than its connector, if one exists."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.spi import IndependentRows

pytestmark = pytest.mark.spark

AFTER = {"id": [1, 3], "name": ["a", "c"]}
DELETE = "DELETE FROM memory.default.t WHERE id = 2"


@pytest.fixture
def engine(spark):
    engine = Engine(spark=spark)
    engine.run(
        "CREATE TABLE memory.default.t AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) t(id, name)"
    )
    return engine


@pytest.fixture
def read(monkeypatch):
    """Set the rows read by the other library; return the row limits that it got."""
    limits: list[int] = []

    def use(rows, *, fails=None):
        def read_independently(metadata, session, handle, most):
            limits.append(most)
            assert metadata.get_table_metadata(session, handle).name.table == "t"
            if fails is not None:
                raise fails
            return IndependentRows("Shelf 7", None if rows is None else pa.table(rows))

        monkeypatch.setattr(MemoryMetadata, "read_independently", read_independently)
        return limits

    return use


def message(engine, **options):
    check = engine.run(DELETE, **options).trace.checks.commit
    return None if check is None else f"{check.state}: {check.message}"


def test_the_report_names_the_reader(engine, read):
    limits = read(AFTER)
    result = engine.run(DELETE, check=True)
    text = "Read back by Shelf 7: the store holds the expected 2 rows."
    assert result.trace.checks.commit.message == text
    assert text in str(result)
    assert limits == [100_006]


def test_rows_that_only_the_other_reader_misses_are_wrong(engine, read):
    read({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    check = engine.run(DELETE, check=True).trace.checks.commit
    assert check.state == "differs"
    assert check.message.startswith("Read back by Shelf 7: 1 row is not as the statement")
    assert "The connector itself reads the correct rows." in check.message
    assert "(2, 'b')" in check.rows[0].sentence


def test_far_too_many_rows_are_wrong(engine, read):
    read(None)
    assert message(engine, check=True).startswith("differs: The store holds far more rows")


@pytest.mark.parametrize(
    ("rows", "fails", "reason"),
    [
        (AFTER, OSError("no such encoding"), "OSError: no such encoding"),
        ({"id": [1, 3]}, None, ""),
        ({"id": ["x", "y"], "name": ["a", "c"]}, None, ""),
    ],
)
def test_the_connector_reads_if_the_other_library_cannot(engine, read, rows, fails, reason):
    read(rows, fails=fails)
    text = message(engine, check=True)
    assert text.startswith("agrees: Read back: the store holds the expected 2 rows. Another")
    assert f"Another reader could not read the table: {reason}" in text


def test_a_check_that_was_not_requested_reads_by_the_connector(engine, read, monkeypatch):
    limits = read(AFTER)
    monkeypatch.setattr(MemoryConnector, "checked_after_commit", True)
    assert message(engine) == "agrees: Read back: the store holds the expected 2 rows."
    assert message(engine, check=False) is None
    assert limits == []
