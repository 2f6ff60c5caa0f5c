"""SET TIME ZONE, SET SESSION and RESET SESSION; some refusals are in the cases of queries too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark

SUMMER = "TIMESTAMP '2024-07-01 10:00:00'"
ZONED = "timestamp(3) with time zone"


@pytest.fixture
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark) as made:
        yield made


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    table = engine.run(query).table
    assert table is not None
    return [
        tuple(row.values())
        for row in table.rename_columns([str(i) for i in range(table.num_columns)]).to_pylist()
    ]


def shown(engine: Engine, expression: str) -> str:
    """Return an expression as Trino writes it."""
    return str(rows(engine, f"SELECT CAST({expression} AS varchar)")[0][0])


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        *(
            (zone, "UTC")
            for zone in ("LOCAL", "'UTC'", "'+00:00'", "INTERVAL '0' HOUR", "'Etc/' || 'GMT'")
        ),
        ("INTERVAL '1' HOUR - INTERVAL '60' MINUTE", "UTC"),
        ("'Europe/Berlin'", "Europe/Berlin"),
        ("INTERVAL -'90' MINUTE", "-01:30"),
    ],
)
def test_a_session_has_the_zone_that_was_set(engine: Engine, zone: str, name: str) -> None:
    result = engine.run(f"SET TIME ZONE {zone}")
    assert result.table is None
    assert "The session has this time zone from now on" in str(result)
    assert rows(engine, "SELECT current_timezone(), timezone(now())") == [(name, name)]
    engine.run("SET TIME ZONE LOCAL")
    assert rows(engine, "SELECT current_timezone()") == [("UTC",)]


def test_a_transaction_may_set_the_zone_too(engine: Engine) -> None:
    engine.run_script("START TRANSACTION; SET TIME ZONE 'Z'; COMMIT")


def test_a_dry_run_sets_nothing(engine: Engine) -> None:
    engine.run("SET TIME ZONE 'Asia/Tokyo'", dry_run=True)
    assert rows(engine, "SELECT current_timezone()") == [("UTC",)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"CAST({SUMMER} AS {ZONED})", "2024-07-01 10:00:00.000 Europe/Berlin"),
        (f"CAST(DATE '2024-07-01' AS {ZONED})", "2024-07-01 00:00:00.000 Europe/Berlin"),
        (f"CAST('2024-07-01 10:00' AS {ZONED})", "2024-07-01 10:00:00.000 Europe/Berlin"),
        (f"CAST('2024-07-01 10:00 UTC' AS {ZONED})", "2024-07-01 10:00:00.000 UTC"),
        # Skipped clock times, and clock times that occur twice.
        (
            f"CAST(TIMESTAMP '2024-03-31 02:30:00' AS {ZONED})",
            "2024-03-31 03:30:00.000 Europe/Berlin",
        ),
        (f"to_unixtime(CAST(TIMESTAMP '2024-10-27 02:30:00' AS {ZONED}))", "1.7299926E9"),
        ("to_unixtime(CAST('2024-10-27 02:30:00' AS timestamp with time zone))", "1.729989E9"),
        (
            "to_unixtime(with_timezone(TIMESTAMP '2024-10-27 02:30:00', 'Europe/Berlin'))",
            "1.7299926E9",
        ),
        (
            "to_unixtime(with_timezone(TIMESTAMP '2024-11-03 01:30:00', 'America/New_York'))",
            "1.7306118E9",
        ),
        (f"{SUMMER} AT TIME ZONE 'America/New_York'", "2024-07-01 04:00:00 America/New_York"),
        (f"{SUMMER} = TIMESTAMP '2024-07-01 10:00:00 Europe/Berlin'", "true"),
        (f"date_diff('hour', {SUMMER}, TIMESTAMP '2024-07-01 10:00:00 UTC')", "2"),
        (f"to_unixtime({SUMMER})", "1.7198208E9"),
        ("from_unixtime(0)", "1970-01-01 01:00:00.000 Europe/Berlin"),
        ("from_unixtime(0, 'Asia/Tokyo')", "1970-01-01 09:00:00.000 Asia/Tokyo"),
        ("from_iso8601_timestamp('2024-07-01T10:00:00')", "2024-07-01 10:00:00.000 Europe/Berlin"),
        ("from_iso8601_timestamp('2024-07-01T10:00:00Z')", "2024-07-01 10:00:00.000 UTC"),
        (
            "parse_datetime('2024-07-01 10', 'yyyy-MM-dd HH')",
            "2024-07-01 10:00:00.000 Europe/Berlin",
        ),
        ("date_parse('2024-07-01 10', '%Y-%m-%d %H')", "2024-07-01 10:00:00.000"),
        ("CAST(TIMESTAMP '2024-07-01 22:30:00 UTC' AS date)", "2024-07-01"),
        (f"to_iso8601(CAST({SUMMER} AS {ZONED}))", "2024-07-01T10:00:00.000+02:00"),
        (f"hour(CAST({SUMMER} AS {ZONED}))", "10"),
        ("localtimestamp = CAST(current_timestamp AS timestamp(3))", "true"),
        ("current_date = CAST(current_timestamp AS date)", "true"),
        ("localtime = CAST(localtimestamp AS time(3))", "true"),
    ],
)
def test_a_clock_without_a_zone_is_that_of_the_session(
    engine: Engine, expression: str, expected: str
) -> None:
    engine.run("SET TIME ZONE 'Europe/Berlin'")
    assert shown(engine, expression) == expected


@pytest.mark.parametrize("catalog", ["memory", "ice"])
def test_the_stored_value_is_the_instant_of_the_sessions_clock(
    engine: Engine, catalog: str, tmp_path: Path
) -> None:
    engine.add_catalog("ice", IcebergConnector(tmp_path))
    engine.run_script(
        f"""
        CREATE TABLE {catalog}.default.t (id integer, at timestamp(6) with time zone);
        SET TIME ZONE 'Asia/Tokyo';
        INSERT INTO {catalog}.default.t VALUES (1, TIMESTAMP '2024-07-01 09:00:00'), (2, TIMESTAMP '2024-07-01 09:00:00 UTC'), (3, NULL);
        INSERT INTO {catalog}.default.t SELECT 4, DATE '2024-07-02';
        MERGE INTO {catalog}.default.t t USING (VALUES (TIMESTAMP '2024-07-01 09:00:00', TIMESTAMP '2024-07-01 12:00:00')) s (old, new)
            ON t.at = s.old WHEN MATCHED THEN UPDATE SET at = s.new;
        UPDATE {catalog}.default.t SET at = TIMESTAMP '2024-07-03 00:00:00' WHERE id = 3;
        """
    )
    stored = rows(
        engine,
        f"SELECT id, CAST(at AT TIME ZONE 'UTC' AS varchar) FROM {catalog}.default.t ORDER BY id",
    )
    assert stored == [
        (1, "2024-07-01 03:00:00.000000 UTC"),
        (2, "2024-07-01 09:00:00.000000 UTC"),
        (3, "2024-07-02 15:00:00.000000 UTC"),
        (4, "2024-07-01 15:00:00.000000 UTC"),
    ]


@pytest.mark.parametrize("count", [3, 3000])
def test_many_clocks_in_values_are_the_session_s_in_all_years(engine: Engine, count: int) -> None:
    engine.run("SET TIME ZONE 'Europe/Berlin'")
    clocks = ", ".join(f"({n}, TIMESTAMP '2024-10-27 02:30:00')" for n in range(count))
    years = "(-1, TIMESTAMP '2024-07-01 12:00:00 UTC'), (-2, TIMESTAMP '0001-01-01 00:00:00'), (-3, TIMESTAMP '2050-07-01 00:00:00'), (-4, NULL)"
    found = rows(
        engine,
        f"SELECT CAST(x AT TIME ZONE 'UTC' AS varchar), count(*) FROM (VALUES {years}, {clocks}) t (n, x) GROUP BY x",
    )
    assert sorted(found, key=str) == [
        ("0000-12-31 23:06:32 UTC", 1),
        ("2024-07-01 12:00:00 UTC", 1),
        ("2024-10-27 01:30:00 UTC", count),
        ("2050-06-30 22:00:00 UTC", 1),
        (None, 1),
    ]


def test_a_zone_may_be_set_as_a_property(engine: Engine) -> None:
    engine.run("SET SESSION time_zone_id = 'Asia/Tokyo'")
    assert rows(engine, "SELECT current_timezone()") == [("Asia/Tokyo",)]
    engine.run("RESET SESSION time_zone_id")
    assert rows(engine, "SELECT current_timezone()") == [("UTC",)]


def test_a_recursion_runs_the_configured_number_of_steps(engine: Engine) -> None:
    numbers = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT max(n) FROM r"
    engine.run("SET SESSION max_recursion_depth = 2")
    with pytest.raises(RowMergeError, match=r"Recursion depth limit exceeded \(2\)"):
        engine.run(numbers)
    engine.run("SET SESSION max_recursion_depth = 1 + 2")
    assert rows(engine, numbers) == [(4,)]


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ("max_recursion_depth = 0", "INVALID_SESSION_PROPERTY", "max_recursion_depth must be equal or greater than 1"),
        (
            "max_recursion_depth = 'x'",
            "INVALID_SESSION_PROPERTY",
            "Unable to set session property 'max_recursion_depth' to ''x'': it must be integer",
        ),
        (
            "max_recursion_depth = NULL",
            "INVALID_SESSION_PROPERTY",
            "Unable to set session property 'max_recursion_depth' to 'null': it must not be null",
        ),
        ("max_recursion_depth = (SELECT 3)", "EXPRESSION_NOT_CONSTANT", "Constant expression cannot contain a subquery"),
        ("time_zone_id = 'Nowhere'", "INVALID_SESSION_PROPERTY", "Time zone not supported: Nowhere"),
        ("time_zone_id = 1 / 0", "INVALID_SESSION_PROPERTY", "Unable to set session property 'time_zone_id' to '(1 / 0)': it must be varchar"),
        ("task_concurrency = 2", "NOT_SUPPORTED", "The session property task_concurrency is not supported by this engine"),
    ],
)  # fmt: skip
def test_a_value_that_a_property_cannot_have_is_refused(
    engine: Engine, value: str, code: str, message: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"SET SESSION {value}")
    assert (caught.value.code, caught.value.message) == (code, message)
    assert rows(engine, "SELECT current_timezone()") == [("UTC",)]
