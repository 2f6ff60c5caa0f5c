"""CALL on Spark: values are computed, the procedure runs, and its output is passed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, HiveAcidConnector, RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.spi import Procedure, ProcedureArgument, parse_type

pytestmark = pytest.mark.spark


class Listening(MemoryConnector):
    """A connector with a procedure that records its arguments."""

    heard: list[dict[str, Any]]

    def get_procedures(self) -> list[Procedure]:
        kinds = {"who": "varchar", "often": "bigint", "days": "array(date)"}
        arguments = tuple(
            ProcedureArgument(n, parse_type(k), required=n == "who", default=None)
            for n, k in kinds.items()
        )
        return [Procedure("system", "listen", arguments, self.listen)]

    def listen(self, session: Any, **values: Any) -> None:
        if values["who"] == "nobody":
            raise OSError("no ears")
        self.heard.append({"user": bool(session.user), **values})


def test_a_procedure_gets_plain_values_of_its_arguments_types(spark: Any) -> None:
    import datetime as dt

    engine, connector = Engine(spark=spark), Listening()
    connector.heard = []
    engine.add_catalog("own", connector)
    result = engine.run(
        "CALL own.system.listen('a' || upper('b'), 2 + 3, ARRAY[DATE '2024-02-28' + INTERVAL '1' DAY, NULL])"
    )
    engine.run("CALL own.system.listen(who => 'ann')")
    engine.run("EXPLAIN CALL own.system.listen(who => 'nobody')")
    assert connector.heard == [
        {"user": True, "who": "aB", "often": 5, "days": [dt.date(2024, 2, 29), None]},
        {"user": True, "who": "ann", "often": None, "days": None},
    ]
    assert [call.method for call in result.trace.calls] == ["system.listen"]
    assert "Procedure listen was run." in str(result)
    with pytest.raises(RowMergeError, match=r"system\.listen failed: OSError: no ears") as caught:
        engine.run("CALL own.system.listen('nobody')")
    assert caught.value.result.trace.state == "failed"
    with pytest.raises(RowMergeError, match="Division by zero"):
        engine.run("CALL own.system.listen(who => 'x', often => 1 / 0)")


def test_hive_tables_are_compacted_registered_and_unregistered_by_call(
    spark: Any, tmp_path: Path
) -> None:
    engine, store = Engine(spark=spark, catalog="lake"), HiveAcidConnector(tmp_path)
    engine.add_catalog("lake", store)
    engine.run("CREATE TABLE t (id bigint, v varchar)")
    for number in range(3):
        engine.run(f"INSERT INTO t VALUES ({number}, 'a')")
    engine.run("DELETE FROM t WHERE id = 1")
    folder = store.warehouse / "t"
    engine.run(
        "CALL lake.system.compact(schema_name => 'default', table_name => 't', type => 'minor')"
    )
    assert len([path for path in folder.iterdir() if "_v" in path.name]) == 2
    engine.run("CALL lake.system.compact('default', 'T', 'MAJOR')")
    engine.run("CALL lake.system.remove_obsolete('default', 't')")
    assert [path.name[:12] for path in folder.iterdir()] == ["base_0000004"]
    engine.run("CALL system.unregister_table('default', 't')")
    assert engine.run("SHOW TABLES FROM lake.default").to_pandas().empty
    engine.run(
        f"CALL system.register_table('default', 'u', '{folder}', ARRAY['id bigint', 'v varchar'])"
    )
    assert engine.run("SELECT * FROM u ORDER BY id").to_pandas().values.tolist() == [
        [0, "a"],
        [2, "a"],
    ]


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("compact('default', 'none')", "TABLE_NOT_FOUND", "Table 'default.none' does not exist"),
        ("compact('default', NULL)", "INVALID_PROCEDURE_ARGUMENT", "table_name cannot be null"),
        (
            "compact('default', 't', 'half')",
            "INVALID_PROCEDURE_ARGUMENT",
            "Invalid compaction type: half",
        ),
        (
            "register_table('default', 'x', '/nowhere', ARRAY['id bigint'])",
            "HIVE_FILE_NOT_FOUND",
            "'/nowhere' does not exist",
        ),
        (
            "register_table('default', 'x', '/tmp', ARRAY['id numeral'])",
            "INVALID_PROCEDURE_ARGUMENT",
            "'id numeral' is not a column",
        ),
        (
            "abort_transaction(12345)",
            "INVALID_PROCEDURE_ARGUMENT",
            "No such open transaction: 12345",
        ),
    ],
)
def test_unsupported_calls_of_hive_procedures_are_reported(
    spark: Any, tmp_path: Path, sql: str, code: str, words: str
) -> None:
    engine = Engine(spark=spark)
    engine.add_catalog("lake", HiveAcidConnector(tmp_path))
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"CALL lake.system.{sql}")
    assert caught.value.code == code
    assert words in caught.value.message
