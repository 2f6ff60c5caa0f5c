"""Names that need quotes have them wherever they could be pasted."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO "my table" USING "the news" n ON "my table"."first name" = n."first name"
WHEN MATCHED AND n."order" = 1 THEN UPDATE SET "order" = n."order" + 10
WHEN NOT MATCHED THEN INSERT ("first name") VALUES (n."first name")"""


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.run_script("""CREATE TABLE "my table" ("first name" varchar, "order" integer);
        INSERT INTO "my table" VALUES ('a', 1), ('b', 2);
        CREATE TABLE "the news" ("first name" varchar, "order" integer);
        INSERT INTO "the news" VALUES ('a', 1), ('z', 5)""")
    return engine


def failure(engine: Engine, sql: str) -> str:
    with pytest.raises(RowMergeError) as raised:
        engine.run(sql)
    return str(raised.value)


def test_a_report_writes_tables_and_columns_as_a_statement_does(engine: Engine) -> None:
    result = engine.run(MERGE)
    text = result.text()
    assert 'MERGE INTO "my table": 1 row inserted, 1 updated' in text
    assert 'MergeWriter "my table"' in text
    assert 'TableScan "the news" n' in text
    assert 'row("first name" varchar, "order" integer,' in text
    assert """n."first name" = 'a', "my table"."first name" = 'a'""" in str(
        result.why(source_row=0)
    )
    assert result.trace.target.qualified_name == 'memory.default."my table"'
    assert result.what_if(duplicates="standard").counts == result.counts


def test_hints_write_them_so_too(engine: Engine) -> None:
    assert failure(engine, """INSERT INTO "my table" VALUES ('a')""").endswith(
        'Name the columns that get values: INSERT INTO "my table" ("first name").'
    )
    assert 'Did you mean "my table"?' in failure(engine, 'SELECT * FROM "my tabel"')
    assert 'Did you mean "my table"?' in failure(engine, 'DROP TABLE "my tabel"')
    assert 'Did you mean "first name"?' in failure(
        engine, 'ALTER TABLE "my table" DROP COLUMN "first nam"'
    )
    assert """"my table"."first name" = 'a', "my table"."order" = 1""" in failure(
        engine, """UPDATE "my table" SET "order" = 1 / ("order" - 1)"""
    )


def test_the_rows_that_match_twice_can_be_pasted_into_a_condition(engine: Engine) -> None:
    engine.run("""INSERT INTO "the news" VALUES ('a', 1)""")
    assert """Target row ("first name" = 'a', "order" = 1) is matched by""" in failure(
        engine, MERGE
    )
