from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from rowmerge_nb import ConnectorError, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.iceberg.files import create, modified, open_file, remove
from rowmerge_nb.connectors.iceberg.servers import named_servers, with_servers
from rowmerge_nb.connectors.iceberg.trust import checked_files, guard
from rowmerge_nb.spi.alterations import SetProperties
from tests.connectors.iceberg.kit import (
    Statement,
    contents,
    delete,
    insert,
    make_table,
    rows,
    table,
)

CLASSES = ("py-io-impl", "write.py-location-provider.impl", "s3.retry-strategy-impl")


def rewrite(store: IcebergConnector, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the newest metadata file, like anyone with write access to a shared warehouse."""
    path = Path(table(store).metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def set_properties(store: IcebergConnector, **properties: str) -> None:
    rewrite(store, lambda metadata: metadata["properties"].update(properties))


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Offer a module for import, and return whether it has run."""
    folder = tmp_path / "modules"
    folder.mkdir()
    mark = tmp_path / "ran"
    (folder / "hostile_iceberg.py").write_text(
        f"open({str(mark)!r}, 'w').close()\nclass Any:\n    def __init__(self, *a): ...\n"
    )
    monkeypatch.syspath_prepend(folder)
    yield mark.exists
    sys.modules.pop("hostile_iceberg", None)


@pytest.fixture
def server() -> Iterator[tuple[int, Callable[[], bool]]]:
    """Listen on a port, and return whether a connection arrived."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.setblocking(False)

        def was_asked() -> bool:
            with suppress(BlockingIOError):
                listening.accept()[0].close()
                return True
            return False

        yield listening.getsockname()[1], was_asked


def opened(tmp_path: Path, kind: str) -> IcebergConnector:
    if kind == "warehouse":
        return IcebergConnector(tmp_path / "w")
    catalog = SqlCatalog(
        "rowmerge",
        uri=f"sqlite:///{tmp_path / 'w/catalog.sqlite'}",
        warehouse=f"file://{tmp_path}/w",
    )
    return IcebergConnector(catalog=catalog)


@pytest.mark.parametrize("kind", ["warehouse", "catalog"])
def test_no_class_that_a_table_names_is_imported_by_any_statement(
    tmp_path: Path, hostile: Callable[[], bool], kind: str
) -> None:
    make_table(tmp_path / "w").close()
    with closing(opened(tmp_path, kind)) as store:
        insert(store, rows(1, 2))
        set_properties(store, **dict.fromkeys(CLASSES, "hostile_iceberg.Any"))
        assert contents(store) == [(1, "a", "x"), (2, "a", "x")]
        insert(store, rows(3))
        delete(store, 1)
        statement = Statement(store)
        statement.metadata.alter_table(
            statement.session, statement.handle, SetProperties({"max_commit_retry": 3})
        )
        statement.commit()
        statement = Statement(store)
        statement.metadata.truncate_table(statement.session, statement.handle)
        statement.commit()
        assert contents(store) == []
        assert not hostile()
        properties = table(store).properties
        assert {properties[name] for name in CLASSES} == {"hostile_iceberg.Any"}, (
            "what others have set stays"
        )
        assert properties["commit.retry.num-retries"] == "3"


def test_the_classes_of_a_table_can_be_removed_and_set_without_being_imported(
    tmp_path: Path, hostile: Callable[[], bool]
) -> None:
    with closing(make_table(tmp_path / "w")) as store:
        insert(store, rows(1))
        for name in CLASSES:
            with table(store).transaction() as transaction:
                transaction.set_properties({name: "hostile_iceberg.Any"})
            assert table(store).properties[name] == "hostile_iceberg.Any"
            with table(store).transaction() as transaction:
                transaction.remove_properties(name)
            assert name not in table(store).properties
        assert not hostile()


def test_classes_of_the_catalog_s_configuration_are_used(tmp_path: Path) -> None:
    make_table(tmp_path / "w").close()
    provider = "pyiceberg.table.locations.ObjectStoreLocationProvider"
    with closing(
        IcebergConnector(tmp_path / "w", properties={"write.py-location-provider.impl": provider})
    ) as store:
        insert(store, rows(1))
        (path,) = [entry.path for entry in Statement(store).splits()]
        assert len(Path(path).relative_to(Path(path).parents[4]).parts) == 5, path
    with (
        closing(
            IcebergConnector(
                tmp_path / "w", properties={"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
            )
        ) as store,
    ):
        assert contents(store) == [(1, "a", "x")]
        assert type(table(store).io._files).__name__ == "FsspecFileIO"


SERVERS = (
    "s3://b",
    "s3a://b",
    "S3://b",
    "oss://b",
    "gs://b",
    "hf://datasets/b",
    "hdfs://{}",
    "viewfs://{}",
    "hdfs:/",
    "abfss://c@{}",
    "http://{}",
    "https://{}",
    "ftp://{}",
    "nix://[b",
    "file://{}",
)


@pytest.mark.parametrize("location", SERVERS)
def test_files_are_neither_read_nor_written_nor_removed_on_servers_missing_from_the_configuration(
    server: tuple[int, Callable[[], bool]], location: str
) -> None:
    port, was_asked = server
    place = f"{location.format(f'127.0.0.1:{port}')}/file"
    properties = with_servers({}, named_servers({"warehouse": "file:///w"}))
    checked = checked_files(properties, "/w/t")
    for use in (
        lambda: open_file(properties, place),
        lambda: create(properties, place),
        lambda: remove(properties, place),
        lambda: modified(properties, place),
        lambda: checked.new_input(place),
        lambda: checked.new_output(place),
        lambda: checked.delete(place),
    ):
        with pytest.raises(
            ConnectorError, match=r"PERMISSION_DENIED: File '.*' is not opened: the configuration"
        ):
            use()
    assert not was_asked()


@pytest.mark.parametrize("location", ["s3://b", "hdfs://{}", "http://{}"])
@pytest.mark.parametrize(
    "of", ["manifest-list", "write.data.path", "write.metadata.path", "location"]
)
def test_no_server_is_contacted_that_only_a_tables_metadata_names(
    tmp_path: Path, server: tuple[int, Callable[[], bool]], location: str, of: str
) -> None:
    port, was_asked = server
    place = f"{location.format(f'127.0.0.1:{port}')}/file"
    with closing(make_table(tmp_path / "w")) as store:
        insert(store, rows(1))
        metadata_location = table(store).metadata_location
        endpoints = {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "gcs.service.host": f"http://127.0.0.1:{port}",
        }
        set_properties(
            store,
            **endpoints,
            **{"s3.region": "x", "s3.anonymous": "true", "gcs.oauth2.token": "t"},
        )

        def change(metadata: dict[str, Any]) -> None:
            if of == "manifest-list":
                metadata["snapshots"][-1]["manifest-list"] = place
            elif of == "location":
                metadata["location"] = place
            else:
                metadata["properties"][of] = place

        rewrite(store, change)
        for write in (lambda: delete(store, 1), lambda: insert(store, rows(2))):
            with pytest.raises(
                ConnectorError,
                match=r"PERMISSION_DENIED: File '.*' is not opened: the configuration",
            ):
                write()
        assert table(store).metadata_location == metadata_location
        assert not was_asked()


def test_the_entry_of_a_warehouse_s_file_does_not_name_a_server_either(
    tmp_path: Path, server: tuple[int, Callable[[], bool]]
) -> None:
    import sqlite3

    port, was_asked = server
    with closing(make_table(tmp_path / "w")) as store:
        with closing(sqlite3.connect(tmp_path / "w" / "catalog.sqlite")) as connection:
            connection.execute(
                "UPDATE iceberg_tables SET metadata_location = ?",
                [f"hdfs://127.0.0.1:{port}/m.metadata.json"],
            )
            connection.commit()
        with pytest.raises(ConnectorError, match=r"PERMISSION_DENIED"):
            contents(store)
        with pytest.raises(ConnectorError, match=r"PERMISSION_DENIED"):
            store.register_table("default", "u", f"hdfs://127.0.0.1:{port}/m.metadata.json")
        assert not was_asked()


@pytest.mark.not_quick
def test_a_server_named_by_the_catalogs_configuration_is_contacted(
    tmp_path: Path, server: tuple[int, Callable[[], bool]]
) -> None:
    port, was_asked = server
    properties = {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.region": "x",
        "s3.anonymous": "true",
        "s3.connect-timeout": "0.1",
        "s3.request-timeout": "0.1",
    }
    make_table(tmp_path / "w").close()
    with closing(IcebergConnector(tmp_path / "w", properties=properties)) as store:
        set_properties(store, **{"s3.endpoint": "http://127.0.0.1:1"})
        io = Statement(store).handle.io
        assert io["s3.endpoint"] == properties["s3.endpoint"]
        with pytest.raises(OSError, match=r"AWS Error|curl"):
            open_file(io, "s3://bucket/file")
        assert was_asked()


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"]
)
@pytest.mark.parametrize("of", ["manifest-list", "data", "metadata"])
def test_a_pipe_or_a_device_in_place_of_a_file_is_an_error_and_not_a_wait(
    tmp_path: Path, make: Callable[[Path], None], of: str
) -> None:
    with closing(make_table(tmp_path / "w")) as store:
        insert(store, rows(1))
        loaded = table(store)
        pipe = tmp_path / "pipe"
        make(pipe)
        if of == "metadata":
            pipe, path = Path(loaded.metadata_location.removeprefix("file://")), pipe
            pipe.unlink()
            make(pipe)
        elif of == "data":
            path = Path(Statement(store).splits()[0].path.removeprefix("file://"))
            path.unlink()
            make(path)
        else:
            rewrite(
                store,
                lambda metadata: metadata["snapshots"][-1].update({"manifest-list": str(pipe)}),
            )
        with pytest.raises(
            ConnectorError, match=r"ICEBERG_BAD_DATA: File '.*' is a pipe or a device"
        ):
            contents(store)


def test_a_file_that_is_not_a_table_s_is_not_quoted(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("PAR1 password = hunter2\n" * 100)
    with closing(make_table(tmp_path / "w")) as store:
        insert(store, rows(1))
        path = Path(Statement(store).splits()[0].path.removeprefix("file://"))
        path.unlink()
        path.symlink_to(secret)
        with pytest.raises(ConnectorError) as caught:
            contents(store)
        assert "hunter" not in str(caught.value)
        rewrite(
            store, lambda metadata: metadata["snapshots"][-1].update({"manifest-list": str(secret)})
        )
        with pytest.raises(ConnectorError) as caught:
            contents(store)
        assert "hunter" not in str(caught.value)


def test_only_former_metadata_files_of_the_table_are_removed_after_a_commit(tmp_path: Path) -> None:
    with closing(make_table(tmp_path / "w")) as store:
        insert(store, rows(1))
        insert(store, rows(2))
        kept = [tmp_path / "diary.txt", tmp_path / "w" / "00000-other.metadata.json"]
        for path in kept:
            path.write_text("kept")
        own = sorted(
            Path(table(store).metadata_location.removeprefix("file://")).parent.glob(
                "*.metadata.json"
            )
        )

        def change(metadata: dict[str, Any]) -> None:
            metadata["properties"].update(
                {
                    "write.metadata.delete-after-commit.enabled": "true",
                    "write.metadata.previous-versions-max": "1",
                }
            )
            entries = [{"metadata-file": str(path), "timestamp-ms": 1} for path in kept]
            metadata["metadata-log"] = [*entries, *metadata["metadata-log"]]

        rewrite(store, change)
        insert(store, rows(3))
        assert all(path.read_text() == "kept" for path in kept)
        assert not own[0].exists(), "its own former files go"
        assert len(contents(store)) == 3


class _Rest(BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, Any]] = {}

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = json.dumps(self.answers.get(path, {})).encode()
        self.send_response(200 if path in self.answers else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def test_the_catalog_of_a_rest_table_overrides_its_properties(
    tmp_path: Path, hostile: Callable[[], bool]
) -> None:
    with closing(make_table(tmp_path / "w")) as store:
        insert(store, rows(1))
        location = table(store).metadata_location
        metadata = json.loads(Path(location.removeprefix("file://")).read_text())
    metadata["properties"].update(
        {
            **dict.fromkeys(CLASSES, "hostile_iceberg.Any"),
            "s3.endpoint": "http://evil",
            "gcs.service.host": "http://evil",
        }
    )
    answer = {
        "metadata-location": location,
        "metadata": metadata,
        "config": {"s3.endpoint": "http://right"},
    }
    _Rest.answers = {
        "/v1/config": {"defaults": {}, "overrides": {}},
        "/v1/namespaces/default/tables/t": answer,
    }
    with HTTPServer(("127.0.0.1", 0), _Rest) as service:
        thread = threading.Thread(target=service.serve_forever, daemon=True)
        thread.start()
        try:
            properties = {"type": "rest", "uri": f"http://127.0.0.1:{service.server_port}"}
            with closing(IcebergConnector(catalog="r", properties=properties)) as store:
                assert contents(store) == [(1, "a", "x")]
                io = Statement(store).handle.io
                assert io["s3.endpoint"] == "http://right"
                assert "gcs.service.host" not in io
                assert table(store).properties["s3.endpoint"] == "http://evil", (
                    "they are shown as they are"
                )
        finally:
            service.shutdown()
            thread.join()
    assert not hostile()


@pytest.mark.parametrize("properties", [5, "s3.endpoint", [("s3.endpoint", "x")], {1: "x"}])
def test_properties_that_do_not_map_names_are_refused(tmp_path: Path, properties: Any) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS: properties"):
        IcebergConnector(tmp_path, properties=properties)


@pytest.mark.parametrize("catalog", [5, object(), SqlCatalog])
def test_an_object_that_is_not_a_catalog_is_refused(catalog: Any) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS: catalog"):
        IcebergConnector(catalog=catalog)


def test_the_configuration_of_a_warehouse_does_not_move_it(tmp_path: Path) -> None:
    with closing(
        IcebergConnector(
            tmp_path / "w", properties={"warehouse": "s3://b", "uri": "sqlite:///elsewhere"}
        )
    ) as store:
        assert store.catalog.properties["warehouse"] == f"file://{tmp_path}/w"
        assert (tmp_path / "w" / "catalog.sqlite").exists()


def test_a_catalog_object_is_guarded_once_and_stays_what_it_is(tmp_path: Path) -> None:
    catalog = SqlCatalog("m", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    assert guard(catalog) is catalog
    guarded = type(catalog)
    assert guard(catalog) is catalog
    assert type(catalog) is guarded
    assert isinstance(catalog, SqlCatalog)
    assert guarded.__name__ == "SqlCatalog"
    catalog.close()


@pytest.mark.parametrize(
    ("properties", "servers"),
    [
        ({}, set()),
        ({"warehouse": "/w"}, set()),
        ({"warehouse": "a_name"}, set()),
        ({"warehouse": "s3a://lake/w"}, {"s3"}),
        ({"client.region": "eu-central-1"}, {"s3"}),
        ({"gcs.project-id": "p"}, {"gs"}),
        (
            {"hdfs.host": "Name", "hdfs.port": "8020"},
            {"hdfs://name", "hdfs://name:8020", "hdfs://"},
        ),
        (
            {"adls.account-name": "a"},
            {"abfs://a.dfs.core.windows.net", "abfs://a.blob.core.windows.net"},
        ),
        ({"adls.account-host": "a.local"}, {"abfs://a.local"}),
        (
            {"warehouse": "abfss://c@b.dfs.core.windows.net/w", "uri": "http://c"},
            {"abfs://b.dfs.core.windows.net"},
        ),
    ],
)
def test_a_catalog_s_configuration_names_servers(
    properties: dict[str, str], servers: set[str]
) -> None:
    assert named_servers(properties) == servers
    assert set(with_servers({}, servers)["rowmerge-nb.servers"].split()) == servers
