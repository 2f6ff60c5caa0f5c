"""Values at the limits of their types are read back as written, from every store and by both flows, or refused by name."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from rowmerge_nb import DuplicateMatchError, RowMergeError
from tests.extremes.conftest import Store
from tests.extremes.support import literal, quoted, tuples

WHOLE, PART = Decimal("9" * 38), Decimal("0." + "9" * 38)
DECIMALS = [
    *[
        (1, WHOLE, PART),
        (2, Decimal(f"-{WHOLE}"), Decimal(f"-{PART}")),
        (3, Decimal(0), Decimal("1e-38")),
    ],
    *[
        (4, Decimal(1), Decimal("-1e-38")),
        (5, None, None),
        (6, Decimal("9" * 37 + "8"), Decimal("0." + "9" * 37 + "8")),
    ],
]
WIDE = pa.schema(
    [("idx", pa.int64()), ("whole", pa.decimal128(38, 0)), ("part", pa.decimal128(38, 38))]
)
INJECTED = [
    *(
        "'; DROP TABLE victim; --",
        "\\'; DROP TABLE victim; --",
        '"; DROP TABLE victim; --',
        "$$; DROP TABLE victim; $$",
        "$a$x$a$",
    ),
    *(
        "\\",
        "\\\\",
        "\\n",
        "\\x41",
        "\\u0041",
        "E'\\''",
        "%s",
        "?",
        ":x",
        "$1",
        "${env:HOME}",
        "{0}",
        "{{ 1 }}",
        "a\nb\r\tc",
        "\u202e\u200f",
    ),
    *(
        "''",
        "'",
        "`",
        "NULL",
        "null",
        "e\u0301",
        "é",
        "🦆",
        "\ufeff",
        "\uffff",
        " ",
        "",
        "<script>alert(1)</script>",
        "/* */ -- ;",
    ),
]


def test_decimals_of_38_digits_keep_all_of_them(store: Store) -> None:
    source = pa.Table.from_pylist(
        [dict(zip(WIDE.names, row, strict=True)) for row in DECIMALS], WIDE
    )
    store.create("t", "idx bigint NOT NULL, whole decimal(38,0), part decimal(38,38)", "idx")
    store.engine.run("INSERT INTO t SELECT * FROM source", namespace={"source": source})
    assert store.rows("t") == tuples(DECIMALS)
    for flow in store.flows:
        store.engine.run("UPDATE t SET whole = -whole, part = -part", flow=flow)
        store.engine.run(
            "UPDATE t SET whole = -whole, part = -part WHERE whole <> DECIMAL '12' OR idx > 0",
            flow=flow,
        )
        assert store.rows("t") == tuples(DECIMALS)
    sql = (
        "MERGE INTO t USING source s ON t.whole = s.whole AND t.part = s.part "
        "WHEN MATCHED THEN UPDATE SET part = s.part, whole = s.whole WHEN NOT MATCHED THEN INSERT VALUES (s.idx + 100, s.whole, s.part)"
    )
    counts = store.engine.run(sql, namespace={"source": source})
    assert counts.count == 6
    assert store.rows("t") == tuples([*DECIMALS, (105, None, None)])
    with pytest.raises(RowMergeError) as caught:
        store.engine.run("UPDATE t SET whole = whole + 1")
    assert caught.value.code == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert len(store.rows("t")) == 7


def test_nan_infinity_and_minus_zero_keep_their_values(store: Store) -> None:
    values = [
        (1, math.nan),
        (2, math.inf),
        (3, -math.inf),
        (4, -0.0),
        (5, 0.0),
        (6, None),
        (7, 5e-324),
        (8, 1.7976931348623157e308),
    ]
    source = pa.table(
        {"idx": [row[0] for row in values], "x": pa.array([row[1] for row in values], pa.float64())}
    )
    store.create("t", "idx bigint NOT NULL, x double, y double", "idx")
    if store.kind == "sqlite":
        with pytest.raises(RowMergeError) as caught:
            store.engine.run(
                "INSERT INTO t SELECT idx, x, x FROM source", namespace={"source": source}
            )
        assert "NaN" in caught.value.message
        assert caught.value.hint
        values = values[1:]
        source = source.slice(1)
    store.engine.run("INSERT INTO t SELECT idx, x, x FROM source", namespace={"source": source})
    for flow in store.flows:
        store.engine.run("UPDATE t SET y = x WHERE x = x OR x IS NULL OR x <> x", flow=flow)
    merged = store.engine.run(
        "MERGE INTO t USING source s ON t.x = s.x AND t.idx = s.idx "
        "WHEN MATCHED THEN UPDATE SET y = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.idx + 100, s.x, s.x)",
        namespace={"source": source},
    )
    assert merged.count == len(values)
    if store.kind == "sqlite":
        # It stores a zero without its sign.
        values = [(idx, 0.0 if x == 0 else x) for idx, x in values]
    expected = [(idx, x, x) for idx, x in values] + [
        (idx + 100, x, x) for idx, x in values if x is None or math.isnan(x)
    ]
    found = store.rows("t")
    assert [(row[0], repr(row[1]), repr(row[2])) for row in found] == [
        (i, repr(x), repr(y)) for i, x, y in tuples(expected)
    ]
    for flow in store.flows:
        assert store.engine.run(
            "DELETE FROM t WHERE x = 0.0 AND idx = 4 OR x <> x", flow=flow
        ).count in {0, 1, 3}
    assert {row[0] for row in store.rows("t")} == {row[0] for row in expected} - {1, 4, 101}


@pytest.mark.only("hive", "sqlite", "postgresql", "iceberg")
def test_texts_are_read_back_unchanged_and_only_as_text(store: Store) -> None:
    store.create("victim", "a bigint", None)
    store.create("t", "id varchar NOT NULL, v varchar", "id")
    rows = ", ".join(f"({literal(value)}, {literal(value)})" for value in INJECTED)
    store.engine.run(f"INSERT INTO t VALUES {rows}")
    assert store.rows("t") == tuples([(value, value) for value in INJECTED])
    listed = ", ".join(map(literal, INJECTED))
    for flow in store.flows:
        updated = store.engine.run(f"UPDATE t SET v = id WHERE v IN ({listed})", flow=flow)
        assert updated.count == len(INJECTED)
    store.engine.run(
        f"MERGE INTO t USING (VALUES {', '.join(f'({literal(value)})' for value in INJECTED)}) s (id) ON t.id = s.id AND t.v = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.id || t.v WHEN NOT MATCHED THEN INSERT VALUES ('none', s.id)"
    )
    assert store.rows("t") == tuples([(value, value * 2) for value in INJECTED])
    kept = list(INJECTED)
    for flow, value in zip(store.flows, INJECTED, strict=False):
        told = store.engine.run(
            f"DELETE FROM t WHERE id = {literal(value)} AND v = {literal(value * 2)}", flow=flow
        )
        assert told.count == 1
        kept.remove(value)
    assert store.rows("t", ["id"]) == tuples([(value,) for value in kept])
    shown = store.engine.run("UPDATE t SET v = v WHERE id LIKE '<script>%'")
    assert "<script>alert" not in shown._repr_mimebundle_()["text/html"]
    assert store.rows("victim") == []


def test_a_zero_byte_is_a_character_or_is_refused(store: Store) -> None:
    store.create("t", "id varchar NOT NULL, v varchar", "id")
    store.engine.run("INSERT INTO t VALUES ('a', 'b')")
    statement = "INSERT INTO t VALUES ('a\0b', 'x\0y')"
    if store.kind == "postgresql":
        with pytest.raises(RowMergeError) as caught:
            store.engine.run(statement)
        assert caught.value.code == "INVALID_CAST_ARGUMENT"
        assert store.rows("t") == [("a", "b")]
    else:
        store.engine.run(statement)
        assert store.rows("t") == tuples([("a", "b"), ("a\0b", "x\0y")])
    store.engine.run("UPDATE t SET v = 'c' WHERE id = 'a\0b' OR id = 'a'")
    assert {row[1] for row in store.rows("t")} == {"c"}
    store.engine.run("DELETE FROM t WHERE id = 'a\0b'")
    assert store.rows("t") == [("a", "c")]


@pytest.mark.only("hive")
def test_texts_of_a_megabyte(store: Store) -> None:
    size = 1 << 20
    source = pa.table({"idx": [1, 2, 3], "v": ["a" * size, "ü" * size, None]})
    store.create("t", "idx bigint NOT NULL, v varchar", "idx")
    store.engine.run("INSERT INTO t SELECT idx, v FROM source", namespace={"source": source})
    merged = store.engine.run(
        "MERGE INTO t USING source s ON t.v = s.v WHEN MATCHED THEN UPDATE SET v = s.v || 'x' WHEN NOT MATCHED THEN INSERT VALUES (4, s.v)",
        namespace={"source": source},
    )
    assert merged.count == 3
    assert len(str(merged)) < 100_000
    assert store.rows("t") == tuples(
        [(1, "a" * size + "x"), (2, "ü" * size + "x"), (3, None), (4, None)]
    )
    for flow in store.flows:
        store.engine.run("UPDATE t SET v = v || 'y' WHERE length(v) > 1000", flow=flow)
    times = len(store.flows)
    assert [len(row[1]) for row in store.rows("t", ["idx", "v"]) if row[1]] == [
        size + 1 + times
    ] * 2


@pytest.mark.only("memory", "iceberg", "postgresql")
def test_empty_and_missing_keys(store: Store) -> None:
    store.create("t", "idx bigint NOT NULL, k varchar, v varchar", "idx")
    store.engine.run("INSERT INTO t VALUES (1, '', 'empty'), (2, NULL, 'none'), (3, ' ', 'blank')")
    told = store.engine.run(
        "MERGE INTO t USING (VALUES ('', 'e'), (NULL, 'n'), (' ', 'b')) s (k, v) ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (4, s.k, s.v)"
    )
    assert told.count == 3
    assert store.rows("t") == tuples(
        [(1, "", "e"), (2, None, "none"), (3, " ", "b"), (4, None, "n")]
    )
    store.engine.run(
        "MERGE INTO t USING (VALUES (NULL)) s (k) ON t.k IS NOT DISTINCT FROM s.k WHEN MATCHED THEN DELETE"
    )
    assert store.rows("t", ["idx"]) == [(1,), (3,)]


@pytest.mark.only("hive", "sqlite", "iceberg")
def test_tables_without_rows_as_target_and_as_source(store: Store) -> None:
    store.create("t", "idx bigint NOT NULL, v varchar", "idx")
    store.create("s", "idx bigint NOT NULL, v varchar", "idx")
    merge = "MERGE INTO t USING s ON t.idx = s.idx WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.idx, s.v)"
    assert store.engine.run(merge).count == 0
    for flow in store.flows:
        assert store.engine.run("UPDATE t SET v = 'x'", flow=flow).count == 0
        assert (
            store.engine.run("DELETE FROM t WHERE idx IN (SELECT idx FROM s)", flow=flow).count == 0
        )
    assert store.engine.run("INSERT INTO t SELECT * FROM s").count == 0
    store.engine.run("INSERT INTO s VALUES (1, 'a')")
    assert store.engine.run(merge).count == 1
    store.engine.run("DELETE FROM s")
    assert store.engine.run(merge).count == 0
    assert store.rows("t") == [(1, "a")]


@pytest.mark.each_value
@pytest.mark.parametrize("trace", ["auto", "full", "off"])
def test_reports_escape_and_show_odd_names(store: Store, trace: str) -> None:
    if trace != "auto" and store.kind != "memory":
        pytest.skip("the traces of all stores are made alike")
    odd, key = "<b>merge_row\n\u202e</b>", '<i>"row_id"'
    store.create(
        "t",
        f"{quoted(key)} bigint NOT NULL, {quoted(odd)} varchar, present varchar, unique_id varchar",
        key,
    )
    store.engine.run("INSERT INTO t VALUES (1, '<u>x</u>', 'p', 'u'), (2, NULL, '', 'v')")
    rows = "(VALUES (1, '<s>1</s>'), (1, '<s>2</s>'), (3, '<s>3</s>'))"
    clause = f"WHEN MATCHED THEN UPDATE SET {quoted(odd)} = s.{quoted(odd)}, present = t.unique_id"
    sql = f"MERGE INTO t USING {rows} s ({quoted(key)}, {quoted(odd)}) ON t.{quoted(key)} = s.{quoted(key)} {clause}"
    with pytest.raises(DuplicateMatchError) as caught:
        store.engine.run(sql, trace=trace)
    failed = caught.value.result
    done = store.engine.run(sql.replace("(1, '<s>2</s>'), ", ""), trace=trace)
    for result in (failed, done):
        html = result._repr_mimebundle_()["text/html"]
        assert "&lt;b&gt;" in html
        assert not [mark for mark in ("<b>m", '<i>"', "<u>x", "<s>1", "\u202e") if mark in html]
        assert "merge_row" in str(result)
    if trace != "off":
        assert list(done.journeys().columns)[:4] == [
            "source_row",
            f"source.{key}",
            f"source.{odd}",
            "join",
        ]
    assert store.rows("t") == tuples([(1, "<s>1</s>", "u", "u"), (2, None, "", "v")])
