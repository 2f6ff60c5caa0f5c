"""Former versions of memory tables: their number, their times, and their restoration."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import MemoryConnector, RowMergeError
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    PointerType,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement

NAME = SchemaTableName("default", "t")


def store(keep: int = 5) -> MemoryConnector:
    made = MemoryConnector(keep_versions=keep)
    columns = (
        ColumnMetadata("id", parse_type("bigint")),
        ColumnMetadata("v", parse_type("varchar")),
    )
    made.put(ConnectorTableMetadata(NAME, columns), pa.table({"id": [0], "v": ["a"]}))
    return made


def insert(made: MemoryConnector, *keys: int) -> None:
    for key in keys:
        statement = PageStatement(made, NAME)
        statement.merge(Changes(inserted=((key, "b"),)))
        statement.commit()


def restore(made: MemoryConnector, version: int) -> None:
    statement = PageStatement(made, NAME)
    statement.metadata.restore_table(
        statement.session, statement.handle, ConnectorTableVersion(version)
    )
    statement.commit()


def keys(made: MemoryConnector, version: int | None = None) -> list[int]:
    return sorted(made.read(NAME, version).column("id").to_pylist())


def asked(made: MemoryConnector, version: ConnectorTableVersion, time_zone: str = "UTC") -> Any:
    transaction = made.begin_transaction()
    session = ConnectorSession("q", time_zone=time_zone)
    try:
        return made.get_metadata(transaction).get_versioned_table_handle(session, NAME, version)
    finally:
        made.rollback(transaction)


def test_only_the_configured_number_of_former_versions_is_kept() -> None:
    made = store(keep=2)
    insert(made, *range(1, 6))
    assert made.versions(NAME) == (4, 5, 6)
    with pytest.raises(
        RowMergeError,
        match=r"Version 3 of table 'default[.]t' is not retained; available are \[4, 5, 6\]",
    ):
        asked(made, ConnectorTableVersion(3))


def test_all_former_versions_can_be_restored_one_after_the_other() -> None:
    """A restored version shares its rows with the former one, and does not displace it."""
    made = store(keep=5)
    insert(made, *range(1, 6))
    for version in (5, 4, 3, 2, 1):
        restore(made, version)
        assert keys(made) == list(range(version))
    assert made.read(NAME) is made.read(NAME, 1)


def test_versions_restored_repeatedly_do_not_pile_up() -> None:
    made = store(keep=2)
    insert(made, 1, 2)
    for _ in range(50):
        restore(made, sorted(made.versions(NAME))[-2])
    assert len(made.versions(NAME)) <= 6
    assert set(made._tables[NAME].committed) == set(made.versions(NAME))


def test_only_the_current_version_is_kept_without_former_versions() -> None:
    made = store(keep=0)
    insert(made, 1, 2)
    assert made.versions(NAME) == (3,)


def test_a_moment_is_that_of_the_last_commit_before_it() -> None:
    made = store()
    insert(made, 1, 2)
    times = made._tables[NAME].committed
    assert sorted(times.values()) == [times[number] for number in (1, 2, 3)]
    for number, time in times.items():
        assert asked(made, ConnectorTableVersion(time, PointerType.TEMPORAL)).version == number
        if number > 1:
            earlier = time - dt.timedelta(microseconds=1)
            assert (
                asked(made, ConnectorTableVersion(earlier, PointerType.TEMPORAL)).version
                == number - 1
            )


def test_commits_never_have_one_time() -> None:
    made = store(keep=50)
    insert(made, *range(1, 40))
    assert len(set(made._tables[NAME].committed.values())) == 40


def test_a_moment_without_a_zone_is_in_that_of_the_session() -> None:
    made = store()
    made._tables[NAME].committed[1] = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    moment = ConnectorTableVersion(dt.datetime(2026, 1, 31, 12, 30), PointerType.TEMPORAL)  # noqa: DTZ001 - that is the case
    assert asked(made, moment).version == 1
    with pytest.raises(
        RowMergeError,
        match=r"No version history table default[.]t at or before 2026-01-31T11:30:00Z",
    ) as caught:
        asked(made, moment, "Europe/Berlin")
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert caught.value.hint == "Kept since 2026-01-31 12:00:00.000000 UTC are the versions 1."


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        (ConnectorTableVersion("x"), "str"),
        (
            ConnectorTableVersion("x", PointerType.TARGET_ID, parse_type("varchar(1)")),
            r"varchar\(1\)",
        ),
    ],
)
def test_a_version_must_be_a_number(version: ConnectorTableVersion, kind: str) -> None:
    with pytest.raises(
        RowMergeError, match=f"NOT_SUPPORTED: Unsupported type for table version: {kind}"
    ):
        asked(store(), version)


def test_a_missing_table_has_no_versions() -> None:
    assert asked(MemoryConnector(), ConnectorTableVersion(1)) is None


def test_a_recreated_table_does_not_have_the_versions_of_the_old_one() -> None:
    made = store()
    insert(made, 1)
    statement = PageStatement(made, NAME)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.metadata.create_table(statement.session, statement.handle.metadata)
    statement.commit()
    assert made.versions(NAME) == (3,)


def test_a_version_that_a_statement_reads_stays_until_it_ends() -> None:
    made = store(keep=1)
    statement = PageStatement(made, NAME)
    statement.handle = statement.metadata.get_versioned_table_handle(
        statement.session, NAME, ConnectorTableVersion(1)
    )
    insert(made, 1, 2, 3)
    assert made.versions(NAME) == (3, 4)
    assert [row[0] for row in statement.rows()] == [0]
    statement.rollback()
