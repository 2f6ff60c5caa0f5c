"""Random literals, and statements with long runs of them that are read at once or token by token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis import strategies as some

from rowmerge_nb.sql.tree import literal_runs

SIGNS = some.sampled_from(["", "", "-", "+"])
INTEGERS = some.builds(
    str.__add__,
    SIGNS,
    some.one_of(
        some.integers(0, 300).map(str),
        some.integers(0, 2**64).map(str),
        some.sampled_from(
            [
                "2147483647",
                "2147483648",
                "9223372036854775807",
                "9223372036854775808",
                "007",
                "1_000",
            ]
        ),
    ),
)
DECIMALS = some.builds(
    "{}{}.{}".format,
    SIGNS,
    some.text("0123456789", min_size=1, max_size=36),
    some.text("0123456789", max_size=4),
)
DOUBLES = some.builds("{}{}e{}".format, SIGNS, some.integers(0, 10**6), some.integers(-20, 20))
TEXTS = some.text(some.characters(exclude_categories=["Cs"]), max_size=6).map(
    lambda text: "'" + text.replace("'", "''") + "'"
)
WORDS = some.sampled_from(["NULL", "null", "TRUE", "False"])
TYPED = some.sampled_from(
    [
        "DATE '2024-02-29'",
        "date '2023-02-29'",
        "DATE'0001-01-01'",
        "TIMESTAMP '2024-02-29 10:11:12.125'",
        "TIMESTAMP '2024-02-29'",
        "TIME '10:11:12.5'",
        "DECIMAL '12.50'",
        "BIGINT '7'",
        "INTEGER '9999999999'",
        "VARCHAR 'it''s'",
        "UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'",
        "X'00fF'",
        "x'0'",
    ]
)
LITERALS = some.one_of(INTEGERS, DECIMALS, DOUBLES, TEXTS, WORDS, TYPED)
COLUMNS = some.sampled_from(
    [
        some.one_of(some.integers(-(10**11), 10**11).map(str), some.just("NULL")),
        some.one_of(some.integers(-9, 9).map(str), some.decimals(-99, 99, places=2).map(str)),
        some.one_of(DOUBLES, some.integers(0, 9).map(str)),
        TEXTS,
        some.sampled_from(["TRUE", "FALSE", "NULL"]),
        some.sampled_from(["DATE '2024-02-29'", "TIMESTAMP '2024-02-29 10:11:12.125'", "NULL"]),
        LITERALS,
    ]
)
BLANKS = some.sampled_from(["", " ", "\n", " -- a, (1) comment\n ", "/* (2), */"])


@contextmanager
def at_once() -> Iterator[None]:
    """Read runs of any length at once."""
    with patch.object(literal_runs, "_SHORTEST", 0):
        yield


@contextmanager
def token_by_token() -> Iterator[None]:
    """Read no run at once."""
    with patch.object(literal_runs, "_SHORTEST", 10**9):
        yield


@some.composite
def rows(draw: some.DrawFn) -> str:
    """Generate rows of literals: columns mostly of one type, sometimes a row that is too short or of another type."""
    columns = [draw(COLUMNS) for _ in range(draw(some.integers(1, 4)))]
    written = []
    for _ in range(draw(some.integers(1, 8))):
        cells = [
            draw(column)
            for column in columns[: len(columns) - (draw(some.integers(0, 30)) == 0)] or columns
        ]
        row = f",{draw(BLANKS)}".join(f"{draw(BLANKS)}{cell}" for cell in cells)
        written.append(
            row if len(columns) == 1 and draw(some.booleans()) else f"({row}{draw(BLANKS)})"
        )
    return f"{draw(BLANKS)},{draw(BLANKS)}".join(written)
