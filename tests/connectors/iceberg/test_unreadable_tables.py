"""An unreadable table does not prevent the cleaning of others, and no file that it names is removed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
from rowmerge_nb.connectors.shared.retention import Retention
from rowmerge_nb.engine.catalog.leftovers import orphans_of
from rowmerge_nb.spi import Constraint, SchemaTableName
from tests.connectors.iceberg.kit import (
    NAME,
    Statement,
    by_pyiceberg,
    create,
    insert,
    make_table,
    rows,
    table,
)

BAD = SchemaTableName("default", "bad")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IcebergConnector]:
    make_table(tmp_path / "w").close()
    store = IcebergConnector(tmp_path / "w", min_retention=timedelta())
    create(store, name=BAD)
    for name in (NAME, BAD):
        insert(store, rows(1), name)
    yield store
    store.close()


def folder_of(store: IcebergConnector, name: SchemaTableName = NAME) -> Path:
    return Path(table(store, name).location().removeprefix("file://"))


def old_file(folder: Path) -> Path:
    path = folder / "data" / "left.parquet"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("x")
    os.utime(path, (0, 0))
    return path


def rewrite(store: IcebergConnector, change: Callable[[dict[str, Any]], object]) -> None:
    path = Path(table(store, BAD).metadata_location.removeprefix("file://"))
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def end_metadata_early(store: IcebergConnector) -> None:
    path = Path(table(store, BAD).metadata_location.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:100])


def name_a_manifest_list(location: str) -> Callable[[IcebergConnector], None]:
    return lambda store: rewrite(
        store, lambda content: content["snapshots"][0].update({"manifest-list": location})
    )


def name_a_folder(location: str) -> Callable[[IcebergConnector], None]:
    return lambda store: rewrite(
        store, lambda content: content["properties"].update({"write.data.path": location})
    )


def damage_manifests(store: IcebergConnector) -> None:
    for path in (folder_of(store, BAD) / "metadata").glob("*-m0.avro"):
        path.write_bytes(b"Obj")


def deny_metadata(store: IcebergConnector) -> None:
    path = Path(table(store, BAD).metadata_location.removeprefix("file://"))
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[IcebergConnector], object]] = {
    "no metadata": lambda store: Path(
        table(store, BAD).metadata_location.removeprefix("file://")
    ).unlink(),
    "a folder for metadata": deny_metadata,
    "half of the metadata": end_metadata_early,
    "no list of manifests": lambda store: Path(
        table(store, BAD).current_snapshot().manifest_list.removeprefix("file://")
    ).unlink(),
    "no manifest": damage_manifests,
    "another server's manifests": name_a_manifest_list("s3://evil/list.avro"),
    "a device for manifests": name_a_manifest_list("/dev/zero"),
    "another server's folder": name_a_folder("s3://evil/data"),
    "an unknown scheme": name_a_folder("nowhere://data"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_unreadable_table_does_not_prevent_the_cleaning_of_others(
    store: IcebergConnector, damage: str
) -> None:
    good, bad = old_file(folder_of(store)), old_file(folder_of(store, BAD))
    unmade = old_file(folder_of(store).parent / f"n-{'0' * 32}")
    for path in (unmade.parent, unmade.parents[1]):
        os.utime(path, (0, 0))
    kept = {path for path in folder_of(store, BAD).rglob("*") if path.is_file()}
    DAMAGES[damage](store)
    assert [orphan.name for orphan in store.orphans()] == [f"file://{good}"]
    [problem] = store.orphan_problems()
    assert problem.startswith("Table 'default.bad' and its files were skipped: ")
    [found] = orphans_of({"lake": store}, remove=True)
    assert [orphan.name for orphan in found.orphans] == [f"file://{good}"]
    assert problem in found.problem
    assert not good.exists()
    assert bad.exists()
    assert unmade.exists()
    assert len([path for path in kept if not path.exists()]) <= 1, "only what was removed above"
    assert by_pyiceberg(store) == [(1, "a", "x")]
    # Without that table, everything is cleaned again.
    store.catalog.drop_table(("default", "bad"))
    shutil.rmtree(bad.parents[1])
    assert [orphan.name for orphan in store.remove_orphans(timedelta())] == [str(unmade.parents[1])]
    assert store.orphan_problems() == []


def execute(store: IcebergConnector, procedure: str, name: SchemaTableName = NAME) -> Any:
    statement = Statement(store, name)
    arguments = {"retention_threshold": Retention(0, "s")}
    handle = statement.metadata.get_table_handle_for_execute(
        statement.session, statement.handle, procedure, arguments, Constraint()
    )
    outcome = statement.metadata.execute_table_execute(statement.session, handle)
    statement.commit()
    return outcome


@pytest.mark.parametrize(
    "damage", ["half of the metadata", "no manifest", "another server's manifests"]
)
def test_procedures_of_other_tables_report_skipped_tables(
    store: IcebergConnector, damage: str
) -> None:
    good = old_file(folder_of(store))
    DAMAGES[damage](store)
    outcome = execute(store, "REMOVE_ORPHAN_FILES")
    assert any(
        notice.startswith("Table 'default.bad' and its files were skipped: ")
        for notice in outcome.notices
    )
    assert not good.exists()
    statement = Statement(store)
    statement.metadata.truncate_table(statement.session, statement.handle)
    statement.commit()
    outcome = execute(store, "EXPIRE_SNAPSHOTS")
    assert outcome.metrics["deleted_files_count"] == 0
    assert outcome.metrics["left_files_count"] >= 3
    assert any(
        "left (another table cannot be read, and may need them)" in notice
        for notice in outcome.notices
    )


def test_orphans_of_a_table_that_cannot_be_read_itself_are_not_removed(
    store: IcebergConnector,
) -> None:
    bad = old_file(folder_of(store, BAD))
    damage_manifests(store)
    with pytest.raises(ConnectorError, match="ICEBERG_INVALID_METADATA"):
        execute(store, "REMOVE_ORPHAN_FILES", BAD)
    assert bad.exists()


def test_files_of_an_unreadable_table_stay_in_the_folder_of_another_one(
    store: IcebergConnector, tmp_path: Path
) -> None:
    inner = old_file(folder_of(store) / "data" / "inner")
    named = old_file(folder_of(store))
    os.utime(inner, (0, 0))
    location = tmp_path / "w" / "default" / folder_of(store).name / "data" / "inner"
    rewrite(
        store,
        lambda content: content["properties"].update({"write.data.path": f"file://{location}"}),
    )
    damage_manifests(store)
    assert [orphan.name for orphan in store.remove_orphans()] == [f"file://{named}"]
    assert inner.exists()


@pytest.mark.parametrize("below", ["", "/data", "/.."])
def test_an_unreadable_table_does_not_claim_the_folder_of_another_one(
    store: IcebergConnector, below: str
) -> None:
    good = old_file(folder_of(store))
    location = f"file://{folder_of(store)}{below}"
    rewrite(store, lambda content: content["properties"].update({"write.data.path": location}))
    damage_manifests(store)
    assert [orphan.name for orphan in store.remove_orphans()] == [f"file://{good}"]


def test_a_table_dropped_meanwhile_is_not_reported_as_skipped(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, folder = old_file(folder_of(store)), folder_of(store, BAD)
    whole: Any = EmbeddedCatalog.load_table

    def meanwhile(catalog: EmbeddedCatalog, identifier: tuple[str, str]) -> Any:
        if identifier == ("default", "bad") and folder.exists():
            catalog.drop_table(identifier)
            shutil.rmtree(folder)
            raise FileNotFoundError
        return whole(catalog, identifier)

    monkeypatch.setattr(EmbeddedCatalog, "load_table", meanwhile)
    assert [orphan.name for orphan in store.remove_orphans()] == [f"file://{good}"]
    assert store.orphan_problems() == []
