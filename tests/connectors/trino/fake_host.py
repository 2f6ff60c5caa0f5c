"""A host process without Java that uses the wire of a plugin and keeps tables in memory.

Started as the real one: ``python -m tests.connectors.trino.fake_host --socket PATH --settings PATH``.
Settings may have ``"fail": {"call": "finish_merge", "error": {...}}`` or ``"exit": "finish_merge"``
among the catalog's properties, as JSON text. The first call named by ``"slow"`` takes a minute.
``"hang": "finish_merge"`` never answers this call.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.connectors.trino.host_channel import (
    ChannelClosedError,
    HostChannel,
    pack_batch,
    pack_fragments,
    unpack_batch,
    unpack_fragments,
)
from rowmerge_nb.spi.types import parse_type

SPI = "io.trino.spi.connector."
_ROW_ID = "row(version bigint, position bigint)"
_SPLIT_ROWS = 4
FEATURES = {
    "has_validity_bitmaps": True,
    "has_credentials": True,
    "has_filter_snapshots": True,
    "has_memory_contexts": True,
    "has_column_positions": True,
    "object_value_takes_session": False,
}
"""The features of the SPI of Trino 483."""


class FakeError(Exception):
    """An exception of the fake plugin, as on the wire."""

    def __init__(self, message: str, code: str, **rest: Any) -> None:
        super().__init__(message)
        self.answer = {
            "class": "io.trino.spi.TrinoException",
            "message": message,
            "code": code,
            "frames": ["shop.ShopMetadata.call(ShopMetadata.java:12)"],
            "causes": [],
            **rest,
        }


def handle(interface: str, class_name: str, **content: Any) -> dict[str, Any]:
    """Return a handle of the wire."""
    return {
        "interface": SPI + interface,
        "class": f"shop.{class_name}",
        "json": json.dumps(content),
        "number": None,
    }


def content_of(value: dict[str, Any]) -> Any:
    """Return the content of a handle's JSON."""
    return json.loads(value["json"])


def column_type(name: str) -> str:
    """Return the type of a column as in Hive's handles."""
    return "PARTITION_KEY" if name.startswith("part_") else "REGULAR"


