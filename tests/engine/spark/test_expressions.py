"""Values of expressions on Spark: casts, literals, operators and functions of dates, as in Trino 476.

A Spark job computes many values, which are reported one by one; failures run separately.
"""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import Engine, RowMergeError

pytestmark = pytest.mark.spark

ZONED = "TIMESTAMP '2024-02-29 12:00:00 Europe/Berlin'"
VALUES: dict[str, Any] = {
    # zones of values
    f"CAST({ZONED} AS timestamp(0))": "2024-02-29 12:00:00",
    f"CAST({ZONED} AS varchar)": "2024-02-29 12:00:00 Europe/Berlin",
    f"CAST({ZONED} AS date)": "2024-02-29",
    f"CAST({ZONED} AT TIME ZONE 'Asia/Kolkata' AS varchar)": "2024-02-29 16:30:00 Asia/Kolkata",
    f"CAST({ZONED} AT TIME ZONE INTERVAL '-03:30' HOUR TO MINUTE AS varchar)": "2024-02-29 07:30:00 -03:30",
    f"{ZONED} = TIMESTAMP '2024-02-29 11:00:00 UTC'": True,
    f"hour({ZONED})": 12,
    "timezone_hour(TIMESTAMP '2024-02-29 12:00:00 -03:30') * 100 + timezone_minute(TIMESTAMP '2024-02-29 12:00:00 -03:30')": -330,
    "CAST(with_timezone(TIMESTAMP '2024-07-01 12:00:00', 'America/New_York') AS varchar)": "2024-07-01 12:00:00 America/New_York",
    "CAST(date_trunc('day', TIMESTAMP '2024-02-29 23:30:00 UTC' AT TIME ZONE 'Asia/Kolkata') AS varchar)": "2024-03-01 00:00:00 Asia/Kolkata",
    "CAST(date_trunc('hour', TIMESTAMP '2024-10-27 01:30:00 UTC' AT TIME ZONE 'Europe/Berlin') AT TIME ZONE 'UTC' AS varchar)": "2024-10-27 01:00:00 UTC",
    "CAST(date_add('day', 1, TIMESTAMP '2024-03-30 12:00:00 Europe/Berlin') AS varchar)": "2024-03-31 12:00:00 Europe/Berlin",
    "CAST(date_add('hour', 24, TIMESTAMP '2024-03-30 12:00:00 Europe/Berlin') AS varchar)": "2024-03-31 13:00:00 Europe/Berlin",
    "CAST(TIMESTAMP '2024-03-30 12:00:00 Europe/Berlin' + INTERVAL '1' DAY AS varchar)": "2024-03-31 13:00:00.000 Europe/Berlin",
    "CAST(CASE WHEN true THEN TIMESTAMP '2024-01-01 00:00:00 Asia/Kolkata' ELSE TIMESTAMP '2024-01-01 00:00:00' END AS varchar)": "2024-01-01 00:00:00 Asia/Kolkata",
    "CAST(CAST('2024-02-29 12:00:00.1235 Europe/Berlin' AS timestamp(3) with time zone) AS varchar)": "2024-02-29 12:00:00.124 Europe/Berlin",
    # texts that are read
    "CAST('2024-02-29 12:00:00.12345678 Europe/Berlin' AS timestamp(3))": "2024-02-29 12:00:00.123000",
    "CAST('2024-2-9 1:2' AS timestamp)": "2024-02-09 01:02:00",
    "CAST(' 24-1-1 ' AS date)": "0024-01-01",
    "CAST('10:20:30.9999999' AS time(6))": "10:20:31",
    "CAST('23:59:59.9999999' AS time(3))": "00:00:00",
    "CAST('1e3' AS decimal(5,1))": "1000.0",
    "CAST(' +5 ' AS bigint)": 5,
    "TRY_CAST('inf' AS double)": None,
    "CAST('-Infinity' AS real)": "-inf",
    "CAST('T' AS boolean)": True,
    "TRY_CAST(' true' AS boolean)": None,
    "TRY_CAST(ARRAY['1', 'x'] AS array(integer))": None,
    "TRY_CAST(ROW('1', NULL) AS row(a integer, b integer))": "{'a': 1, 'b': None}",
    # texts that are written
    "CAST(REAL '16777217' AS varchar)": "1.677722E7",
    "CAST(0.00120E0 AS varchar)": "1.2E-3",
    "CAST(CAST(nothing AS real) AS varchar)": None,
    "CAST(CAST(nothing AS double) AS varchar)": None,
    "CAST(TIME '10:20:30.5' AS varchar)": "10:20:30.5",
    "CAST(INTERVAL '14' MONTH AS varchar)": "1-2",
    "CAST(INTERVAL '-1 02:03:04.567' DAY TO SECOND AS varchar)": "-1 02:03:04.567",
    "CAST(ROW(1, 'a\"b', NULL) AS json)": '{"":1,"":"a\\"b","":null}',
    "CAST(MAP(ARRAY['b', 'a'], ARRAY[1.5, NULL]) AS json)": '{"a":null,"b":1.5}',
    "CAST('abc' AS char(5)) || '|'": "abc|",
    "CAST('abc' AS char(5)) = 'abc'": True,
    # numbers
    "CAST(0.49999999999999994E0 AS integer)": 0,
    "CAST(-2.5 AS integer)": -3,
    "-9223372036854775808": -(2**63),
    "typeof(-2147483648)": "integer",
    "typeof(-(2147483648))": "bigint",
    "DECIMAL '10' / DECIMAL '3.000'": "3.333333",
    "DECIMAL '0.00000000000000000001' * DECIMAL '0.1'": "1E-21",
    "a / -1": -7,
    "a * b + nothing": None,
    "zero <> 0 AND a / zero > 1": False,
    "CASE WHEN zero = 0 THEN 0 ELSE a / zero END": 0,
    "coalesce(a, a / zero)": 7,
    # comparison
    "ARRAY[1, NULL] = ARRAY[1, 2]": None,
    "ARRAY[1, NULL] = ARRAY[2, NULL]": False,
    "MAP(ARRAY['a', 'b'], ARRAY[1, 2]) = MAP(ARRAY['b', 'a'], ARRAY[2, 1])": True,
    "MAP(ARRAY['a'], ARRAY[1]) IS DISTINCT FROM MAP(ARRAY['a'], ARRAY[2])": True,
    "ROW(1, NULL) < ROW(2, 2)": True,
    "ROW(1, NULL) IN (ROW(1, 2))": None,
    "nan() IN (nan())": False,
    "nan() IS DISTINCT FROM nan()": False,
    "0e0 IS DISTINCT FROM -0e0": False,
    "'a!c' LIKE 'a!!c' ESCAPE '!'": True,
    r"'a\c' LIKE 'a\c' ESCAPE '!'": True,
    # intervals
    "CAST(INTERVAL '1' DAY * 2.5 AS varchar)": "2 12:00:00.000",
    "CAST(INTERVAL '14' MONTH / 4 AS varchar)": "0-3",
    "CAST(TIMESTAMP '2024-03-31 10:00:00.0016' - TIMESTAMP '2024-03-31 10:00:00' AS varchar)": "0 00:00:00.002",
    "TIME '10:20:30' + INTERVAL '20' HOUR": "06:20:30",
    "DATE '2024-03-31' - INTERVAL '1' MONTH": "2024-02-29",
    # functions of dates
    "date_diff('month', DATE '2024-02-29', DATE '2024-01-31')": -1,
    "date_diff('year', DATE '2024-02-29', DATE '2025-02-28')": 1,
    "date_diff('minute', TIME '10:20:30', TIME '09:20:30')": -60,
    "date_trunc(unit, TIMESTAMP '2024-05-19 13:45:59')": "2024-05-13 00:00:00",
    "format_datetime(TIMESTAMP '2024-05-09 03:05:07.9876', 'yyyy-MM-dd HH:mm:ss.SSS')": "2024-05-09 03:05:07.988",
    "format_datetime(TIMESTAMP '2024-05-09 03:05:07 Europe/Berlin', 'xxxx-''W''ww-e EEEE D G C YY Z K k h a')": "2024-W19-4 Thursday 130 AD 20 24 +0200 3 3 3 AM",
    "date_format(TIMESTAMP '2024-05-09 13:05:07', '%x-%v %r %T %l %k %f %% [x] {y} %Q o''clock')": "2024-19 01:05:07 PM 13:05:07 1 13 000000 % [x] {y} Q o'clock",
    "date_parse('2024-02-28 11:05 PM', '%Y-%m-%d %h:%i %p')": "2024-02-28 23:05:00",
    "date_parse('10:20', '%H:%i')": "1970-01-01 10:20:00",
    "date_parse('24-5-1', '%y-%c-%e')": "2024-05-01 00:00:00",
    "date_parse('2024-200', '%Y-%j')": "2024-07-18 00:00:00",
    "CAST(parse_datetime('2024-05-09 03:05 +05:30', 'yyyy-MM-dd HH:mm Z') AS varchar)": "2024-05-09 03:05:00.000 +05:30",
    "CAST(from_iso8601_timestamp('2020-05-11T11:15:05.055+01:00') AS varchar)": "2020-05-11 11:15:05.055 +01:00",
    "from_iso8601_date('2020-3')": "2020-03-01",
    f"to_iso8601({ZONED})": "2024-02-29T12:00:00+01:00",
    "CAST(from_unixtime(1.5, 'Asia/Kolkata') AS varchar)": "1970-01-01 05:30:01.500 Asia/Kolkata",
    "human_readable_seconds(56363463)": "93 weeks, 1 day, 8 hours, 31 minutes, 3 seconds",
    "to_milliseconds(parse_duration('3.81 d'))": 329184000,
    "EXTRACT(TIMEZONE_HOUR FROM TIMESTAMP '2024-02-29 12:00:00 -03:30')": -3,
    "date_trunc('hour', TIME '10:20:30')": "10:00:00",
    "typeof(TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1' DAY)": "timestamp(3)",
    "typeof(current_timestamp(6))": "timestamp(6) with time zone",
}
FAILURES: dict[str, tuple[str, str]] = {
    "a + 2147483647": ("NUMERIC_VALUE_OUT_OF_RANGE", "integer addition overflow: 7 + 2147483647"),
    "a * 1000000 * 1000000 - 1": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "integer multiplication overflow: 7000000 * 1000000",
    ),
    "-(BIGINT '-9223372036854775808' + zero)": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "bigint negation overflow: -9223372036854775808",
    ),
    "(BIGINT '-9223372036854775808' + zero) / (a - 8)": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "bigint division overflow: -9223372036854775808 / -1",
    ),
    "a / zero": ("DIVISION_BY_ZERO", "Division by zero"),
    "5 - -2147483648": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "integer subtraction overflow: 5 - -2147483648",
    ),
    "DECIMAL '99999999999999999999999999999999999999' * a": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "Decimal overflow",
    ),
    "CAST(a * 100 AS tinyint)": ("NUMERIC_VALUE_OUT_OF_RANGE", "Out of range for tinyint: 700"),
    "CAST(DECIMAL '12345678901234567890.12345' AS integer)": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "Cannot cast '12345678901234567890.12345' to INTEGER",
    ),
    "CAST(nan() AS bigint)": ("INVALID_CAST_ARGUMENT", "Cannot cast double NaN to bigint"),
    "CAST(REAL '1e30' AS bigint)": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "Out of range for bigint: 1.0E30",
    ),
    "CAST('1e3' AS decimal(3,1))": (
        "INVALID_CAST_ARGUMENT",
        "Cannot cast VARCHAR '1e3' to DECIMAL(3, 1). Value too large.",
    ),
    "CAST('x' AS decimal(3,1))": (
        "INVALID_CAST_ARGUMENT",
        "Cannot cast VARCHAR 'x' to DECIMAL(3, 1). Value is not a number.",
    ),
    "CAST(1200E0 AS varchar(4))": (
        "INVALID_CAST_ARGUMENT",
        "Value 1200.0 (1.2E3) cannot be represented as varchar(4)",
    ),
    "CAST('2024-02-30' AS timestamp)": (
        "INVALID_CAST_ARGUMENT",
        "Value cannot be cast to timestamp: 2024-02-30",
    ),
    "CAST('x' AS uuid)": ("INVALID_CAST_ARGUMENT", "Cannot cast value to UUID: x"),
    "'a' LIKE 'a' ESCAPE unit": (
        "INVALID_FUNCTION_ARGUMENT",
        "Escape string must be a single character",
    ),
    "INTERVAL '1' DAY / zero": ("INVALID_FUNCTION_ARGUMENT", "Cannot divide by double 0.0"),
    "DATE '2024-01-01' - INTERVAL '1' HOUR": (
        "INVALID_FUNCTION_ARGUMENT",
        "Cannot subtract hour, minutes or seconds from a date",
    ),
    "date_diff('hour', DATE '2024-02-29', DATE '2025-02-28')": (
        "INVALID_FUNCTION_ARGUMENT",
        "'hour' is not a valid DATE field",
    ),
    "date_parse('2024-02-30', '%Y-%m-%d')": (
        "INVALID_FUNCTION_ARGUMENT",
        "Invalid date 'FEBRUARY 30'",
    ),
    "date_parse('2024-02-28x', '%Y-%m-%d')": (
        "INVALID_FUNCTION_ARGUMENT",
        'Invalid format: "2024-02-28x" is malformed at "x"',
    ),
    "date_parse('2024-02', '%Y-%m-%d')": (
        "INVALID_FUNCTION_ARGUMENT",
        'Invalid format: "2024-02" is too short',
    ),
    "date_format(TIMESTAMP '2024-05-09 03:05:07', '%D')": (
        "INVALID_FUNCTION_ARGUMENT",
        "%D not supported in date format string",
    ),
    "format_datetime(TIMESTAMP '2024-05-09 03:05:07', 'b')": (
        "INVALID_FUNCTION_ARGUMENT",
        "Illegal pattern component: b",
    ),
    "at_timezone(now(), 'Nowhere' || unit)": (
        "INVALID_FUNCTION_ARGUMENT",
        "'Nowhereweek' is not a valid time zone",
    ),
}
ROW = "(VALUES (7, 2, 0, CAST(NULL AS integer), 'week')) t(a, b, zero, nothing, unit)"
WHOLE = VALUES
BATCH = 15


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    return Engine(spark=spark)


