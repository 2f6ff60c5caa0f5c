"""Predicates in the database never omit relevant rows, and if the database compares like the engine, they return no others."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowmerge_nb.connectors.jdbc.postgresql import postgres_transaction as postgresql
from rowmerge_nb.connectors.jdbc.predicates import MOST_VALUES, NOTHING
from rowmerge_nb.connectors.jdbc.sqlite import sqlite_transaction as sqlite
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_predicates import terms_of as sqlite_terms
from rowmerge_nb.spi import ColumnDomain, Constraint, parse_type
from tests.connectors.jdbc.support import SESSION, Database, Statement
from tests.connectors.jdbc.test_calls import create, insert

TEXTS = [
    "",
    "a",
    "A",
    "b",
    "B",
    "Z",
    "z",
    "ä",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "☃",
    "\U0001f600",
    "a b",
    "ab",
    "a-b",
    "_",
    "0",
    "10",
    "9",
    "'",
    "x ",
    "\x01",
]
DAYS = [
    dt.date(1, 1, 1),
    dt.date(999, 12, 31),
    dt.date(1969, 12, 31),
    dt.date(2024, 2, 29),
    dt.date(9999, 12, 31),
]
MOMENTS = [
    dt.datetime.fromisoformat(text)
    for text in (
        "0001-01-01",
        "2024-02-29",
        "2024-02-29 10:00",
        "2024-02-29 10:30",
        "2024-02-29 10:30:05",
        "2024-02-29 10:30:05.120000",
        "9999-12-31 23:59:59.999999",
    )
]
NUMBERS = [
    0.0,
    -0.0,
    0.1,
    0.1 + 0.2,
    1 / 3,
    1e-300,
    -1e300,
    1e15 + 0.3,
    float("inf"),
    float("-inf"),
    5e-324,
]

VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "smallint": [-32768, -1, 0, 1, 32767],
    "integer": [-(2**31), -1, 0, 1, 2**31 - 1],
    "bigint": [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1],
    "decimal(5,2)": [Decimal(text) for text in ("-999.99", "-0.01", "0.00", "0.10", "0.11", "999.99")],
    "decimal(15,3)": [Decimal(text) for text in ("-999999999999.999", "0.001", "123456789012.344", "123456789012.345")],
    "decimal(38,10)": [Decimal(text) for text in ("-1234567890123456789012345678.0123456789", "0", "0.0000000001", "12345678901234567890")],
    "varchar": TEXTS,
    "varchar(4)": TEXTS,
    "char(4)": ["    ", "a   ", "A   ", "b   ", "ab  ", "ä   ", "☃   ", "a\t  "],
    "date": DAYS,
    "timestamp(6)": MOMENTS,
    "timestamp(3)": [moment.replace(microsecond=moment.microsecond // 1000 * 1000) for moment in MOMENTS],
    "timestamp(6) with time zone": [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    "time(6)": [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999_999)],
    "double": NUMBERS,
    "real": [0.0, 0.5, -1.5, 16_777_216.0, float("inf"), 0.10000000149011612],
    "varbinary": [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"],
    "uuid": ["12345678-1234-5678-9abc-def012345678", "02345678-1234-5678-9abc-def012345678"],
    "json": ["1", "[2]"],
}  # fmt: skip
EXACT = {
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "decimal(5,2)",
    "decimal(15,3)",
    "varchar",
    "varchar(4)",
    "date",
}
"""Types for which no irrelevant row is returned, for any domain."""
ALSO = {
    "sqlite": {"varbinary"},
    "postgresql": {"timestamp(6)", "timestamp(3)", "timestamp(6) with time zone", "time(6)", "decimal(38,10)", "double", "real", "varbinary"},
}  # fmt: skip
EXAMPLES = int(os.environ.get("ROWMERGE_EXAMPLES", "60"))
LISTS_ONLY = {"char(4)", "uuid"}
"""Types compared only by equality."""
RANGES_ONLY = {"timestamp(6)", "timestamp(3)"}
"""Types that SQLite compares only by order: a list of values becomes a range."""


def matters(value: Any, domain: ColumnDomain) -> bool:
    if value is None or (domain.values is not None and value not in domain.values):
        return False
    return (domain.low is None or value >= domain.low) and (
        domain.high is None or value <= domain.high
    )


@pytest.mark.trial
def test_no_relevant_row_is_omitted(database: Database) -> None:
    names = {kind: f"v{number}" for number, kind in enumerate(VALUES)}
    create(
        database,
        "t",
        {"id": "bigint", **{name: kind for kind, name in names.items()}},
        primary_key="id",
    )
    longest = max(map(len, VALUES.values()))
    values = {
        kind: [*listed, *[None] * (longest + 1 - len(listed))] for kind, listed in VALUES.items()
    }
    arrays = {names[kind]: pa.array(values[kind], parse_type(kind).arrow) for kind in VALUES}
    insert(database, "t", pa.table({"id": range(longest + 1), **arrays}))
    statement = Statement(database, "t")
    everything = statement.read().to_pydict()

    @given(data=st.data())
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    def check(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(list(VALUES)))
        bounds = st.none() | st.sampled_from(VALUES[kind])
        chosen = data.draw(st.none() | st.lists(st.sampled_from([*VALUES[kind], None]), max_size=4))
        domain = ColumnDomain(
            None if chosen is None else tuple(chosen), data.draw(bounds), data.draw(bounds)
        )
        found = statement.read(names[kind], **{names[kind]: domain}).column(0).to_pylist()
        wanted = [value for value in everything[names[kind]] if matters(value, domain)]
        assert [value for value in found if matters(value, domain)] == wanted
        exact = kind in EXACT | ALSO[database.kind] or kind in (
            LISTS_ONLY if domain.values is not None else RANGES_ONLY
        )
        if exact and domain != ColumnDomain():
            assert found == wanted

    check()
    statement.rollback()


def test_texts_are_not_compared_by_the_locale_of_their_column(pg: Database) -> None:
    known = [
        row[0]
        for row in pg.rows(
            "SELECT collname::text AS c FROM pg_collation WHERE collname IN ('en-x-icu', 'de-x-icu', 'en_US')"
        )
    ]
    if not known:
        pytest.skip("the server has no collation of a language")
    pg.sql(
        f'CREATE TABLE t (v text COLLATE "{known[0]}" PRIMARY KEY)',
        "INSERT INTO t VALUES ('a'), ('B'), ('c'), ('Z'), ('ä')",
        "CREATE COLLATION IF NOT EXISTS folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "CREATE TABLE f (v text COLLATE folded)",
        "INSERT INTO f VALUES ('a'), ('A'), ('b')",
    )  # fmt: skip
    statement = Statement(pg, "t")
    assert sorted(statement.read(v=ColumnDomain(low="B", high="Z")).column(0).to_pylist()) == [
        "B",
        "Z",
    ]
    assert sorted(statement.read(v=ColumnDomain(low="a")).column(0).to_pylist()) == ["a", "c", "ä"]
    statement.rollback()
    folded = Statement(pg, "f")
    assert "a" in folded.read(v=ColumnDomain(values=("a",))).column(0).to_pylist()
    assert folded.read(v=ColumnDomain(low="a", high="a")).column(0).to_pylist() == ["a"]
    folded.rollback()


def test_texts_of_a_non_unicode_database_are_compared_only_by_equality(
    pg: Database, postgresql: str
) -> None:
    from rowmerge_nb import PostgresConnector

    pg.sql(
        "DROP DATABASE IF EXISTS latin",
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    latin = Database(
        "postgresql",
        PostgresConnector(postgresql.replace("dbname=postgres", "dbname=latin")),
        "public",
    )
    latin.sql("CREATE TABLE t (v text PRIMARY KEY)", "INSERT INTO t VALUES ('a'), ('ä'), ('z')")
    statement = Statement(latin, "t")
    assert statement.read(v=ColumnDomain(values=("a",))).column(0).to_pylist() == ["a"]
    assert statement.read(v=ColumnDomain(values=("ä", "☃"))).num_rows == 3
    assert statement.read(v=ColumnDomain(low="b", high="c")).num_rows == 3
    statement.rollback()
    latin.connector.close()
    pg.sql("DROP DATABASE latin")


def test_columns_of_sqlite_with_their_own_collation_are_ordered_by_bytes_anyway(
    lite: Database,
) -> None:
    lite.sql(
        "CREATE TABLE t (v text COLLATE NOCASE PRIMARY KEY)",
        "INSERT INTO t VALUES ('a'), ('B'), ('Z')",
    )
    statement = Statement(lite, "t")
    assert statement.read(v=ColumnDomain(low="C", high="Z")).column(0).to_pylist() == ["Z"]
    assert statement.read(v=ColumnDomain(values=("b", "B"))).column(0).to_pylist() == ["B"]
    statement.rollback()


@pytest.mark.parametrize("kind", ["timestamp", "date", "timestamptz"])
def test_moments_written_by_other_programs_in_other_forms_are_found(
    lite: Database, kind: str
) -> None:
    written = {
        "timestamp": ["2024-02-29", "2024-02-29 10", "2024-02-29T10:30", "2024-02-29T10:30:05", "2024-02-29 10:30:05.1", "2024-02-29 10:30:05.12"],
        "date": ["2024-02-28", "2024-02-29"],
        "timestamptz": ["2024-02-29 23:00:00-09:00", "2024-02-29T01:00:00+14", "2024-02-29 10:00Z", "2024-02-29 10:00:00.5+00:00"],
    }[kind]  # fmt: skip
    lite.sql(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {kind})")
    lite.sql(*(f"INSERT INTO t (v) VALUES ('{text}')" for text in written))
    statement = Statement(lite, "t")
    kept = statement.read("v").column(0).to_pylist()
    for low in kept:
        for high in kept:
            domain = ColumnDomain(low=low, high=high)
            found = statement.read("v", v=domain).column(0).to_pylist()
            assert [value for value in found if matters(value, domain)] == [
                value for value in kept if matters(value, domain)
            ]
            if kind != "timestamptz":
                assert len(found) == sum(matters(value, domain) for value in kept)
    statement.rollback()


@pytest.mark.each_value
@pytest.mark.parametrize("value", ["o'k", '"; DROP TABLE t; --', "\\", "%_", "a\0b", "{}"])
def test_values_and_names_may_hold_any_characters(database: Database, value: str) -> None:
    name = "a 'b\" c"
    quoted = '"' + name.replace('"', '""') + '"'
    database.sql(f"CREATE TABLE t ({quoted} varchar(40) PRIMARY KEY, n int)")
    kept = value.replace("\0", "")
    insert(database, "t", pa.table({name: [kept, "x"], "n": pa.array([1, 2], pa.int32())}))
    statement = Statement(database, "t")
    found = statement.read(name, **{name: ColumnDomain(values=(value,))}).column(0).to_pylist()
    assert found == ([kept] if "\0" not in value else [kept, "x"])
    assert (
        kept
        in statement.read(name, **{name: ColumnDomain(low=kept, high=kept)}).column(0).to_pylist()
    )
    statement.rollback()


def test_an_empty_domain_reads_nothing_and_a_long_list_becomes_a_range(database: Database) -> None:
    database.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 1), (2, NULL), (5000, 3)",
    )
    statement = Statement(database, "t")
    assert statement.read(v=ColumnDomain(values=())).num_rows == 0
    assert statement.read(v=ColumnDomain(values=(None,))).num_rows == 0
    assert statement.read(id=ColumnDomain(values=(1, 2), low=3)).num_rows == 0
    (split,) = statement.splits(id=ColumnDomain(values=()))
    assert (split.predicate, split.carries_rows) == (NOTHING, True)
    (split,) = statement.splits(id=ColumnDomain(values=tuple(range(3, MOST_VALUES + 4))))
    assert "IN" not in split.predicate
    assert statement.read(id=ColumnDomain(values=tuple(range(-MOST_VALUES, 3)))).column(
        0
    ).to_pylist() == [1, 2]
    nan = float("nan")
    assert statement.read(v=ColumnDomain(values=(nan,), low=nan)).num_rows == 3
    assert statement.read(nowhere=ColumnDomain(values=())).num_rows == 3
    statement.rollback()


def test_the_rows_of_known_keys_are_read_at_once_and_in_the_order_of_the_table(
    database: Database, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sqlite, "SPLIT_ROWS", 1_000)
    monkeypatch.setattr(postgresql, "SPLIT_BLOCKS", 4)
    monkeypatch.setattr(postgresql, "SPLIT_ROWS", 1_000)
    for module in (sqlite, postgresql):
        monkeypatch.setattr(module, "SMALL_ROWS", 100)
    database.sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
    count = 4_000
    ids = [number * 7 % count for number in range(count)]
    insert(
        database,
        "t",
        pa.table({"id": pa.array(ids, pa.int32()), "v": pa.array(range(count), pa.int32())}),
    )
    if database.kind == "postgresql":
        database.sql("ANALYZE t")
    statement = Statement(database, "t")
    assert len(statement.splits()) > 2
    (split,) = statement.splits(id=ColumnDomain(values=(5, 3_000)))
    assert split.carries_rows
    (split,) = statement.splits(id=ColumnDomain(low=100, high=999))
    assert not split.carries_rows
    assert len(statement.splits(id=ColumnDomain(low=500))) > 1, "too many for one task"
    for domain, wanted in (
        (ColumnDomain(low=100, high=999), range(100, 1_000)),
        (ColumnDomain(low=500), range(500, count)),
        (ColumnDomain(high=2_999), range(3_000)),
    ):
        found = statement.read(id=domain).to_pydict()
        assert sorted(found["id"]) == list(wanted)
        if database.kind == "postgresql":
            assert found["v"] == sorted(found["v"]), "an index must not decide about the order"
        assert found == statement.read(id=domain).to_pydict()
    splits = statement.splits(v=ColumnDomain(high=2_999))
    assert len(splits) > 1
    assert statement.read(v=ColumnDomain(high=2_999)).num_rows == 3_000
    statement.rollback()


def test_irrelevant_misfits_are_not_read(lite: Database) -> None:
    lite.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 5), (2, 'abc')"
    )
    statement = Statement(lite, "t")
    assert statement.read(id=ColumnDomain(values=(1,))).num_rows == 1
    with pytest.raises(Exception, match=r"'abc' \(text\), which is no integer"):
        statement.read(id=ColumnDomain(low=1))
    statement.rollback()


def test_a_table_without_rowids_is_cut_by_its_key_and_a_column_may_be_named_rowid(
    lite: Database, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sqlite, "SPLIT_ROWS", 1_000)
    monkeypatch.setattr(sqlite, "SMALL_ROWS", 10)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4500)"
    lite.sql(
        "CREATE TABLE w (id int, k text, PRIMARY KEY (id, k)) WITHOUT ROWID",
        f"{numbers} INSERT INTO w SELECT i * 1000, 'x' FROM n",
        "CREATE TABLE r (rowid text PRIMARY KEY, v int)",
        f"{numbers} INSERT INTO r SELECT 'k' || i, i FROM n",
    )
    for table, column in (("w", "id"), ("r", "v")):
        statement = Statement(lite, table)
        assert len(statement.splits()) == 5
        found = statement.read(column).column(0).to_pylist()
        assert sorted(found) == [i * (1000 if table == "w" else 1) for i in range(1, 4501)]
        assert (
            statement.connector.get_split_manager().get_splits(
                statement.transaction, SESSION, statement.handle, Constraint()
            )
            == statement.splits()
        )
        statement.rollback()
    lite.sql(
        "DELETE FROM w",
        "INSERT INTO w VALUES ('text', 'x')",
        f"{numbers} INSERT INTO w SELECT -i, 'x' FROM n",
    )
    with pytest.raises(Exception, match=r"'text' \(text\), which is no integer"):
        Statement(lite, "w").read()


def test_decimals_that_sqlite_stores_inexactly_are_not_compared(lite: Database) -> None:
    lite.sql("CREATE TABLE t (id int PRIMARY KEY, wide decimal(20,2), bare numeric, ok double)")
    columns = {column.name: column for column in Statement(lite, "t").handle.columns}
    known = {
        name: sqlite_terms(column, unicode=True) is not None for name, column in columns.items()
    }
    assert known == {"id": True, "wide": False, "bare": False, "ok": True}
