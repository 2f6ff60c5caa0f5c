"""Trino's XXHASH64 and MURMUR3 in Spark SQL.

Spark's own XXHASH64 begins with another seed, and its hash of a column is the next one's seed.
Overflows are computed in decimals, since Spark's bigint does not wrap around.
"""

from __future__ import annotations

from typing import Final


def _signed(*numbers: int) -> tuple[int, ...]:
    return tuple(number - 2**64 if number >= 2**63 else number for number in numbers)


_PRIME: Final = _signed(0x9E3779B185EBCA87)[0]
"""The prime that CHECKSUM multiplies each hash by, and that stands for NULL."""
_SEED_ZERO: Final = -365884300664092260
"""The bigint whose hash by Spark is 0: the seed of what is hashed after it, as Trino begins."""


def _wrapped(number: str) -> str:
    return f"CAST(pmod({number} + {2**63}BD, {2**64}BD) - {2**63}BD AS BIGINT)"


def _wide(number: str) -> str:
    return f"CAST({number} AS DECIMAL(20,0))"


def _constant(number: int) -> str:
    return (
        f"CAST({number}BD AS DECIMAL(20,0))"
        if number >= 0
        else f"CAST(-{-number}BD AS DECIMAL(20,0))"
    )


def _times(value: str, factor: int, added: int = 0) -> str:
    return _wrapped(
        f"{_wide(value)} * {_constant(factor)}" + (f" + {_constant(added)}" if added else "")
    )


def _sum(*values: str) -> str:
    return _wrapped(" + ".join(map(_wide, values)))


def _bound(name: str, value: str, body: str) -> str:
    return f"transform(array({value}), {name} -> {body})[0]"


def _rotated(value: str, by: int) -> str:
    return _bound("r", value, f"shiftleft(r, {by}) | shiftrightunsigned(r, {64 - by})")


def _read(hexadecimal: str, offset: str, size: int) -> str:
    digits = ", ".join(
        f"substring({hexadecimal}, {offset} + {2 * index + 1}, 2)"
        for index in reversed(range(size))
    )
    return f"CAST(conv(concat({digits}), 16, -10) AS BIGINT)"


def _shifted(value: str, by: int) -> str:
    return _bound("h", value, f"h ^ shiftrightunsigned(h, {by})")


def _folded(offsets: str, begin: str, step: str) -> str:
    return f"aggregate({offsets}, {begin}, (a, i) -> {step})"


def _places(low: str, high: str, size: int) -> str:
    return (
        f"IF({high} - {low} >= {2 * size}, sequence({low}, {high} - {2 * size}, {2 * size}),"
        " slice(array(0), 1, 0))"
    )


def _literal(number: int) -> str:
    return f"{number}L" if number >= 0 else f"(-{-number}L)"


def _xxhash64(value: str) -> str:
    return f"xxhash64({_literal(_SEED_ZERO)}, {value})"


XXHASH64: Final = f"IF({{0}} IS NULL, NULL, unhex(lpad(hex({_xxhash64('{0}')}), 16, '0')))"
"""The template of the function."""


def checksum(value: str) -> str:
    """Write the checksum of a group's bigints, texts or bytes.

    It is the wrapping sum of hashes times a prime; NULL is the prime.

    >>> checksum("{0}").startswith("transform(array(CAST(pmod(sum({distinct}")
    True
    """
    each = _wide(f"IF({{0}} IS NULL, {_literal(_PRIME)}, {_times(_xxhash64(value), _PRIME)})")
    return _bound(
        "a", _wrapped(f"sum({{distinct}}{each}){{rows}}"), f"unhex({_little_endian('a')})"
    )


# -- MURMUR3

_FACTORS: Final = _signed(0x87C37B91114253D5, 0x4CF5AD432745937F)
_MIXERS: Final = _signed(0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_BLOCK: Final = 32
"""Hexadecimal digits of a block of 16 bytes, two words."""


def _first_word(word: str) -> str:
    return _times(_rotated(_times(word, _FACTORS[0]), 31), _FACTORS[1])


def _second_word(word: str) -> str:
    return _times(_rotated(_times(word, _FACTORS[1]), 33), _FACTORS[0])


def _mixed(half: str) -> str:
    for factor in _MIXERS:
        half = _times(_shifted(half, 33), factor)
    return _shifted(half, 33)


def _little_endian(half: str) -> str:
    digits = f"lpad(hex({half}), 16, '0')"
    return _bound(
        "d",
        digits,
        f"concat({', '.join(f'substring(d, {position}, 2)' for position in range(15, 0, -2))})",
    )


def _added(halves: str) -> str:
    return _bound("a", halves, _bound("b", _sum("a[0]", "a[1]"), f"array(b, {_sum('b', 'a[1]')})"))


def _murmur3() -> str:
    words = _read("x", "i", 8), _read("x", "i + 16", 8)
    first = _times(_sum(_rotated(f"(a[0] ^ {_first_word(words[0])})", 27), "a[1]"), 5, 0x52DCE729)
    second = _times(_sum(_rotated(f"(a[1] ^ {_second_word(words[1])})", 31), "b"), 5, 0x38495AB5)
    blocks = f"(char_length(x) div {_BLOCK} * {_BLOCK})"
    digest = _folded(
        _places("0", blocks, _BLOCK // 2),
        "array(0L, 0L)",
        _bound("b", first, f"array(b, {second})"),
    )
    # The rest is padded with zeros; a word of zeros changes nothing.
    rest = f"rpad(substring(x, {blocks} + 1), {_BLOCK}, '0')"
    words = _first_word(_read("y", "0", 8)), _second_word(_read("y", "16", 8))
    size = "CAST(char_length(x) div 2 AS BIGINT)"
    digest = _bound(
        "y",
        rest,
        _bound("a", digest, f"array(a[0] ^ {words[0]} ^ {size}, a[1] ^ {words[1]} ^ {size})"),
    )
    mixed = _bound("a", _added(digest), f"array({_mixed('a[0]')}, {_mixed('a[1]')})")
    bytes_of = _bound(
        "a", _added(mixed), f"unhex(concat({_little_endian('a[0]')}, {_little_endian('a[1]')}))"
    )
    return f"IF({{0}} IS NULL, NULL, {_bound('x', 'hex({0})', bytes_of)})"


MURMUR3: Final = _murmur3()
"""The template of the function, with 128 bits."""
