"""Tables of format version 3: deletion vectors, row lineage, defaults, and other readers."""

from __future__ import annotations

import errno
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb import AnalysisError, ConnectorError, Engine, IcebergConnector
from rowmerge_nb.connectors.iceberg import writer
from rowmerge_nb.connectors.iceberg.deletion_vectors import puffin_of, vector_positions
from rowmerge_nb.connectors.iceberg.iceberg_handles import LINEAGE, IcebergColumn
from rowmerge_nb.connectors.iceberg.planning import content_of
from rowmerge_nb.connectors.iceberg.version_three import first_row_id_of, referenced_file
from rowmerge_nb.connectors.shared.retention import Retention
from rowmerge_nb.spi import (
    AddColumn,
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    Constraint,
    DropDefault,
    SetDefault,
    SetProperties,
    parse_type,
)
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    add_deletes,
    by_pyiceberg,
    contents,
    delete,
    files,
    insert,
    make_table,
    rows,
    table,
)

INSERT, DELETE, UPDATE_INSERT, UPDATE_DELETE = 1, 2, 4, 5


def alter(store: IcebergConnector, alteration: Any) -> None:
    statement = Statement(store)
    statement.metadata.alter_table(statement.session, statement.handle, alteration)
    statement.commit()


def upgrade(store: IcebergConnector) -> None:
    alter(store, SetProperties({"format_version": 3}))


def content(store: IcebergConnector) -> Any:
    loaded = table(store)
    return content_of(loaded, loaded.metadata.current_snapshot_id)


def vectors(store: IcebergConnector) -> dict[str, int]:
    """Return the number of deleted rows by data file."""
    entries = [entry.data_file for entry in content(store).deletes]
    found = {str(referenced_file(file)): file.record_count for file in entries}
    assert len(found) == len(entries), "a data file has one vector"
    return found


def lineage(store: IcebergConnector) -> dict[int, tuple[int | None, int | None]]:
    """Return the row id and the last sequence number of every row by its first column."""
    statement = Statement(store)
    first = statement.metadata.get_column_handles(statement.session, statement.handle)[0]
    columns = [first, *(IcebergColumn(field.name, field.type, field) for field in LINEAGE)]
    provider, found = store.get_page_source_provider(), {}
    for split in statement.splits():
        source = provider.create_page_source(
            statement.transaction, statement.session, split, statement.handle, columns
        )
        for page in iter(source.get_next_page, None):
            found.update(
                {key: (a, b) for key, a, b in zip(*page.to_pydict().values(), strict=True)}
            )
    statement.rollback()
    return found


def ids(store: IcebergConnector) -> list[int]:
    own = contents(store)
    assert own == by_pyiceberg(store)
    return sorted(row[0] for row in own)


@pytest.fixture
def store(tmp_path: Path) -> IcebergConnector:
    """Create a table with three files in two partitions."""
    store = make_table(tmp_path, partitioning=("p",), format_version=3)
    insert(store, rows(1, 2, 3))
    insert(store, rows(4, 5, 6, p="y"))
    insert(store, rows(7, 8, 9))
    return store


def test_pyiceberg_reads_the_vectors_of_a_puffin_file() -> None:
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    positions = {
        "file:///a": np.array([0, 7, 70_000, 2**33 + 5]),
        "file:///b": np.arange(200_000),
        "file:///c": np.arange(1, 100_000, 3),
    }
    written, ranges = puffin_of(positions)
    file = PuffinFile(written)
    read = {
        vector.referenced_data_file: vector.to_vector().to_pylist()
        for vector in deletion_vectors_from_puffin_file(file)
    }
    assert read == {path: rows.tolist() for path, rows in positions.items()}
    assert [blob.properties["cardinality"] for blob in file.footer.blobs] == [
        "4",
        "200000",
        "33333",
    ]
    assert [(blob.offset, blob.length) for blob in file.footer.blobs] == list(ranges.values())
    for path, rows_ in positions.items():
        assert vector_positions(written, path, "f").tolist() == rows_.tolist()


def test_a_vector_with_a_wrong_checksum_is_refused() -> None:
    written, ranges = puffin_of({"file:///a": np.array([3])})
    offset, size = ranges["file:///a"]
    damaged = bytearray(written)
    damaged[offset + size - 6] ^= 1
    with pytest.raises(ConnectorError, match=r"ICEBERG_BAD_DATA: .* checksum does not match"):
        vector_positions(bytes(damaged), "file:///a", "f")


