"""MERGE WITH SCHEMA EVOLUTION on every store: columns of the source are added to the target with the rows by one commit, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import (
    DeltaConnector,
    Engine,
    HiveAcidConnector,
    IcebergConnector,
    MemoryConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
    load_trace,
    replay,
    save_trace,
)
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = pytest.mark.spark

TABLES = {
    "memory": "t",
    "lake": "lake.default.t",
    "delta": "delta.default.t",
    "pg": "pg.public.t",
    "lite": "lite.main.t",
}
VERSIONED = ("memory", "lake", "delta")
TINY = RuleSettings(small_rows=0, key_rows=0)
"""All tables count as large."""
STAR = "WHEN MATCHED THEN UPDATE * WHEN NOT MATCHED THEN INSERT *"
SOURCE = "(VALUES (1, 'x', DECIMAL '1.50'), (4, 'y', NULL)) s (id, city, price)"
BEFORE = [(1, "a"), (2, "b")]
AFTER = [(1, "a", "x", "1.50"), (2, "b", None, None), (4, None, "y", None)]


@pytest.fixture
def settings() -> RuleSettings | None:
    return None


@pytest.fixture
def engine(
    spark: Any, tmp_path: Path, request: pytest.FixtureRequest, settings: RuleSettings | None
) -> Iterator[Engine]:
    made = Engine(spark=spark, dialect="extended", rule_settings=settings)
    made.add_catalog("lake", IcebergConnector(tmp_path / "lake"))
    made.add_catalog("delta", DeltaConnector(tmp_path / "delta"))
    made.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    made.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    if "pg" in request.node.name:
        made.add_catalog("pg", PostgresConnector(request.getfixturevalue("postgresql")))
        made.run("DROP TABLE IF EXISTS pg.public.t")
    yield made
    made.close()


def filled(engine: Engine, store: str) -> str:
    """Create the table of a store, with two rows; return its name."""
    name = TABLES[store]
    key = " WITH (primary_key = ARRAY['id'])" if store in {"pg", "lite"} else ""
    engine.run(f"CREATE TABLE {name} (id integer NOT NULL, v varchar){key}")
    engine.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    return name


def merge(name: str, clauses: str = STAR, source: str = SOURCE) -> str:
    return f"MERGE WITH SCHEMA EVOLUTION INTO {name} t USING {source} ON t.id = s.id {clauses}"


def rows(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    found = engine.run(f"SELECT * FROM {name}").table
    assert found is not None
    texts = [
        tuple(str(value) if type(value).__name__ == "Decimal" else value for value in row.values())
        for row in found.to_pylist()
    ]
    return sorted(texts, key=lambda row: row[0])


def columns(engine: Engine, name: str) -> list[tuple[str, str]]:
    found = engine.run(f"DESCRIBE {name}").table
    assert found is not None
    return [(row["Column"], row["Type"]) for row in found.to_pylist()]


def refused(engine: Engine, sql: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, **options)
    return caught.value


# -- effects


@pytest.mark.parametrize("store", TABLES)
def test_columns_of_the_source_are_added_with_the_rows_on_every_store(
    engine: Engine, store: str, tmp_path: Path
) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name), check=True)
    assert (result.count, rows(engine, name)) == (2, AFTER)
    assert columns(engine, name)[2:] == [("city", "varchar"), ("price", "decimal(3,2)")]
    assert result.trace.target.added_columns == (("city", "varchar"), ("price", "decimal(3,2)"))
    assert result.trace.checks.commit is not None
    assert result.trace.checks.commit.state == "agrees"
    words = " ".join(str(result).split())
    assert (
        "1 row inserted, 1 updated. The columns city varchar and price decimal(3,2) were added."
        in words
    )
    save_trace(result.trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json") == result.trace
    assert engine.run(f"UPDATE {name} SET price = 2 WHERE id = 2").count == 1
    assert engine.run(merge(name)).trace.target.added_columns == ()


@pytest.mark.parametrize("store", TABLES)
@pytest.mark.parametrize("settings", [None, TINY], ids=["small", "large"])
def test_evolution_is_the_same_in_the_other_era_and_in_large_statements(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    engine.run(merge(name), era="current")
    by_source = "WHEN MATCHED THEN UPDATE SET note = s.note WHEN NOT MATCHED BY SOURCE THEN UPDATE SET note = 'gone'"
    engine.run(merge(name, by_source, "(VALUES (1, 'new')) s (id, note)"))
    assert rows(engine, name) == [(*AFTER[0], "new"), (*AFTER[1], "gone"), (*AFTER[2], "gone")]


@pytest.mark.parametrize("store", TABLES)
def test_a_statement_that_changes_no_row_adds_its_columns_anyway(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name, "WHEN MATCHED AND s.city = 'none' THEN UPDATE *"))
    assert (result.count, len(columns(engine, name))) == (0, 4)
    assert rows(engine, name) == [(*row, None, None) for row in BEFORE]


@pytest.mark.parametrize("store", TABLES)
def test_returned_rows_have_the_new_columns(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    returned = engine.run(merge(name) + " RETURNING t.id, old.city AS was, t.city").table
    assert returned is not None
    assert sorted(map(tuple, (row.values() for row in returned.to_pylist()))) == [
        (1, None, "x"),
        (4, None, "y"),
    ]


def test_the_source_may_be_a_dataframe_a_query_or_the_target_itself(engine: Engine) -> None:
    name = filled(engine, "memory")
    frame = pa.table({"ID": pa.array([2], pa.int32()), "Note": ["n"]})
    engine.run(merge(name, source="frame s"), namespace={"frame": frame})
    engine.run(merge(name, source="(SELECT id, upper(v) AS big FROM t) s"))
    assert [column for column, _ in columns(engine, name)] == ["id", "v", "Note", "big"]
    assert rows(engine, name) == [(1, "a", None, "A"), (2, "b", "n", "B")]


@pytest.mark.parametrize(
    "properties",
    [
        "partitioned_by = ARRAY['id']",
        "bucketed_by = ARRAY['id'], bucket_count = 3",
        "paradigm = 'CHANGE_ONLY_UPDATED_COLUMNS'",
    ],
)
def test_every_kind_of_table_in_memory_gets_columns(engine: Engine, properties: str) -> None:
    engine.run(f"CREATE TABLE t (id integer NOT NULL, v varchar) WITH ({properties})")
    engine.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    engine.run(merge("t"))
    assert rows(engine, "t") == AFTER


def test_a_partitioned_table_of_iceberg_gets_columns(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE lake.default.t (id integer NOT NULL, v varchar) WITH (partitioning = ARRAY['bucket(id, 3)'])"
    )
    engine.run("INSERT INTO lake.default.t VALUES (1, 'a'), (2, 'b')")
    engine.run(merge("lake.default.t"))
    assert rows(engine, "lake.default.t") == AFTER
    nested = (
        "(SELECT 2 AS id, CAST(ROW(1, ARRAY['z']) AS row(a integer, b array(varchar))) AS deep) s"
    )
    engine.run(merge("lake.default.t", source=nested))
    assert rows(engine, "lake.default.t")[1] == (2, "b", None, None, {"a": 1, "b": ["z"]})


@pytest.mark.parametrize("store", TABLES)
def test_columns_of_many_types_are_added(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    values = {
        "flag": "true",
        "small": "CAST(1 AS smallint)",
        "big": "1000000000000",
        "ratio": "2.5E0",
        "day": "DATE '2026-02-03'",
        "at": "TIMESTAMP '2026-02-03 04:05:06.789'",
        "zoned": "TIMESTAMP '2026-02-03 04:05:06 Europe/Berlin'",
        "bytes": "X'0102'",
        "word": "CAST('ab' AS char(4))",
        "id_of": "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'" if store != "delta" else "'none'",
        "doc": "JSON '1'" if store not in {"lake", "delta"} else "'none'",
    }
    source = f"(SELECT 2 AS id, {', '.join(f'{value} AS {column}' for column, value in values.items())}) s"
    result = engine.run(merge(name, source=source), check=True)
    assert [column for column, _ in result.trace.target.added_columns] == list(values)
    assert result.trace.checks.commit is not None
    assert result.trace.checks.commit.state == "agrees"
    cast = [column for column in values if column not in {"at", "zoned", "bytes", "word", "doc"}]
    equal = " AND ".join(
        f"CAST({column} AS varchar) = CAST({values[column]} AS varchar)" for column in cast
    )
    there = f"{equal} AND at = {values['at']} AND zoned = {values['zoned']} AND bytes = X'0102' AND trim(word) = 'ab'"
    found = engine.run(f"SELECT id FROM {name} WHERE {there}").table
    assert found is not None
    assert found.to_pylist() == [{"id": 2}]


def test_old_values_of_new_columns_are_null_in_the_report(engine: Engine) -> None:
    result = engine.run(merge(filled(engine, "memory")))
    (updated, inserted) = result.diff().to_dict("records")
    assert (updated["old.city"], updated["new.city"], updated["old.price"]) == (None, "x", None)
    assert (inserted["old.city"], inserted["new.city"]) == (None, "y")


# -- fields and types

NESTED = """(id integer, n integer, r real, d decimal(5, 2), a row(x integer, y varchar),
    l array(row(p integer)), m map(varchar, row(q integer)))"""
NESTED_ROWS = """VALUES
    (1, 1, REAL '1.5', 1.25, ROW(1, 'a'), ARRAY[ROW(1)], MAP(ARRAY['k'], ARRAY[ROW(1)])),
    (2, 2, REAL '2.5', 2.25, ROW(2, 'b'), ARRAY[ROW(2)], NULL)"""
WIDER = """(SELECT i AS id, 5000000000 AS n, 1e100 AS r, DECIMAL '1234567.25' AS d,
    CAST(ROW(9, 'z', 3) AS row(x bigint, z varchar(3), w integer)) AS a,
    ARRAY[CAST(ROW(7, 'new') AS row(o integer, s varchar)), NULL] AS l,
    MAP(ARRAY['v'], ARRAY[CAST(ROW(5, 6) AS row(q bigint, f integer))]) AS m
    FROM (VALUES 1, 3) v (i)) s"""
NEW_LISTS = {"l": [{"p": None, "o": 7, "s": "new"}, None], "m": [("v", {"q": 5, "f": 6})]}
EVOLVED_ROWS = [
    (1, 5000000000, 1e100, "1234567.25", {"x": 9, "y": "a", "z": "z", "w": 3}, *NEW_LISTS.values()),
    (
        2,
        2,
        2.5,
        "2.25",
        {"x": 2, "y": "b", "z": None, "w": None},
        [{"p": 2, "o": None, "s": None}],
        None,
    ),
    (
        3,
        5000000000,
        1e100,
        "1234567.25",
        {"x": 9, "y": None, "z": "z", "w": 3},
        *NEW_LISTS.values(),
    ),
]
TYPE_CHANGES = (
    ("n", "integer", "bigint"),
    ("r", "real", "double"),
    ("d", "decimal(5,2)", "decimal(9,2)"),
    ("a.x", "integer", "bigint"),
    ("a.z", "", "varchar"),
    ("a.w", "", "integer"),
    ("l.element.o", "", "integer"),
    ("l.element.s", "", "varchar"),
    ("m.value.q", "integer", "bigint"),
    ("m.value.f", "", "integer"),
)
IN_LISTS = """WHEN MATCHED THEN UPDATE SET n = s.n, r = s.r, d = s.d, a = s.a, l = s.l, m = s.m
    WHEN NOT MATCHED THEN INSERT (id, n, r, d, a, l, m) VALUES (s.id, s.n, s.r, s.d, s.a, s.l, s.m)"""


def nested(engine: Engine, store: str, properties: str = "") -> str:
    if store == "delta":
        properties = "WITH (type_widening_enabled = true)"
    engine.run(f"CREATE TABLE {TABLES[store]} {NESTED} {properties}")
    engine.run(f"INSERT INTO {TABLES[store]} {NESTED_ROWS}")
    return TABLES[store]


@pytest.mark.parametrize("store", VERSIONED)
@pytest.mark.parametrize("clauses", [STAR, IN_LISTS], ids=["star", "lists"])
@pytest.mark.parametrize("settings", [None, TINY], ids=["small", "large"])
def test_fields_and_wider_types_are_added_with_the_rows(
    engine: Engine, store: str, clauses: str
) -> None:
    name = nested(engine, store)
    before = columns(engine, name)
    result = engine.run(merge(name, clauses, WIDER), check=True)
    assert rows(engine, name) == EVOLVED_ROWS
    assert result.trace.target.type_changes == TYPE_CHANGES
    assert result.trace.target.added_columns == ()
    assert result.trace.checks.commit is not None
    assert result.trace.checks.commit.state == "agrees"
    words = " ".join(str(result).split())
    assert "The fields a.z varchar, a.w integer, l.element.o integer" in words
    assert "The type of n was changed from integer to bigint." in words
    assert engine.table(name, result.version_before).schema.field("n").type == pa.int32()
    # Rows are restored; fields and types stay.
    undone = " ".join(str(engine.undo(name)).split())
    assert (
        "Types and fields that it changed remain: n bigint, r double, d decimal(9,2), a.x" in undone
    )
    assert [column for column, _ in columns(engine, name)] == [column for column, _ in before]
    assert [row[:4] for row in rows(engine, name)] == [(1, 1, 1.5, "1.25"), (2, 2, 2.5, "2.25")]
    assert engine.run(merge(name, clauses, WIDER)).trace.target.type_changes == ()
    assert rows(engine, name) == EVOLVED_ROWS


@pytest.mark.parametrize(
    "properties",
    [
        "format_version = 3",
        "extra_properties = MAP(ARRAY['write.merge.mode'], ARRAY['copy-on-write'])",
    ],
)
def test_fields_and_wider_types_are_added_in_every_form_of_iceberg(
    engine: Engine, properties: str
) -> None:
    name = nested(engine, "lake", f"WITH ({properties})")
    engine.run(merge(name, source=WIDER), era="current")
    assert rows(engine, name) == EVOLVED_ROWS


@pytest.mark.parametrize("store", VERSIONED)
@pytest.mark.parametrize("fault", ["begin_merge:after", "finish_merge:after", "commit"])
def test_a_failure_leaves_types_unchanged(engine: Engine, store: str, fault: str) -> None:
    name = nested(engine, store)
    before = columns(engine, name)
    assert refused(engine, merge(name, source=WIDER), fault=fault).changed is False
    assert columns(engine, name) == before
    planned = " ".join(str(engine.run(merge(name, source=WIDER), dry_run=True)).split())
    assert "The type of n would be changed from integer to bigint." in planned
    assert "Changes the types: [n:integer to bigint" in str(
        engine.explain(merge(name, source=WIDER))
    )
    assert columns(engine, name) == before


def test_partition_columns_keep_their_types(engine: Engine) -> None:
    engine.run("CREATE TABLE t (id integer, v varchar) WITH (partitioned_by = ARRAY['id'])")
    result = engine.run(merge("t", source="(SELECT BIGINT '7' AS id, 'a' AS v) s"))
    assert result.trace.target.type_changes == ()
    assert rows(engine, "t") == [(7, "a")]


def test_a_value_that_is_computed_changes_no_type(engine: Engine) -> None:
    name = nested(engine, "memory")
    error = refused(
        engine,
        merge(
            name, "WHEN MATCHED THEN UPDATE SET n = s.n + 1", "(SELECT 1 AS id, 5000000000 AS n) s"
        ),
    )
    assert error.code in {"INVALID_CAST_ARGUMENT", "NUMERIC_VALUE_OUT_OF_RANGE"}
    assert dict(columns(engine, name))["n"] == "integer"


@pytest.mark.parametrize("store", ["pg", "lite"])
def test_other_stores_keep_their_types(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name, source="(SELECT BIGINT '7' AS id, 'a' AS v) s"))
    assert result.trace.target.type_changes == ()
    assert rows(engine, name) == [*BEFORE, (7, "a")]


# -- limits


@pytest.mark.parametrize("store", TABLES)
@pytest.mark.parametrize(
    "fault", ["begin_merge:after", "finish_merge", "finish_merge:after", "commit"]
)
def test_a_failure_leaves_columns_and_rows_unchanged(
    engine: Engine, store: str, fault: str
) -> None:
    name = filled(engine, store)
    error = refused(engine, merge(name), fault=fault)
    assert error.changed is False
    assert (columns(engine, name), rows(engine, name)) == (
        [("id", "integer"), ("v", "varchar")],
        BEFORE,
    )
    assert engine.run(merge(name)).count == 2
    assert rows(engine, name) == AFTER


@pytest.mark.parametrize("store", TABLES)
def test_a_row_that_violates_a_constraint_leaves_columns_and_rows_unchanged(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    error = refused(
        engine,
        merge(name, "WHEN NOT MATCHED THEN INSERT *", "(VALUES ('c', 'x')) s (v, city)").replace(
            "t.id = s.id", "t.v = s.v"
        ),
    )
    assert error.code == "CONSTRAINT_VIOLATION"
    assert (len(columns(engine, name)), rows(engine, name)) == (2, BEFORE)


@pytest.mark.parametrize("store", TABLES)
def test_a_dry_run_and_explain_add_nothing_and_show_what_would_be_added(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    planned = engine.run(merge(name), dry_run=True)
    assert "would be added." in " ".join(str(planned).split())
    assert [name for name, _ in planned.trace.target.added_columns] == ["city", "price"]
    assert "Adds the columns: [city:varchar" in str(engine.explain(merge(name)))
    assert len(columns(engine, name)) == 2


@pytest.mark.parametrize("store", TABLES)
def test_a_rehearsal_keeps_no_column(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name), rehearse=True)
    assert result.count == 2
    if store == "memory":
        assert result.rehearsed is not None
        assert result.rehearsed.column_names == ["id", "v", "city", "price"]
    assert (len(columns(engine, name)), rows(engine, name)) == (2, BEFORE)


def test_a_store_that_adds_columns_by_a_separate_commit_is_refused_at_the_words(
    engine: Engine,
) -> None:
    engine.run("CREATE TABLE hive.default.t (id integer, v varchar)")
    error = refused(engine, merge("hive.default.t"))
    assert (error.code, error.line, error.column) == ("NOT_SUPPORTED", 1, 7)
    assert (
        error.message
        == "Catalog 'hive' cannot add columns in a MERGE: its store does not commit columns and rows together"
    )


@pytest.mark.parametrize(
    ("store", "words"),
    [("pg", "PostgreSQL"), ("lite", "SQLite"), ("lake", "Iceberg"), ("delta", "Delta")],
)
def test_a_type_that_the_store_does_not_have_is_refused_at_the_words(
    engine: Engine, store: str, words: str
) -> None:
    name = filled(engine, store)
    kind = "INTERVAL '1' DAY" if store in {"lake", "delta"} else "ARRAY[1]"
    error = refused(engine, merge(name, source=f"(SELECT 1 AS id, {kind} AS strange) s"))
    assert (error.code, error.line, error.column) == ("NOT_SUPPORTED", 1, 7)
    assert words in error.message
    assert "strange" in error.message


# -- versions


@pytest.mark.parametrize("store", ["memory", "lake"])
def test_undo_undoes_rows_and_columns(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    engine.run(f"UPDATE {name} SET v = 'B' WHERE id = 2")
    result = engine.run(merge(name))
    calls = engine.undo(name).calls
    assert "without city, price" in str(calls.to_string())
    assert (len(columns(engine, name)), rows(engine, name)) == (2, [(1, "a"), (2, "B")])
    engine.undo(name)
    assert rows(engine, name) == BEFORE
    assert result.version_after is not None
    engine.restore(name, result.version_after)
    assert rows(engine, name) == [(1, "a"), (2, "B"), (4, None)]


@pytest.mark.parametrize("store", VERSIONED)
def test_a_former_version_has_the_columns_of_its_time(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name))
    former = engine.table(name, result.version_before)
    assert former.column_names == ["id", "v"]
    engine.restore(name, result.version_before)
    assert rows(engine, name) == [(*row, None, None) for row in BEFORE]
    engine.undo(name)
    assert rows(engine, name) == AFTER


@pytest.mark.parametrize("store", ["memory", "lake"])
def test_a_column_that_was_added_dropped_and_added_again_is_another_one(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    first = engine.run(merge(name, source="(VALUES (1, 7)) s (id, city)"))
    engine.undo(name)
    engine.run(merge(name))
    assert first.version_after is not None
    engine.restore(name, first.version_after)
    assert rows(engine, name) == [(*row, None, None) for row in BEFORE]


@pytest.mark.parametrize("store", ["pg", "lite"])
def test_a_store_without_versions_refuses_to_undo_with_the_reason(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    engine.run(merge(name))
    with pytest.raises(RowMergeError) as caught:
        engine.undo(name)
    assert "keeps no earlier versions" in caught.value.message
    assert rows(engine, name) == AFTER


def test_undo_refuses_to_drop_a_column_now_used_by_partitions(engine: Engine) -> None:
    filled(engine, "memory")
    engine.run(merge("t"))
    engine.run("ALTER TABLE t SET PROPERTIES partitioned_by = ARRAY['city']")
    with pytest.raises(RowMergeError) as caught:
        engine.undo("t")
    assert (
        caught.value.message
        == "Column 'city' cannot be dropped: the table property 'partitioned_by' names it"
    )
    assert rows(engine, "t") == AFTER


# -- readers


@pytest.mark.parametrize("store", TABLES)
def test_evolution_is_tried_again_on_the_former_rows_and_columns(
    engine: Engine, store: str
) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name), trace="full")
    tried = result.what_if(merge(name, "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"))
    assert tried.counts == {"INSERT": 1, "UPDATE": 0, "DELETE": 1, "none": 0}
    assert [column for column, _ in tried.trace.target.added_columns] == ["city", "price"]
    assert rows(engine, name) == AFTER


def test_two_ways_of_running_it_are_compared(engine: Engine) -> None:
    filled(engine, "memory")
    engine.compare(merge("t"), by="paradigms")
    assert rows(engine, "t") == BEFORE


def test_another_engine_is_not_asked_about_new_columns(engine: Engine) -> None:
    filled(engine, "memory")
    result = engine.run(merge("t"), verify="duckdb")
    assert result.verification is not None
    assert (
        result.verification.message
        == "DuckDB was not asked: the statement adds columns, for which it has no syntax"
    )
    again = engine.run(merge("t"), verify="duckdb")
    assert again.verification is not None
    assert again.verification.state in {"not compared", "agrees"}


def test_an_audit_refuses_it_with_what_can_be_done(engine: Engine) -> None:
    filled(engine, "memory")
    before = engine.run(merge("t")).version_before
    with pytest.raises(RowMergeError) as caught:
        engine.audit("t", statement=merge("t"), before=before)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("NOT_SUPPORTED", 1, 7)
    padded = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "v": ["a", "b"],
            "city": pa.nulls(2, pa.string()),
            "price": pa.nulls(2, pa.decimal128(3, 2)),
        }
    )
    taken = "UPDATE SET city = s.city, price = s.price WHEN NOT MATCHED THEN INSERT (id, city, price) VALUES (s.id, s.city, s.price)"
    plain = merge("t", f"WHEN MATCHED THEN {taken}").replace("WITH SCHEMA EVOLUTION ", "")
    audited = engine.audit(statement=plain, before=padded)
    assert not audited.rows


@pytest.mark.parametrize("store", VERSIONED)
def test_a_record_of_it_is_replayed(engine: Engine, store: str) -> None:
    name = filled(engine, store)
    result = engine.run(merge(name), record=True)
    record = result.record()
    assert [column.name for column in record.columns] == ["id", "v", "city", "price"]
    replayed = replay(record, MemoryConnector())
    assert replayed.error is None


def test_undo_refuses_to_drop_a_column_now_read_by_a_check_constraint(engine: Engine) -> None:
    name = filled(engine, "memory")
    engine.run(merge(name))
    engine.run("ALTER TABLE t SET PROPERTIES check_constraints = ARRAY['city <> ''z''']")
    with pytest.raises(
        RowMergeError, match=r"It would drop the column city and price of 'memory.default.t'"
    ) as caught:
        engine.undo("t")
    assert (caught.value.code, "without that constraint" in str(caught.value.hint)) == (
        "NOT_SUPPORTED",
        True,
    )
    assert engine.run("INSERT INTO t (id) VALUES (9)").count == 1


def test_a_former_version_is_read_without_the_constraints_of_columns_that_came_later(
    engine: Engine,
) -> None:
    name = filled(engine, "memory")
    before = engine.run("UPDATE t SET v = 'z' WHERE id = 1", trace="off")
    engine.run(merge(name))
    engine.run("ALTER TABLE t SET PROPERTIES check_constraints = ARRAY['city <> ''z''']")
    assert "id = 1" in str(before.why(id=1)) or "1" in str(before.why(id=1))


@pytest.mark.parametrize("filled_before", [True, False])
def test_undo_removes_columns_added_without_rows_and_undoes_no_other_statement(
    engine: Engine, filled_before: bool
) -> None:
    other = filled(engine, "memory")
    engine.run("CREATE TABLE lake.default.t (id integer, v varchar)")
    if filled_before:
        engine.run("INSERT INTO lake.default.t VALUES (1, 'a')")
    engine.run(f"INSERT INTO {other} VALUES (7, 'g')")
    source = "(SELECT 1 AS id, 5 AS w WHERE false) s"
    engine.run(merge("lake.default.t", "WHEN NOT MATCHED THEN INSERT *", source))
    assert dict(engine.columns("lake", "default", "t") or ()).keys() == {"id", "v", "w"}
    engine.undo()
    assert dict(engine.columns("lake", "default", "t") or ()).keys() == {"id", "v"}
    assert len(rows(engine, "lake.default.t")) == filled_before
    assert len(rows(engine, other)) == 3
    # Earlier changes are next, once each.
    if filled_before:
        engine.undo("lake.default.t")
    engine.undo(other)
    assert len(rows(engine, other)) == 2
    assert rows(engine, "lake.default.t") == []


def test_a_star_shows_a_default_as_it_is(engine: Engine) -> None:
    engine.run("CREATE TABLE d (id integer, st varchar DEFAULT 'new')")
    statement = (
        "MERGE INTO d USING (SELECT 1 AS id) s ON d.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    with pytest.raises(RowMergeError):
        engine.run(statement)
    evolving = statement.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO")
    text = str(engine.run(f"EXPLAIN {evolving}"))
    assert "'new'" in text
    assert "s.st" not in text
    engine.run(evolving)
    assert engine.table("d").to_pylist() == [{"id": 1, "st": "new"}]


def test_a_connector_that_returns_unrequested_columns_is_reported(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = filled(engine, "memory")
    monkeypatch.setattr(
        MemoryMetadata, "get_evolved_table_handle", lambda _self, _session, handle, _columns: handle
    )
    with pytest.raises(
        RowMergeError,
        match=r"get_evolved_table_handle returned a handle of a table with the columns id, v; it must return one",
    ) as caught:
        engine.run(merge(name))
    assert (caught.value.code, caught.value.changed) == ("GENERIC_INTERNAL_ERROR", False)
    assert rows(engine, name) == BEFORE