class Shop:
    """All tables of the process, committed at once by the finish calls."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.schemas = {"default"}
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self.transactions: dict[int, dict[str, Any]] = {}
        self.numbers = itertools.count(1)
        self.versions: dict[int, pa.Table] = {}
        self.lock = threading.RLock()
        self.fail = json.loads(properties.get("fail", "{}"))
        self.exit = properties.get("exit")
        self.slow = properties.get("slow")
        self.hang = properties.get("hang")
        self.log = properties.get("log")
        self.lost = json.loads(properties.get("lost", "[]"))

    def answer(
        self, call: str, arguments: dict[str, Any], payload: memoryview, own: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Answer one call; ``own`` is the state of the connection."""
        if call == self.hang:
            threading.Event().wait()
        if self.log:
            with Path(self.log).open("a", encoding="utf-8") as log:
                log.write(f"{call}\n")
        if self.slow == call:
            # Once: the next statement must work.
            self.slow = None
            time.sleep(60)
        if self.exit == call:
            sys.stderr.write("shop: out of coffee\n")
            sys.stderr.flush()
            os._exit(7)
        if self.fail.get("call") == call:
            raise FakeError(**self.fail["error"])
        method = getattr(self, f"call_{call}", None)
        if method is None:
            raise FakeError(f"This connector does not support {call}", "NOT_SUPPORTED")
        with self.lock:
            result = method(arguments, payload, own)
        return result if isinstance(result, tuple) else (result, b"")

    # -- the coordinator's calls

    def call_begin_transaction(self, arguments: Any, *_: Any) -> Any:
        unknown = set(arguments["session"]["properties"]) - {"target_size"}
        if unknown:
            raise FakeError(
                f"The connector has no session property {min(unknown)}", "INVALID_SESSION_PROPERTY"
            )
        number = next(self.numbers)
        self.transactions[number] = {}
        return {
            "transaction": number,
            "handle": handle("ConnectorTransactionHandle", "ShopTransaction", number=number),
        }

    def call_commit(self, arguments: Any, *_: Any) -> None:
        del self.transactions[arguments["transaction"]]

    def call_rollback(self, arguments: Any, *_: Any) -> None:
        self.tables |= self.transactions.pop(arguments["transaction"])

    def call_list_schemas(self, *_: Any) -> list[str]:
        return sorted(self.schemas)

    def call_create_schema(self, arguments: Any, *_: Any) -> None:
        self.schemas.add(arguments["schema"])

    def call_list_tables(self, *_: Any) -> Any:
        return [{"schema": schema, "table": table} for schema, table in sorted(self.tables)]

    def call_create_table(self, arguments: Any, *_: Any) -> None:
        name = arguments["schema"], arguments["table"]
        fields = [(c["name"], parse_type(c["type"]).arrow) for c in arguments["columns"]]
        if name in self.tables and "transaction" in arguments:
            self.transactions[arguments["transaction"]][name] = self.tables[name]
        self.tables[name] = {
            "columns": arguments["columns"],
            "properties": arguments["properties"],
            "comment": arguments["comment"],
            "version": next(self.numbers),
            "rows": pa.schema(fields).empty_table(),
        }

    def call_new_table_layout(self, arguments: Any, *_: Any) -> Any:
        return self._layout_of(arguments["columns"])

    def call_begin_create_table(self, arguments: Any, *_: Any) -> Any:
        names = "schema", "table", "columns", "properties", "comment", "replace"
        content = {name: arguments[name] for name in names}
        name = arguments["schema"], arguments["table"]
        if name in self.tables and not arguments["replace"]:
            raise FakeError("The table exists", "ALREADY_EXISTS")
        return {"handle": handle("ConnectorOutputTableHandle", "ShopOutput", **content)}

    def call_finish_create_table(self, arguments: Any, payload: memoryview, _: Any) -> None:
        content = content_of(arguments["handle"])
        self.call_create_table(content)
        table = self.tables[content["schema"], content["table"]]
        self._append(table, arguments["lengths"], payload)

    def call_rename_table(self, arguments: Any, *_: Any) -> None:
        new = arguments["new"]["schema"], arguments["new"]["table"]
        self.tables[new] = self.tables.pop(self._name(arguments["table"]))

    def call_set_table_properties(self, arguments: Any, *_: Any) -> None:
        unknown = set(arguments["properties"]) - {"format"}
        if unknown:
            raise FakeError(
                f"The connector has no property {min(unknown)}", "INVALID_TABLE_PROPERTY"
            )
        self.tables[self._name(arguments["table"])]["properties"] |= arguments["properties"]

    def call_set_table_comment(self, arguments: Any, *_: Any) -> None:
        self.tables[self._name(arguments["table"])]["comment"] = arguments["comment"]

    def call_set_column_comment(self, arguments: Any, *_: Any) -> None:
        self._column(arguments)["comment"] = arguments["comment"]

    def call_set_default_value(self, arguments: Any, *_: Any) -> None:
        self._column(arguments)["default"] = arguments["default"]

    def call_add_column(self, arguments: Any, *_: Any) -> None:
        table, column = self.tables[self._name(arguments["table"])], arguments["column"]
        names = [c["name"] for c in table["columns"]]
        index = {"FIRST": 0, "LAST": len(names)}.get(arguments["position"])
        index = names.index(arguments["after"]) + 1 if index is None else index
        table["columns"].insert(index, column)
        nulls = pa.nulls(table["rows"].num_rows, parse_type(column["type"]).arrow)
        self._store(table, table["rows"].add_column(index, column["name"], nulls))

    def call_drop_column(self, arguments: Any, *_: Any) -> None:
        table, column = self.tables[self._name(arguments["table"])], self._column(arguments)
        table["columns"].remove(column)
        self._store(table, table["rows"].drop_columns([column["name"]]))

    def call_rename_column(self, arguments: Any, *_: Any) -> None:
        table, column = self.tables[self._name(arguments["table"])], self._column(arguments)
        column["name"] = arguments["name"]
        self._store(table, table["rows"].rename_columns([c["name"] for c in table["columns"]]))

    def _column(self, arguments: Any) -> dict[str, Any]:
        name = content_of(arguments["column"])["name"]
        columns = self.tables[self._name(arguments["table"])]["columns"]
        return next(column for column in columns if column["name"] == name)

    def call_drop_table(self, arguments: Any, *_: Any) -> None:
        del self.tables[self._name(arguments["table"])]

    def call_truncate_table(self, arguments: Any, *_: Any) -> None:
        table = self.tables[self._name(arguments["table"])]
        self._store(table, table["rows"].slice(0, 0))

    def call_table_handle(self, arguments: Any, *_: Any) -> Any:
        name = arguments["schema"], arguments["table"]
        if name not in self.tables:
            return {"handle": None}
        version = self.tables[name]["version"]
        asked = arguments.get("version")
        if asked and asked["value"] not in self.versions:
            raise FakeError(f"There is no version {asked['value']}", "INVALID_ARGUMENTS")
        version = asked["value"] if asked else version
        return {"handle": handle("ConnectorTableHandle", "ShopTable", name=name, version=version)}

    def call_system_table(self, arguments: Any, *_: Any) -> Any:
        table, _, suffix = arguments["table"].rpartition("$")
        if suffix != "versions" or (arguments["schema"], table) not in self.tables:
            return None
        version = self.tables[arguments["schema"], table]["version"]
        versions = pa.record_batch({"c0": pa.array([version], pa.int64())})
        return {"columns": [{"name": "version", "type": "bigint"}]}, pack_batch(versions)

    def call_statistics(self, arguments: Any, *_: Any) -> Any:
        rows = self.tables[self._name(arguments["table"])]["rows"].num_rows
        return {"row_count": float(rows), "data_size": None}

    def call_table_metadata(self, arguments: Any, *_: Any) -> Any:
        table = self.tables[self._name(arguments["table"])]
        hidden = {"name": "$path", "type": "varchar", "nullable": True, "hidden": True}
        return {
            "columns": [*table["columns"], hidden],
            "properties": table["properties"],
            "comment": table["comment"],
        }

    def call_column_handles(self, arguments: Any, *_: Any) -> Any:
        table = self.tables[self._name(arguments["table"])]
        return {
            c["name"]: handle(
                "ColumnHandle", "ShopColumn", name=c["name"], columnType=column_type(c["name"])
            )
            for c in [*table["columns"], {"name": "$path"}]
        }

    def call_row_change_paradigm(self, *_: Any) -> str:
        return "DELETE_ROW_AND_INSERT_ROW"

    def call_merge_row_id(self, *_: Any) -> Any:
        return {"handle": handle("ColumnHandle", "ShopColumn", name="$row_id"), "type": _ROW_ID}

    def call_insert_layout(self, arguments: Any, *_: Any) -> Any:
        return self._layout_of(self.tables[self._name(arguments["table"])]["columns"])

    def _layout_of(self, columns: list[dict[str, Any]]) -> Any:
        names = [c["name"] for c in columns if c["name"].startswith("part_")]
        partitioning = handle("ConnectorPartitioningHandle", "ShopPartitioning", names=names)
        return {"columns": names, "partitioning": partitioning} if names else None

    def call_update_layout(self, *_: Any) -> None:
        return None

    def call_begin_insert(self, arguments: Any, *_: Any) -> Any:
        content = content_of(arguments["table"])
        return {"handle": handle("ConnectorInsertTableHandle", "ShopInsert", **content)}

    def call_begin_merge(self, arguments: Any, *_: Any) -> Any:
        content = content_of(arguments["table"])
        updated = {k: [content_of(c)["name"] for c in v] for k, v in arguments["updated"].items()}
        merge = handle("ConnectorMergeTableHandle", "ShopMerge", updated=updated, **content)
        return {
            "handle": {**merge, "losses": self.lost},
            "table": arguments["table"],
            "credentials": None,
        }

    def call_finish_insert(self, arguments: Any, payload: memoryview, _: Any) -> None:
        table = self.tables[tuple(content_of(arguments["handle"])["name"])]
        self._append(table, arguments["lengths"], payload)

    def _append(self, table: dict[str, Any], lengths: list[int], payload: memoryview) -> None:
        batches = [unpack_batch(f) for f in unpack_fragments(lengths, payload) if f]
        rows = [
            pa.Table.from_batches([batch]).rename_columns(table["rows"].column_names)
            for batch in batches
        ]
        self._store(
            table, pa.concat_tables([table["rows"], *(r.cast(table["rows"].schema) for r in rows)])
        )

    def call_finish_merge(self, arguments: Any, payload: memoryview, _: Any) -> None:
        content = content_of(arguments["handle"])
        table = self.tables[tuple(content["name"])]
        if table["version"] != content["version"]:
            raise FakeError(
                "Found conflicting files that can contain records", "ICEBERG_COMMIT_ERROR"
            )
        batches = [unpack_batch(f) for f in unpack_fragments(arguments["lengths"], payload) if f]
        rows, mask = table["rows"], np.ones(table["rows"].num_rows, bool)
        added = [rows]
        for batch in batches:
            operations = np.asarray(batch.column(batch.num_columns - 3))
            deleted = pc.struct_field(batch.column(batch.num_columns - 1), 1)
            mask[np.asarray(deleted.filter(pa.array(np.isin(operations, (2, 5)))))] = False
            chosen = batch.filter(pa.array(np.isin(operations, (1, 4))))
            columns = chosen.columns[: rows.num_columns]
            added.append(pa.table(columns, rows.column_names).cast(rows.schema))
        added[0] = rows.filter(pa.array(mask))
        self._store(table, pa.concat_tables(added))

    # -- the coordinator's calls of the older flow

    def call_delete_row_id(self, *_: Any) -> Any:
        return {"handle": handle("ColumnHandle", "ShopColumn", name="$row_id"), "type": _ROW_ID}

    def call_update_row_id(self, arguments: Any, *_: Any) -> Any:
        """As in Hive: the row id carries the values that the UPDATE keeps."""
        updated = {content_of(column)["name"] for column in arguments["updated"]}
        columns = self.tables[self._name(arguments["table"])]["columns"]
        kept = [column for column in columns if column["name"] not in updated]
        fields = ", ".join(f'"{column["name"]}" {column["type"]}' for column in kept)
        row = f", kept row({fields})" if kept else ""
        names = [column["name"] for column in kept]
        return {
            "handle": handle("ColumnHandle", "ShopColumn", name="$row_id", kept=names),
            "type": f"{_ROW_ID[:-1]}{row})",
        }

    def call_begin_delete(self, arguments: Any, *_: Any) -> Any:
        content = content_of(arguments["table"])
        names = [content_of(column)["name"] for column in arguments.get("updated", [])]
        table = handle("ConnectorTableHandle", "ShopTable", **content, updated=names)
        return {"table": {**table, "losses": self.lost}}

    call_begin_update = call_begin_delete

    def call_finish_delete(self, arguments: Any, payload: memoryview, _: Any) -> None:
        """Remove the rows at positions, and append their replacements."""
        content = content_of(arguments["table"])
        table = self.tables[tuple(content["name"])]
        if table["version"] != content["version"]:
            raise FakeError(
                "Found conflicting files that can contain records", "ICEBERG_COMMIT_ERROR"
            )
        rows, mask = table["rows"], np.ones(table["rows"].num_rows, bool)
        added = []
        for fragment in unpack_fragments(arguments["lengths"], payload):
            batch = unpack_batch(fragment)
            mask[np.asarray(batch.column(0))] = False
            if batch.num_columns > 1:
                new = pa.table(batch.columns[1:], rows.column_names)
                added.append(new.cast(rows.schema))
        self._store(table, pa.concat_tables([rows.filter(pa.array(mask)), *added]))

    call_finish_update = call_finish_delete

    def call_apply_delete(self, arguments: Any, *_: Any) -> Any:
        content = content_of(arguments["table"])
        if not all(name.startswith("part_") for name in arguments["constraint"]):
            return None
        return {
            "table": handle(
                "ConnectorTableHandle", "ShopTable", **content, deleted=arguments["constraint"]
            )
        }

    def call_execute_delete(self, arguments: Any, *_: Any) -> Any:
        content = content_of(arguments["table"])
        table = self.tables[tuple(content["name"])]
        rows, mask = table["rows"], np.zeros(table["rows"].num_rows, bool)
        for name, domain in content["deleted"].items():
            values = pa.array(domain["values"], rows.schema.field(name).type)
            mask |= ~np.asarray(pc.is_in(rows.column(name), values), bool)
        self._store(table, rows.filter(pa.array(mask)))
        return {"rows": rows.num_rows - table["rows"].num_rows if content["deleted"] else None}

    def call_splits(self, arguments: Any, *_: Any) -> Any:
        content = content_of(arguments["table"])
        rows = self.tables[tuple(content["name"])]["rows"]
        count = self.versions.get(content["version"], rows).num_rows
        starts = range(0, max(count, 1), max(_SPLIT_ROWS, count // 4))
        return {
            "splits": [
                handle(
                    "ConnectorSplit", "ShopSplit", start=start, rows=max(_SPLIT_ROWS, count // 4)
                )
                for start in starts
            ],
            "credentials": None,
        }

    # -- the tasks' calls

    def call_open_scan(self, arguments: Any, _: Any, own: dict[str, Any]) -> Any:
        table, split = self.tables[self._name(arguments["table"])], content_of(arguments["split"])
        version = content_of(arguments["table"])["version"]
        rows = (
            self.versions.get(version, table["rows"])
            .slice(split["start"], split["rows"])
            .combine_chunks()
        )
        positions = pa.array(np.arange(rows.num_rows) + split["start"], pa.int64())
        versions = pa.array(np.full(rows.num_rows, table["version"]), pa.int64())
        row_id = pa.StructArray.from_arrays([versions, positions], ["version", "position"])
        paths = pa.array(["shop"] * rows.num_rows)
        contents = [content_of(column) for column in arguments["columns"]]
        updated = content_of(arguments["table"]).get("updated")
        if updated:
            # Like Hive's plugin.
            contents = [c for c in contents if column_type(c["name"]) == "REGULAR"]
        kept = next((content["kept"] for content in contents if content.get("kept")), [])
        if kept:
            values = [rows.column(name).combine_chunks() for name in kept]
            row = pa.StructArray.from_arrays(values, kept)
            row_id = pa.StructArray.from_arrays(
                [versions, positions, row], ["version", "position", "kept"]
            )
        others = {"$row_id": row_id, "$path": paths}
        columns = [
            others[name] if name in others else rows.column(name).combine_chunks()
            for name in (content["name"] for content in contents)
        ]
        own["changes"] = {
            "fragments": [],
            "updated": updated,
            "kept": kept,
            "names": rows.column_names,
        }
        names = [str(index) for index in range(len(columns))]
        own["pages"] = iter([pa.table(columns, names=names)] if rows.num_rows else [])
        own["rows"] = rows.num_rows
        return {"types": arguments["types"]}

    def call_next_page(self, _: Any, __: Any, own: dict[str, Any]) -> Any:
        page = next(own["pages"], None)
        if page is None:
            return {"end": True}
        if not page.num_columns:
            return {"rows": own["rows"]}
        batch = pa.RecordBatch.from_arrays(
            [pa.array([], c.type) if not c.num_chunks else c.chunk(0) for c in page.columns],
            names=page.column_names,
        )
        return {"rows": own["rows"]}, pack_batch(batch)

    def call_delete_rows(self, arguments: Any, payload: memoryview, own: dict[str, Any]) -> None:
        batch = unpack_batch(payload)
        assert len(arguments["types"]) == batch.num_columns == 1
        positions = batch.column(0).field(1)
        own["changes"]["fragments"].append(pack_batch(pa.record_batch({"position": positions})))

    def call_update_rows(self, arguments: Any, payload: memoryview, own: dict[str, Any]) -> None:
        batch, changes = unpack_batch(payload), own["changes"]
        assert len(arguments["types"]) == batch.num_columns
        *channels, row_id_channel = arguments["channels"]
        row_ids = batch.column(row_id_channel)
        assert arguments["types"][row_id_channel].startswith(_ROW_ID[:-1])
        new = dict(zip(changes["updated"], map(batch.column, channels), strict=True))
        new |= {name: row_ids.field(2).field(i) for i, name in enumerate(changes["kept"])}
        columns = [row_ids.field(1), *(new[name] for name in changes["names"])]
        names = [str(index) for index in range(len(columns))]
        fragment = pack_batch(pa.RecordBatch.from_arrays(columns, names=names))
        changes["fragments"].append(fragment)

    def call_finish_source(self, _: Any, __: Any, own: dict[str, Any]) -> Any:
        fragments = [bytes(fragment) for fragment in own["changes"]["fragments"]]
        lengths, payload = pack_fragments(fragments)
        return {"lengths": lengths}, payload

    def call_abort_source(self, _: Any, __: Any, own: dict[str, Any]) -> None:
        own.pop("changes", None)

    def call_create_merge_sink(self, arguments: Any, _: Any, own: dict[str, Any]) -> None:
        own.update(pages=[], types=arguments["types"])

    call_create_page_sink = call_create_merge_sink

    def call_append_page(self, _: Any, payload: memoryview, own: dict[str, Any]) -> None:
        batch = unpack_batch(payload)
        assert batch.num_columns == len(own["types"])
        own["pages"].append(bytes(payload))

    call_store_merged_rows = call_append_page

    def call_finish(self, _: Any, __: Any, own: dict[str, Any]) -> Any:
        lengths, payload = pack_fragments(own.pop("pages"))
        return {"lengths": lengths}, payload

    def call_abort(self, _: Any, __: Any, own: dict[str, Any]) -> None:
        own.pop("pages", None)

    def call_bucket_function(self, arguments: Any, _: Any, own: dict[str, Any]) -> Any:
        own["count"] = arguments["count"] or 8
        return {"count": own["count"]}

    def call_buckets(self, _: Any, payload: memoryview, own: dict[str, Any]) -> Any:
        column = pc.dictionary_encode(unpack_batch(payload).column(0).cast(pa.string()), "encode")
        texts = column.dictionary.to_pylist()
        buckets = np.array([sum(str(text).encode()) % own["count"] for text in texts], np.int32)
        result = pa.array(buckets[np.asarray(column.indices)], pa.int32())
        return {}, pack_batch(pa.record_batch({"bucket": result}))

    def _name(self, table: dict[str, Any]) -> tuple[str, str]:
        schema, name = content_of(table)["name"]
        return schema, name

    def _store(self, table: dict[str, Any], rows: pa.Table) -> None:
        self.versions[table["version"]] = table["rows"]
        table["rows"], table["version"] = rows, next(self.numbers)
        self.versions[table["version"]] = rows


class Server:
    """Serves each connection in a thread."""

    greeting: ClassVar[dict[str, Any]] = {
        "trino": "0",
        "class": "shop.ShopPlugin",
        "features": FEATURES,
        "connector": "shop",
        "capabilities": ["DEFAULT_COLUMN_VALUE"],
        # No plugin has both: one host serves the tests of both here.
        "flows": ["merge", "updatable"],
        "session_properties": [{"name": "target_size", "type": "bigint"}],
        "table_properties": [{"name": "format", "type": "varchar", "description": "of its files"}],
    }

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def serve(self, connection: socket.socket) -> None:
        """Answer the calls of one connection until it is closed."""
        channel, own = HostChannel(connection), {}
        try:
            while True:
                header, payload = channel.receive()
                call = header.pop("call")
                try:
                    result, answer = self.shop.answer(call, header, payload, own)
                except FakeError as error:
                    channel.send({"error": error.answer})
                except Exception as error:  # noqa: BLE001 - the test sees it
                    channel.send({"error": {"class": type(error).__name__, "message": repr(error)}})
                else:
                    channel.send({"result": result}, answer)
        except ChannelClosedError:
            channel.close()


def greet(greeting: dict[str, Any]) -> None:
    """Write the line that ends the start."""
    sys.stdout.write(json.dumps(greeting) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Listen, greet, and serve until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--settings", required=True)
    arguments = parser.parse_args()
    settings = json.loads(Path(arguments.settings).read_text(encoding="utf-8"))
    if "refuse" in settings["properties"]:
        error = FakeError(settings["properties"]["refuse"], "CONFIGURATION_INVALID").answer
        greet({"error": error})
        sys.exit(1)
    for option in settings["java_options"]:
        if option.startswith("-agentlib:jdwp"):
            sys.stderr.write(f"Listening for transport dt_socket at {option}\n")
            sys.stderr.flush()
    server = Server(Shop(settings["properties"]))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(arguments.socket)
    listener.listen(64)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=server.serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    more = json.loads(settings["properties"].get("greeting", "{}"))
    greet({"ready": {**Server.greeting, **more, "pid": os.getpid()}})
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