def test_a_data_file_has_one_vector_which_is_replaced(store: IcebergConnector) -> None:
    delete(store, 1, 4, 7)
    assert ids(store) == [2, 3, 5, 6, 8, 9]
    (puffin,) = {file for file in files(store) if file.suffix == ".puffin"}
    assert sorted(vectors(store).values()) == [1, 1, 1]
    delete(store, 2)
    assert ids(store) == [3, 5, 6, 8, 9]
    assert sorted(vectors(store).values()) == [1, 1, 2]
    summary = table(store).current_snapshot().summary.additional_properties
    assert (summary["added-dvs"], summary["removed-dvs"]) == ("1", "1")
    assert "added-position-delete-files" not in summary
    assert puffin in files(store), "two of its vectors are still in use"


def test_vectors_of_several_writers_are_joined(store: IcebergConnector) -> None:
    statement = Statement(store)
    statement.begin_merge()
    known = statement.ids()
    nothing = [None] * 3
    statement.stage(
        [(DELETE, known[1], *nothing), (DELETE, known[5], *nothing)],
        [(DELETE, known[3], *nothing), (DELETE, known[4], *nothing)],
    )
    statement.finish()
    statement.commit()
    assert ids(store) == [2, 6, 7, 8, 9]
    assert sorted(vectors(store).values()) == [2, 2]


def test_position_deletes_of_version_2_are_joined_with_the_first_vector(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2, 3, 4, 5))
    insert(store, rows(6, 7, 8, 9))
    delete(store, 1, 6)
    paths = [entry.data_file.file_path for entry in content(store).data]
    by_id = {path: row for path in paths for row in [pa.table({"file_path": [path], "pos": [1]})]}
    both = pa.concat_tables(by_id.values())
    add_deletes(store, tmp_path / "whole.parquet", both, "POSITION_DELETES")
    before = ids(store)
    assert before == [3, 4, 5, 8, 9]
    upgrade(store)
    delete(store, 3)
    assert ids(store) == [4, 5, 8, 9]
    kinds = sorted(entry.data_file.file_format.value for entry in content(store).deletes)
    assert kinds == ["PARQUET", "PARQUET", "PUFFIN"], (
        "the file about the other data file and that about both remain"
    )
    (count,) = (
        file.record_count
        for file in (e.data_file for e in content(store).deletes)
        if file.file_format.value == "PUFFIN"
    )
    assert count == 3
    delete(store, 4, 8)
    assert ids(store) == [5, 9]


def test_equality_deletes_coexist_with_vectors(tmp_path: Path) -> None:
    store = make_table(tmp_path, format_version=3)
    insert(store, rows(1, 2, 3, 4))
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    add_deletes(
        store, tmp_path / "e.parquet", pa.table({"id": [2]}, schema), "EQUALITY_DELETES", [1]
    )
    delete(store, 3)
    assert [row[0] for row in contents(store)] == [1, 4]
    assert sorted(entry.data_file.content.name for entry in content(store).deletes) == [
        "EQUALITY_DELETES",
        "POSITION_DELETES",
    ]


def test_two_deletes_of_one_data_file_conflict_and_others_do_not(store: IcebergConnector) -> None:
    first, second = Statement(store), Statement(store)
    third = Statement(store)
    for statement, key in ((first, 1), (second, 2), (third, 8)):
        statement.handle = replace(
            statement.handle, properties={"write.merge.isolation-level": "snapshot"}
        )
        statement.begin_merge()
        statement.stage([(DELETE, statement.ids()[key], None, None, None)])
        statement.finish()
    first.commit()
    with pytest.raises(ConnectorError, match=r"TRANSACTION_CONFLICT.*deleted rows of data file"):
        second.commit()
    second.rollback()
    third.commit()
    assert ids(store) == [2, 3, 4, 5, 6, 7, 9]
    delete(store, 2, 7)
    assert ids(store) == [3, 4, 5, 6, 9]