@pytest.fixture(scope="module")
def answers(engine: Engine) -> dict[str, Any]:
    found: dict[str, Any] = {}
    texts = list(WHOLE)
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        table = engine.run(f"SELECT {', '.join(batch)} FROM {ROW}").table
        found |= {
            text: column[0].as_py() for text, column in zip(batch, table.columns, strict=True)
        }
    return found


@pytest.mark.parametrize("text", WHOLE)
def test_an_expression_has_trinos_value(answers: dict[str, Any], text: str) -> None:
    found, expected = answers[text], WHOLE[text]
    assert (str(found) if isinstance(expected, str) else found) == expected


@pytest.mark.parametrize("text", FAILURES)
def test_a_failure_has_the_code_and_words_of_trino_and_a_position(
    engine: Engine, text: str
) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"SELECT {text} FROM {ROW}")
    assert (caught.value.code, caught.value.message) == FAILURES[text]
    assert caught.value.line == 1


def test_a_table_keeps_bounded_types_and_instants(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE kept (z timestamp with time zone, t timestamp(0), c char(5), v varchar(3), n decimal(5,2), m time(0), "
        "u uuid, j json, r row(x integer, y timestamp(3) with time zone), i tinyint)"
    )
    engine.run(
        "INSERT INTO kept VALUES (TIMESTAMP '2024-02-29 12:00:00.1239 Europe/Berlin', TIMESTAMP '2024-02-29 12:00:00.5 Europe/Berlin', "
        "'abc', 'ab    ', 1.005, TIME '23:59:59.6', UUID '12151FD2-7586-11e9-8f9e-2a86e4085a59', JSON '{\"a\":1}', "
        "ROW(1.5, TIMESTAMP '2024-02-29 12:00:00 +01:00'), 100)"
    )
    merge = "MERGE INTO kept USING (VALUES {}) s(a) ON true WHEN MATCHED THEN UPDATE SET {} = s.a"
    for value, column, message in (
        ("400", "i", "Out of range for tinyint: 400"),
        (
            "'abcd'",
            "v",
            "Cannot truncate non-space characters when casting from varchar(4) to varchar(3) on INSERT",
        ),
        ("12345", "n", "Cannot cast INTEGER '12345' to DECIMAL(5, 2)"),
    ):
        with pytest.raises(RowMergeError) as caught:
            engine.run(merge.format(value, column))
        assert (caught.value.message, caught.value.line) == (message, 1)
    shown = engine.run(
        "SELECT CAST(z AS varchar), t, c || '|', v || '|', n, m, u, j, r.x, CAST(r.y AS varchar), i FROM kept"
    ).table
    assert [str(column[0].as_py()) for column in shown.columns] == [
        "2024-02-29 11:00:00.124 UTC",
        "2024-02-29 12:00:01",
        "abc|",
        "ab |",
        "1.01",
        "00:00:00",
        "12151fd2-7586-11e9-8f9e-2a86e4085a59",
        '{"a":1}',
        "2",
        "2024-02-29 11:00:00.000 UTC",
        "100",
    ]
