"""Arguments of the engine and of connectors are checked: each wrong value is reported with its type and a next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.plan.rules import RuleSettings

FRAME = pa.table({"id": [1]})
FIVE: Any = 5
NONE: Any = None
TEXT: Any = "4"
WRONG_LIST: Any = [1]
STORES: tuple[Any, ...] = (SqliteConnector, HiveAcidConnector, IcebergConnector)
WRONG_PATHS: tuple[Any, ...] = (5, b"x", [1], "a\0b")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Engine(catalog=FIVE),
        lambda: Engine(schema=NONE),
        lambda: Engine(spark=FIVE),
        lambda: Engine(rule_settings=FIVE),
        lambda: RuleSettings(source_bytes=TEXT),
        lambda: RuleSettings(packed_bytes=None),
        lambda: RuleSettings(remote_executors=TEXT),
        lambda: RuleSettings(small_rows=-5),
        lambda: Engine().add_catalog("x", NONE),
        lambda: Engine().add_catalog(FIVE, MemoryConnector()),
        lambda: Engine().register(FIVE, FRAME),
        lambda: Engine().register("t", FRAME, not_null=FIVE),
        lambda: Engine().register("t", FRAME, not_null=[FIVE]),
        lambda: Engine().register("t", FRAME, primary_key=[FIVE]),
        lambda: Engine().register("t", FRAME, partitioned_by=FIVE),
        lambda: Engine().register("t", FRAME, bucket_count=TEXT),
        lambda: Engine().run(FIVE),
        lambda: Engine().explain(FIVE),
        lambda: Engine().explain("SELECT 1", kind=NONE),
        lambda: Engine().explain("SELECT 1", kind="nix"),
        lambda: Engine().table(FIVE),
        lambda: Engine().table(" "),
        lambda: Engine().full_name(NONE),
        lambda: Engine().full_name("a.b.c.d"),
        lambda: Engine().table_metadata("memory", "default", WRONG_LIST),
        lambda: Engine().table_metadata("memory", WRONG_LIST, "t"),
        lambda: Engine().table_metadata(WRONG_LIST, "default", "t"),
        lambda: Engine().names(FIVE),
        lambda: Engine().columns(NONE),
        lambda: Engine().procedures(WRONG_LIST),
        lambda: Engine().table_properties(FIVE),
        lambda: Engine().compare("DELETE FROM t", by=WRONG_LIST),
        lambda: HiveAcidConnector(metastore=FIVE),
        lambda: HiveAcidConnector(metastore="localhost:9083"),
        lambda: PostgresConnector(FIVE),
        lambda: SqliteConnector(NONE),
        HiveAcidConnector,
        IcebergConnector,
        *(lambda made=made, path=path: made(path) for made in STORES for path in WRONG_PATHS),
    ],
)
def test_a_wrong_value_is_reported_with_a_next_step(call: Callable[[], Any]) -> None:
    with pytest.raises(RowMergeError) as caught:
        call()
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert caught.value.hint


def test_a_number_outside_all_types_is_reported() -> None:
    with pytest.raises(RowMergeError) as caught:
        Engine().register("t", [{"a": 2**70}])
    assert caught.value.hint
    import pandas as pd

    with pytest.raises(RowMergeError) as caught:
        Engine().register("t", pd.DataFrame({"a": [2**70]}))
    assert caught.value.hint


def test_the_metadata_of_a_table_in_no_catalog_is_refused() -> None:
    with pytest.raises(
        RowMergeError, match=r"CATALOG_NOT_FOUND: Catalog 'nope' does not exist. There are: memory."
    ):
        Engine().table_metadata("nope", "default", "t")


def test_an_object_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    closed = []

    class Stuck(MemoryConnector):
        def close(self) -> None:
            raise OSError("the lock is held")

    class Good(MemoryConnector):
        def close(self) -> None:
            closed.append("good")

    engine = Engine()
    engine.add_catalog("stuck", Stuck())
    engine.add_catalog("good", Good())
    with pytest.raises(
        ConnectorError, match="catalog 'stuck': OSError: the lock is held"
    ) as caught:
        engine.close()
    assert caught.value.hint
    assert closed == ["good"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER TABLE t RENAME TO u", "TABLE_ALREADY_EXISTS"),
        ("ALTER TABLE t RENAME TO nix.u", "NOT_FOUND"),
        ("ALTER TABLE t ADD COLUMN id bigint", "COLUMN_ALREADY_EXISTS"),
        ("ALTER TABLE t RENAME COLUMN id TO v", "COLUMN_ALREADY_EXISTS"),
        ("ALTER TABLE t ALTER COLUMN id DROP NOT NULL", "NOT_SUPPORTED"),
        ("ALTER TABLE information_schema.tables ADD COLUMN x bigint", "NOT_SUPPORTED"),
        ("INSERT INTO information_schema.schemata VALUES ('a', 'b')", "NOT_SUPPORTED"),
        ("TRUNCATE TABLE information_schema.tables", "NOT_SUPPORTED"),
        ("DROP TABLE information_schema.tables", "NOT_SUPPORTED"),
        ("COMMENT ON TABLE information_schema.tables IS 'x'", "NOT_SUPPORTED"),
        ("CREATE OR REPLACE VIEW w AS SELECT * FROM w", "VIEW_IS_RECURSIVE"),
        ("CREATE SCHEMA default", "SCHEMA_ALREADY_EXISTS"),
        ("DROP SCHEMA nix", "SCHEMA_NOT_FOUND"),
        ("SHOW TABLES FROM nix", "SCHEMA_NOT_FOUND"),
        ("SHOW CREATE SCHEMA nix", "SCHEMA_NOT_FOUND"),
        ("SHOW CREATE VIEW nix", "TABLE_NOT_FOUND"),
        ("DROP VIEW nix", "GENERIC_USER_ERROR"),
    ],
)
def test_existing_and_unchangeable_objects_are_reported_with_a_next_step(
    statement: str, code: str
) -> None:
    engine = Engine()
    engine.register("t", pa.table({"id": [1], "v": ["a"]}))
    engine.register("u", FRAME)
    engine.run("CREATE VIEW w AS SELECT * FROM t")
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement)
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint
