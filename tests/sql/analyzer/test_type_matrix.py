"""Casts and assignments between all pairs of types, as in Trino 476."""

from __future__ import annotations

import pytest

from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.type_rules import is_assignable
from tests.sql.support import FakeTables, meaning, refusal

TYPES = {
    "b": "boolean",
    "t": "tinyint",
    "s": "smallint",
    "i": "integer",
    "l": "bigint",
    "n": "decimal(10,2)",
    "r": "real",
    "d": "double",
    "v": "varchar",
    "w": "varchar(3)",
    "c": "char(5)",
    "x": "varbinary",
    "D": "date",
    "T": "time(3)",
    "S": "timestamp(6)",
    "Z": "timestamp(6) with time zone",
    "I": "interval day to second",
    "Y": "interval year to month",
    "u": "uuid",
    "j": "json",
    "a": "array(integer)",
    "A": "array(varchar)",
    "m": "map(varchar,bigint)",
    "o": "row(p integer, q varchar)",
}

CASTS = {
    "b": "b tsilnrd vw j",
    "t": "b tsilnrd vw j",
    "s": "b tsilnrd vw j",
    "i": "b tsilnrd vw j",
    "l": "b tsilnrd vw j",
    "n": "b tsilnrd vw j",
    "r": "b tsilnrd vw j",
    "d": "b tsilnrd vw j",
    "v": "b tsilnrd vwc x DTSZ u j",
    "w": "b tsilnrd vwc x DTSZ u j",
    "c": "b tsilrd vwc x DSZ",
    "x": "x u",
    "D": "vw DSZ j",
    "T": "vw TSZ",
    "S": "vw DTSZ j",
    "Z": "vw DTSZ",
    "I": "vw I",
    "Y": "vw Y",
    "u": "v x u",
    "j": "b tsilnrd vw j aAmo",
    "a": "a A j",
    "A": "a A j",
    "m": "m j",
    "o": "o j",
}
"""From each type: the target types of CAST."""

ASSIGNMENTS = {
    **dict.fromkeys("tsilnrd", "tsilnrd"),
    **dict.fromkeys("vwc", "vwc"),
    **dict.fromkeys("DSZ", "DSZ"),
    **{letter: letter for letter in "bxTIYujaAmo"},
}
"""From each type: the types of columns that accept its values without a written cast."""


@pytest.mark.parametrize("source", TYPES)
def test_cast_accepts_the_types_of_trino(source):
    allowed = {
        target for target in TYPES if can_cast(parse_type(TYPES[source]), parse_type(TYPES[target]))
    }
    assert "".join(sorted(allowed)) == "".join(sorted(CASTS[source].replace(" ", "")))


@pytest.mark.parametrize("source", TYPES)
def test_assignment_accepts_the_types_of_trino(source):
    allowed = {
        target
        for target in TYPES
        if is_assignable(parse_type(TYPES[source]), parse_type(TYPES[target]))
    }
    assert "".join(sorted(allowed)) == "".join(sorted(ASSIGNMENTS[source]))


@pytest.mark.parametrize(
    ("source", "target", "taken"),
    [
        ("row(varchar(2), integer)", "row(a char(3), b integer)", False),
        ("row(varchar(4), integer)", "row(a char(3), b integer)", False),
        ("row(varchar(2), bigint)", "row(a char(3), b integer)", False),
        ("row(varchar(2), bigint)", "row(a varchar, b smallint)", True),
        ("row(varchar(3), decimal(2,1))", "row(a varchar(3), b decimal(5,2))", True),
        ("row(varchar(3), integer)", "row(a varchar(3), b decimal(5,2))", False),
        ("row(char(1), decimal(2,1))", "row(a varchar(3), b decimal(5,2))", True),
        ("array(varchar(2))", "array(varchar(2))", True),
        ("array(varchar)", "array(varchar(2))", False),
        ("array(char(12))", "array(char(1))", False),
        ("map(varchar(3), integer)", "map(varchar(2), integer)", False),
        ("map(varchar(1), double)", "map(varchar, decimal(38,10))", True),
    ],
)
def test_nothing_that_may_not_fit_is_assigned_except_nested_texts_of_limited_length(
    source, target, taken
):
    assert is_assignable(parse_type(source), parse_type(target)) == taken


STORED = {letter: kind for letter, kind in TYPES.items() if letter not in "IY"}
TABLES = FakeTables(
    {
        "target": [(f"c_{ord(k)}", v) for k, v in STORED.items()],
        "source": [(f"c_{ord(k)}", v) for k, v in STORED.items()],
    }
)


@pytest.mark.parametrize("source", STORED)
def test_every_pair_is_assigned_or_refused_by_merge(source):
    for target in STORED:
        merge = f"MERGE INTO target t USING source s ON false WHEN NOT MATCHED THEN INSERT (c_{ord(target)}) VALUES (s.c_{ord(source)})"
        if target in ASSIGNMENTS[source]:
            meaning(merge, tables=TABLES)
        else:
            error = refusal(merge, tables=TABLES)
            shown = (
                f"Table: [{parse_type(TYPES[target])}], Expressions: [{parse_type(TYPES[source])}]"
            )
            assert (error.code, error.message.endswith(shown)) == ("TYPE_MISMATCH", True)


@pytest.mark.parametrize(
    ("written", "code", "message"),
    [
        (
            "decimal(39)",
            "INVALID_FUNCTION_ARGUMENT",
            "DECIMAL precision must be in range [1, 38]: 39",
        ),
        (
            "decimal(3,4)",
            "INVALID_FUNCTION_ARGUMENT",
            "DECIMAL scale must be in range [0, precision (3)]: 4",
        ),
        (
            "char(65537)",
            "TYPE_MISMATCH",
            "Unknown type: char(65537)",
        ),
        (
            "timestamp(13)",
            "TYPE_MISMATCH",
            "Unknown type: timestamp(13)",
        ),
        ("varchar(2147483648)", "TYPE_MISMATCH", "Unknown type: varchar(2147483648)"),
        (
            "timestamp(9)",
            "NOT_SUPPORTED",
            "The type timestamp(9) is not supported by this engine: its values have microseconds",
        ),
        (
            "array(time(7))",
            "NOT_SUPPORTED",
            "The type time(7) is not supported by this engine: its values have microseconds",
        ),
        ("double(3)", "TYPE_MISMATCH", "Unknown type: double(3)"),
    ],
)
def test_types_that_values_cannot_have_are_refused_with_the_reason(written, code, message):
    error = refusal(f"SELECT CAST(NULL AS {written})")
    assert (error.code, error.message) == (code, message)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("timestamp(9)", "values have microseconds here; timestamp(9) is more precise"),
        ("array(time(7))", "values have microseconds here; time(7) is more precise"),
        ("interval day to second", "Unsupported column type: interval day to second of column 'a'"),
    ],
)
def test_tables_refuse_columns_that_they_cannot_carry(written, reason):
    error = refusal(f"CREATE TABLE fresh (a {written})")
    assert error.code == "NOT_SUPPORTED"
    assert reason in error.message
