"""Default values of columns in memory, in the extended dialect: where they are inserted, shown and kept."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from tests.engine.statements.test_physical_forms import FORMS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CREATE = (
    "CREATE TABLE items (id bigint, status varchar(5) DEFAULT 'new' NOT NULL, n decimal(6,2) DEFAULT -1.5 COMMENT 'how many', "
    "day date DEFAULT DATE '2024-02-29')"
)
SHOWN = """CREATE TABLE memory.default.items (
   id bigint,
   status varchar(5) DEFAULT 'new' NOT NULL,
   n decimal(6, 2) DEFAULT DECIMAL '-1.5' COMMENT 'how many',
   day date DEFAULT DATE '2024-02-29'
)
WITH (
   paradigm = 'DELETE_ROW_AND_INSERT_ROW'
)"""


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    engine.run(CREATE)
    return engine


def rows(engine: Engine) -> list[tuple[str, ...]]:
    found = engine.table("items").to_pylist()
    return sorted(tuple(str(value) for value in row.values()) for row in found)


def test_an_insert_fills_omitted_columns_and_null_stays_null(engine: Engine) -> None:
    engine.run("INSERT INTO items (id) VALUES 1, 2")
    engine.run("INSERT INTO items (n, id, day) SELECT id * 10, 3, NULL FROM items WHERE id = 1")
    assert rows(engine) == [
        ("1", "new", "-1.50", "2024-02-29"),
        ("2", "new", "-1.50", "2024-02-29"),
        ("3", "new", "10.00", "None"),
    ]
    with pytest.raises(RowMergeError, match="NULL value not allowed for NOT NULL column: status"):
        engine.run("INSERT INTO items (id, status) VALUES (4, NULL)")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_merge_fills_columns_omitted_by_an_insert(spark: Any, form: str) -> None:
    settings, off = FORMS[form]
    engine = Engine(spark=spark, rule_settings=settings, dialect="extended")
    engine.options = engine.options.changed(rules_off=off)
    engine.run(CREATE)
    engine.register("s", pa.table({"id": [1, 2]}))
    engine.run("INSERT INTO items VALUES (1, 'old', 1, NULL)")
    merge = "MERGE INTO items t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 2 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    assert engine.run(merge).count == 2
    assert rows(engine) == [("1", "old", "2.00", "None"), ("2", "new", "-1.50", "2024-02-29")]


def test_show_create_table_writes_them_so_that_they_can_be_read_again(engine: Engine) -> None:
    shown = engine.run("SHOW CREATE TABLE items").explained
    assert shown == SHOWN
    engine.run("DROP TABLE items")
    engine.run(str(shown))
    assert engine.run("SHOW CREATE TABLE items").explained == shown
    found = engine.run(
        "SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 'items' ORDER BY ordinal_position"
    ).table
    assert found is not None
    assert found.column(1).to_pylist() == [None, "'new'", "DECIMAL '-1.5'", "DATE '2024-02-29'"]


def test_a_new_column_is_null_in_existing_rows_and_has_its_default_in_others(
    engine: Engine,
) -> None:
    engine.run("INSERT INTO items (id) VALUES 1")
    engine.run("ALTER TABLE items ADD COLUMN more boolean DEFAULT true")
    engine.run("INSERT INTO items (id) VALUES 2")
    assert [row[-1] for row in rows(engine)] == ["None", "True"]


def test_set_and_drop_default_change_no_rows_and_keep_versions(engine: Engine) -> None:
    engine.run("INSERT INTO items (id) VALUES 1")
    engine.run("ALTER TABLE items ALTER COLUMN status SET DEFAULT 'late'")
    engine.run("INSERT INTO items (id) VALUES 2")
    engine.run("ALTER TABLE items ALTER COLUMN n DROP DEFAULT")
    engine.run("INSERT INTO items (id) VALUES 3")
    assert [row[:3] for row in rows(engine)] == [
        ("1", "new", "-1.50"),
        ("2", "late", "-1.50"),
        ("3", "late", "None"),
    ]
    engine.undo("items")
    assert len(rows(engine)) == 2
    with pytest.raises(RowMergeError, match="Column 'n' does not have a default value"):
        engine.run("ALTER TABLE items ALTER COLUMN n DROP DEFAULT")


def test_a_second_engine_knows_the_defaults(engine: Engine) -> None:
    result = engine.run("INSERT INTO items (id) VALUES 1, 2", verify="duckdb", check=True)
    assert "agrees" in str(result.verification)
    merge = "MERGE INTO items t USING (VALUES 2, 3) AS s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    assert "agrees" in str(engine.run(merge, verify="duckdb").verification)


def test_returning_returns_defaults(engine: Engine) -> None:
    found = engine.run("INSERT INTO items (id) VALUES 1 RETURNING status, n").table
    assert found is not None
    assert [str(value) for value in found.to_pylist()[0].values()] == ["new", "-1.50"]


def test_a_default_that_breaks_a_check_constraint_is_refused_when_it_is_stored(
    engine: Engine,
) -> None:
    engine.run("ALTER TABLE items SET PROPERTIES check_constraints = ARRAY['n > 0']")
    with pytest.raises(RowMergeError, match=r"Check constraint violation: \(n > 0\)"):
        engine.run("INSERT INTO items (id) VALUES 1")
    assert rows(engine) == []