def test_an_upgrade_conflicts_with_a_running_delete(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    statement = Statement(store)
    statement.begin_merge()
    statement.stage([(DELETE, statement.ids()[1], None, None, None)])
    statement.finish()
    upgrade(store)
    with pytest.raises(ConnectorError, match=r"TRANSACTION_CONFLICT.*upgraded to another format"):
        statement.commit()
    statement.rollback()
    insert(store, rows(3))
    delete(store, 1)
    assert ids(store) == [2, 3]


def test_files_get_row_ids_that_all_later_commits_keep(store: IcebergConnector) -> None:
    expected = {key: (key - 1, 2 + (key - 1) // 3) for key in range(1, 10)}
    assert lineage(store) == expected
    delete(store, 5)
    del expected[5]
    statement = Statement(store)
    execute = statement.metadata.get_table_handle_for_execute(
        statement.session, statement.handle, "OPTIMIZE_MANIFESTS", {}, Constraint()
    )
    statement.metadata.execute_table_execute(statement.session, execute)
    statement.commit()
    assert lineage(store) == expected
    insert(store, rows(10))
    assert lineage(store).pop(10)[0] >= 9
    assert {key: value for key, value in lineage(store).items() if key < 10} == expected
    metadata: Any = table(store).metadata
    assert metadata.next_row_id == sum(one.added_rows for one in metadata.snapshots)
    firsts: list[tuple[Any, Any]] = [
        (one.first_row_id, one.added_rows) for one in metadata.snapshots
    ]
    assert all(a + n <= b for (a, n), (b, _) in pairwise(firsts))


def test_an_upgraded_table_gets_row_ids_with_its_next_commit(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2, 3))
    insert(store, rows(4, 5))
    upgrade(store)
    assert table(store).metadata.next_row_id == 0
    assert set(lineage(store).values()) == {(None, None)}
    insert(store, rows(6))
    numbers: list[Any] = [number for number, _ in lineage(store).values()]
    assert sorted(numbers) == list(range(6))
    assert table(store).metadata.next_row_id == 6
    before = lineage(store)
    delete(store, 4)
    del before[4]
    assert lineage(store) == before


def test_copies_keep_their_lineage_but_have_no_vectors(tmp_path: Path) -> None:
    properties = {"write.merge.mode": "copy-on-write"}
    store = make_table(tmp_path, format_version=3)
    insert(store, rows(1, 2, 3))
    insert(store, rows(4, 5))
    delete(store, 2)
    alter(store, SetProperties({"extra_properties": properties}))
    before = lineage(store)
    delete(store, 1)
    assert ids(store) == [3, 4, 5]
    assert lineage(store) == {key: before[key] for key in (3, 4, 5)}
    assert content(store).deletes == []
    delete(store, 5)
    assert lineage(store) == {key: before[key] for key in (3, 4)}
    assert len({first_row_id_of(entry.data_file) for entry in content(store).data}) == 2


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_changed_row_keeps_its_row_id_and_gets_the_number_of_its_commit(
    store: IcebergConnector, mode: str
) -> None:
    alter(store, SetProperties({"extra_properties": {"write.merge.mode": mode}}))
    delete(store, 9)
    before = lineage(store)
    del before[1], before[4]
    # The second time, row 2 is in a file with the column of row ids.
    for number, gone in ((10, 1), (11, 4)):
        statement = Statement(store)
        statement.begin_merge()
        row_ids = statement.ids()
        changes = [(UPDATE_DELETE, row_ids[key], None, None, None) for key in (2, 5)]
        changes += [(UPDATE_INSERT, row_ids[key], key, f"v{number}", "z") for key in (5, 2)]
        changes += [(DELETE, row_ids[gone], None, None, None)]
        statement.stage([*changes, (INSERT, None, number, "n", "x")])
        statement.finish()
        statement.commit()
        last = table(store).metadata.last_sequence_number
        before |= {key: (before[key][0], last) for key in (2, 5)}
        found = lineage(store)
        assert found[number][1] == last
        assert before.items() <= found.items()
        before[number] = found[number]
    assert ids(store) == [2, 3, 5, 6, 7, 8, 10, 11]
    assert len({row_id for row_id, _ in lineage(store).values()}) == 8
    # As in Trino, files with row ids count them; bounds would be wrong for rows with inherited ids.
    number = LINEAGE[0].id
    counts = [entry.data_file for entry in content(store).data]
    with_ids = [file for file in counts if file.value_counts.get(number)]
    assert with_ids
    for file in with_ids:
        assert (number in file.lower_bounds) is (file.null_value_counts[number] == 0)


def test_an_update_before_the_first_row_ids_gets_a_new_one(tmp_path: Path) -> None:
    store = make_table(tmp_path, format_version=2)
    insert(store, rows(1, 2))
    upgrade(store)
    statement = Statement(store)
    statement.begin_merge()
    row_id = statement.ids()[2]
    assert row_id["source_row_id"] is None
    statement.stage([(UPDATE_DELETE, row_id, None, None, None), (UPDATE_INSERT, row_id, 2, "b", "x")])  # fmt: skip
    statement.finish()
    statement.commit()
    numbers: list[Any] = [number for number, _ in lineage(store).values()]
    assert len(set(numbers)) == 2
    assert None not in numbers


def test_a_table_with_a_column_of_a_reserved_name_is_written_without_lineage(
    tmp_path: Path,
) -> None:
    columns = [("id", "bigint"), ("_row_id", "bigint")]
    copy = {"write.merge.mode": "copy-on-write"}
    store = make_table(tmp_path, columns, format_version=3, extra_properties=copy)
    insert(store, {"id": [1, 2], "_row_id": [7, 8]})
    statement = Statement(store)
    statement.begin_merge()
    statement.stage([(DELETE, statement.ids()[1], None, None)])
    statement.finish()
    statement.commit()
    assert contents(store) == [(2, 8)]


def test_vectors_in_use_are_not_orphans_and_others_expire(store: IcebergConnector) -> None:
    delete(store, 1, 4)
    delete(store, 2)
    assert store.orphans(timedelta(0)) == []
    now = Retention(0, "d")
    store._upkeep = replace(store._upkeep, least=now)
    statement = Statement(store)
    execute = statement.metadata.get_table_handle_for_execute(
        statement.session, statement.handle, "EXPIRE_SNAPSHOTS", {"retention_threshold": now}, Constraint(),
    )  # fmt: skip
    statement.metadata.execute_table_execute(statement.session, execute)
    statement.commit()
    assert len(table(store).metadata.snapshots) == 1
    assert len([file for file in files(store) if file.suffix == ".puffin"]) == 2
    delete(store, 5, 3, 9)
    assert ids(store) == [6, 7, 8]
    assert sorted(vectors(store).values()) == [1, 2, 3]


def test_defaults_are_of_version_3(tmp_path: Path) -> None:
    columns = (ColumnMetadata("id", parse_type("bigint")), ColumnMetadata("n", parse_type("integer"), default="7"))  # fmt: skip
    store = IcebergConnector(tmp_path)
    for version in (2, 3):
        transaction = store.begin_transaction()
        made = ConnectorTableMetadata(NAME, columns, {"format_version": version})
        if version == 2:
            with pytest.raises(
                AnalysisError, match="not supported for Iceberg table format version < 3"
            ):
                store.get_metadata(transaction).create_table(ConnectorSession("c"), made)
            store.rollback(transaction)
            continue
        store.get_metadata(transaction).create_table(ConnectorSession("c"), made)
        store.commit(transaction)
    insert(store, {"id": [1], "n": [None]})
    day = ColumnMetadata("d", parse_type("date"), default="DATE '2024-02-29'")
    alter(store, AddColumn(day))
    alter(store, SetDefault("d", "DATE '2025-01-01'"))
    alter(store, DropDefault("n"))
    statement = Statement(store)
    described = statement.metadata.get_table_metadata(statement.session, statement.handle)
    statement.rollback()
    assert [column.default for column in described.columns] == [None, None, "DATE '2025-01-01'"]
    assert [str(value) for value in contents(store)[0]] == ["1", "None", "2024-02-29"]


def test_a_vector_is_removed_with_a_statement_that_is_rolled_back(store: IcebergConnector) -> None:
    before = files(store)
    statement = Statement(store)
    statement.begin_merge()
    statement.stage([(DELETE, statement.ids()[1], None, None, None)])
    statement.finish()
    assert len(files(store) - before) == 1
    statement.rollback()
    assert files(store) == before


def test_a_full_disk_under_vectors_leaves_only_the_table(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own = files(store), contents(store)
    statement = Statement(store)
    statement.begin_merge()
    statement.stage([(DELETE, statement.ids()[1], None, None, None)])

    def full(_: Any, location: str) -> Any:
        stream = create(_, location)
        stream.write(b"PFA1")
        stream.close()
        raise OSError(errno.ENOSPC, "No space left on device")

    create = writer.create
    with monkeypatch.context() as patched:
        patched.setattr(writer, "create", full)
        with pytest.raises(ConnectorError, match=r"GENERIC_INSUFFICIENT_RESOURCES: .*puffin"):
            statement.finish()
    statement.rollback()
    assert (files(store), contents(store)) == (before, own)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("era", ["documents", "current"])
def test_compaction_keeps_lineage_and_ends_vectors(
    spark: Any, store: IcebergConnector, era: str
) -> None:
    engine = Engine(spark=spark)
    engine.add_catalog("lake", store)
    engine.run("DELETE FROM lake.default.t WHERE id IN (2, 8)")
    before = lineage(store)
    engine.run("ALTER TABLE lake.default.t EXECUTE optimize")
    assert ids(store) == [1, 3, 4, 5, 6, 7, 9]
    assert lineage(store) == before
    assert content(store).deletes == []
    engine.run(
        "MERGE INTO lake.default.t t USING (VALUES (1, 'x'), (3, 'y'), (11, 'z')) s (id, v) ON t.id = s.id"
        " WHEN MATCHED AND s.v = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v"
        " WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, s.v, 'y')",
        era=era,
    )
    assert ids(store) == [3, 4, 5, 6, 7, 9, 11]
    unchanged = {key: before[key] for key in (4, 5, 6, 7, 9)}
    assert unchanged.items() <= lineage(store).items()
    last = table(store).metadata.last_sequence_number
    assert lineage(store)[3] == (before[3][0], last)
    engine.run("UPDATE lake.default.t SET v = 'w', p = 'z' WHERE id < 6", era=era)
    now = {key: (before[key][0], last + 1) for key in (3, 4, 5)}
    assert now.items() <= lineage(store).items()
    engine.undo("lake.default.t")
    engine.undo("lake.default.t")
    assert lineage(store) == before


@pytest.mark.spark
@pytest.mark.slow
def test_statements_may_name_the_columns_of_lineage(spark: Any, store: IcebergConnector) -> None:
    engine = Engine(spark=spark)
    engine.add_catalog("lake", store)
    query = 'SELECT id, "$row_id", "$last_updated_sequence_number" FROM lake.default.t'
    for condition, expected in (("", range(1, 10)), (' WHERE "$row_id" > 6', (8, 9))):
        found = engine.run(query + condition).table
        assert found is not None
        own = lineage(store)
        assert sorted(tuple(row.values()) for row in found.to_pylist()) == [
            (key, *own[key]) for key in expected
        ]
    engine.run('DELETE FROM lake.default.t WHERE "$row_id" = 1')
    engine.run(
        "MERGE INTO lake.default.t t USING (VALUES (3, 'b'), (7, 'c')) s (n, v) ON t.\"$row_id\" = s.n"
        ' WHEN MATCHED AND t."$row_id" = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v'
    )
    assert [row[:2] for row in contents(store)] == [
        (key, "c" if key == 8 else "a") for key in (1, 3, 5, 6, 7, 8, 9)
    ]
    assert contents(store) == by_pyiceberg(store)


@pytest.mark.spark
@pytest.mark.slow
def test_inserts_and_merges_fill_defaults(spark: Any, tmp_path: Path) -> None:
    store = IcebergConnector(tmp_path)
    engine = Engine(spark=spark, dialect="extended")
    engine.add_catalog("lake", store)
    engine.run("CREATE TABLE lake.default.t (id bigint, n decimal(5,2) DEFAULT 1.5) WITH (format_version = 3)")  # fmt: skip
    engine.run("INSERT INTO lake.default.t (id) VALUES 1")
    engine.run("ALTER TABLE lake.default.t ADD COLUMN d date DEFAULT DATE '2024-02-29'")
    engine.run(
        "MERGE INTO lake.default.t t USING (VALUES 1, 2) s (id) ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert [tuple(map(str, row)) for row in contents(store)] == [
        ("1", "1.50", "2024-02-29"),
        ("2", "1.50", "2024-02-29"),
    ]
    assert contents(store) == by_pyiceberg(store)
