"""Names that Spark, Java, DuckDB, SQLite or PostgreSQL might misinterpret mean only columns and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError
from tests.extremes.conftest import Store
from tests.extremes.support import literal, quoted, tuples

SUBSTITUTED = [
    "${env:HOME}",
    "${system:user.home}",
    "${spark.app.name}",
    "v${x}",
    "$1",
    "$0",
    "$$",
    "{x}",
    "{0}",
    "{{ 1 }}",
    "%s",
    "%(x)s",
]
READ_AS_SQL = [
    "a.b",
    "a.b.c",
    "*",
    "a[0]",
    "a`b",
    "`",
    "``",
    "?",
    ":x",
    ":1",
    "/*",
    "*/",
    "--",
    ";",
    ",",
    "(",
    ")",
    "=",
    "1",
    "1.5",
    "-1",
    ".",
]
INJECTING = [
    'x"; DROP TABLE victim; --',
    "x'; DROP TABLE victim; --",
    "x`; DROP TABLE victim; --",
    "$$; DROP TABLE victim; $$",
    "\\",
]
QUOTES = [
    "'",
    "''",
    '"',
    '""',
    "\\u0041",
    "\\'",
    "\\`",
    "\\n",
    "<b>x</b>",
    "&amp;",
    "a/b",
    "..",
    "a=b",
    "a%2Fb",
    "[[X]]",
]
WORDS = [
    "select",
    "from",
    "null",
    "true",
    "current_date",
    "file_name()",
    "input_file_name()",
    "row",
    "element",
    "key",
    "value",
    "page",
    "v",
]
HIDDEN = [
    "_metadata",
    "_metadata.file_path",
    "__index_level_0__",
    "rowid",
    "_rowid_",
    "oid",
    "originaltransaction",
    "bucket",
    "kind",
]
INTERNAL = [
    *(
        "merge_row",
        "row_id",
        "present",
        "source_present",
        "returning",
        "is_distinct",
        "unique_id",
        "case_number",
        "operation",
    ),
    *(
        "insert_from_update",
        "hash",
        "$row_id",
        "$position",
        "$q0",
        "$witness",
        "$source_row",
        "$key0",
        "$bucket",
        "$record",
    ),
    *(
        "c0",
        "c1",
        "f0",
        "idx_0",
        "k0",
        "a",
        "o",
        "n",
        "s",
        "t",
        "id",
        "field0",
        "expr",
        "writer",
        "payload",
    ),
]
INVISIBLE = [
    " ",
    "  x ",
    "a b",
    "a\nb",
    "a\tb",
    "a\r\nb",
    "\u202eabc",
    "\u200f",
    "\u0085",
    "\u2028",
    "\ufeff",
    "\uffff",
    "\x01",
    "\x7f",
]
LETTERS = ["é", "e\u0301", "ß", "ss", "ı", "i", "ſ", "🦆", "größe", "名", "नाम"]
NAMES = [
    *SUBSTITUTED,
    *READ_AS_SQL,
    *INJECTING,
    *QUOTES,
    *WORDS,
    *HIDDEN,
    *INTERNAL,
    *INVISIBLE,
    *LETTERS,
]
LONG = "x" * 300


def names_for(store: Store) -> list[str]:
    return NAMES if store.kind == "postgresql" else [*NAMES, LONG]


@pytest.mark.only("hive", "postgresql")
def test_every_name_means_its_own_column_in_every_statement(store: Store) -> None:
    names = names_for(store)
    listed = ", ".join(map(quoted, names))
    store.create(
        "t", f"idx bigint NOT NULL, {', '.join(f'{quoted(name)} varchar' for name in names)}", "idx"
    )
    values = (
        f"({row}, {', '.join(literal(f'{row}-{place}') for place in range(len(names)))})"
        for row in range(3)
    )
    store.engine.run(f'INSERT INTO t ("idx", {listed}) VALUES {", ".join(values)}')
    rows = [[row, *(f"{row}-{place}" for place in range(len(names)))] for row in range(3)]
    assert store.rows("t", ["idx", *names]) == tuples(rows)
    following = names[1:] + names[:1]
    for flow in store.flows:
        moved = ", ".join(
            f"{quoted(to)} = {quoted(of)} || 'u'" for to, of in zip(names, following, strict=True)
        )
        some = " AND ".join(f"{quoted(name)} <> 'none'" for name in names[::7])
        within = f"{quoted(names[0])} IN (SELECT {quoted(names[0])} FROM t WHERE idx = 1)"
        store.engine.run(f"UPDATE t SET {moved} WHERE {within} AND {some}", flow=flow)
        rows[1][1:] = [f"{value}u" for value in rows[1][2:] + rows[1][1:2]]
        assert store.rows("t", ["idx", *names]) == tuples(rows)
    merged = store.engine.run(
        f"MERGE INTO t USING (SELECT idx + 1 idx, {listed} FROM t) s ON t.idx = s.idx AND t.{quoted(names[3])} <> s.{quoted(names[4])} "
        f"WHEN MATCHED AND t.idx = 1 THEN UPDATE SET {', '.join(f'{quoted(name)} = t.{quoted(name)} || s.{quoted(name)}' for name in names)} "
        "WHEN MATCHED THEN DELETE "
        f"WHEN NOT MATCHED THEN INSERT (idx, {listed}) VALUES (s.idx, {', '.join(f's.{quoted(name)}' for name in names)})"
    )
    rows = [
        rows[0],
        [1, *(own + other for own, other in zip(rows[1][1:], rows[0][1:], strict=True))],
        [3, *rows[2][1:]],
    ]
    assert store.rows("t", ["idx", *names]) == tuples(rows)
    assert "<b>x</b>" not in merged._repr_mimebundle_()["text/html"]
    for flow, row in zip(store.flows, (rows[1], rows[2]), strict=False):
        all_of_them = " AND ".join(
            f"{quoted(name)} = {literal(value)}" for name, value in zip(names, row[1:], strict=True)
        )
        store.engine.run(f"DELETE FROM t WHERE {all_of_them}", flow=flow)
        rows.remove(row)
        assert store.rows("t", ["idx", *names]) == tuples(rows)


def test_every_name_can_be_a_tables(store: Store) -> None:
    names = [
        *names_for(store)[:: 24 if store.kind == "postgresql" else 16],
        "${env:HOME}",
        *INJECTING,
    ]
    store.create("victim", "a bigint", None)
    wanted = list(dict.fromkeys(names))
    for some in (wanted[start : start + 10] for start in range(0, len(wanted), 10)):
        for name in some:
            store.create(name, f"{quoted(name)} varchar", None)
        union = " UNION ALL ".join(
            f"SELECT '{place}', count({quoted(name)}) FROM {quoted(name)}"
            for place, name in enumerate(some)
        )
        found = store.engine.run(union).table
        assert found is not None
        assert sorted(found.column(0).to_pylist()) == sorted(
            str(place) for place in range(len(some))
        )
        for name in some:
            store.engine.run(f"DROP TABLE {quoted(name)}")
    name = INJECTING[0]
    store.create(name, "idx bigint NOT NULL, b varchar", "idx")
    store.engine.run(f"INSERT INTO {quoted(name)} VALUES (1, 'a')")
    store.engine.run(f"UPDATE {quoted(name)} SET b = 'b'")
    assert store.rows(name) == [(1, "b")]
    assert store.rows("victim") == []


def test_names_that_a_store_cannot_hold_are_refused_with_a_next_step(store: Store) -> None:
    names = ["a\0b"] if store.kind in {"sqlite", "postgresql"} else []
    names += [LONG, "é" * 32] if store.kind == "postgresql" else []
    for name in names:
        for statement in (
            f"CREATE TABLE no_such ({quoted(name)} integer)",
            f"CREATE TABLE {quoted(name)} (a integer)",
        ):
            with pytest.raises(RowMergeError) as caught:
                store.engine.run(statement)
            assert (caught.value.code, caught.value.hint) == (
                "NOT_SUPPORTED",
                "Choose another name.",
            )
        with pytest.raises(RowMergeError) as caught:
            store.engine.run(f"SELECT * FROM {quoted(name)}")
        assert caught.value.code == "TABLE_NOT_FOUND"
    with pytest.raises(RowMergeError) as caught:
        store.engine.run('CREATE TABLE t ("\ud800" integer)')
    assert (caught.value.code, caught.value.column) == ("SYNTAX_ERROR", 18)
    with pytest.raises(RowMergeError) as caught:
        store.engine.run('CREATE TABLE no_such (a integer, "A" integer)')
    assert caught.value.code == "DUPLICATE_COLUMN_NAME"


def test_names_that_are_spelled_alike_but_for_their_code_points_are_two(spark: Any) -> None:
    with Engine(spark=spark) as engine:
        engine.run(
            'CREATE TABLE t AS SELECT 1 "é", 2 "e\u0301", 3 "ı", 4 "i", 5 "ſ", 6 "s", 7 "ß", 8 "ss"'
        )
        engine.run('UPDATE t SET "é" = "e\u0301", "i" = "ı", "s" = "ſ", "ss" = "ß"')
        found = engine.table("t").to_pylist()
    assert [list(row.values()) for row in found] == [[2, 2, 3, 3, 5, 5, 7, 7]]


def test_a_session_of_the_users_substitutes_nothing_either(spark: Any) -> None:
    session = spark.newSession()
    changed = {
        "spark.sql.variable.substitute": "true",
        "spark.sql.parser.quotedRegexColumnNames": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "x": "y",
    }
    for key, value in changed.items():
        session.conf.set(key, value)
    with Engine(spark=session) as engine:
        engine.run(
            "CREATE TABLE t AS SELECT VARCHAR '${x}' \"v${x}\", 'b' vy, VARCHAR 'c' \".*\", TIMESTAMP '2020-01-01 00:00:00 Europe/Paris' at"
        )
        engine.run('UPDATE t SET ".*" = "v${x}" || \'${x}\', "v${x}" = vy')
        found = engine.run("SELECT * FROM t WHERE at = TIMESTAMP '2019-12-31 23:00:00 UTC'").table
    assert found is not None
    assert [column.to_pylist() for column in found.columns][:3] == [["b"], ["b"], ["${x}${x}"]]
    assert {key: session.conf.get(key) for key in changed} == changed


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["hive", "iceberg"])
def test_tables_named_like_paths_stay_in_the_warehouse_and_take_nothing_with_them(
    kind: str, tmp_path: Path
) -> None:
    warehouse, outside = tmp_path / "lake" / "w", tmp_path / "outside"
    (tmp_path / "lake").mkdir()
    outside.mkdir()
    (outside / "kept").touch()
    connector: Any = (
        HiveAcidConnector(str(warehouse)) if kind == "hive" else IcebergConnector(str(warehouse))
    )
    with Engine(catalog="store", schema="default") as engine:
        engine.add_catalog("store", connector)
        engine.run("CREATE TABLE victim (a bigint)")
        before = sorted(path for path in warehouse.rglob("*") if path.is_dir())
        names = [
            "..",
            ".",
            "../..",
            "../../../outside",
            str(outside / "t"),
            str(outside),
            "victim/x",
            "a/../victim",
            LONG,
            " ",
            "~",
        ]
        for name in names:
            engine.run(f"CREATE TABLE {quoted(name)} (a bigint)")
        if kind == "hive":
            engine.run('CREATE SCHEMA "../../../outside"')
            engine.run('CREATE TABLE "../../../outside"."kept" (a bigint)')
            engine.run('DROP TABLE "../../../outside"."kept"')
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "outside"]
        assert [path.name for path in outside.iterdir()] == ["kept"]
        assert [path.name for path in (tmp_path / "lake").iterdir()] == ["w"]
        for name in names:
            engine.run(f"DROP TABLE {quoted(name)}")
        assert len(engine.tables()) == 1
        assert [path for path in before if not path.is_dir()] == []
        assert (outside / "kept").is_file()
