"""Bytes: encodings and digests."""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions.hashes import MURMUR3, XXHASH64

ROWS: Final = r"""
length(varbinary) -> bigint | CAST(octet_length({0}) AS BIGINT) | CAST(octet_length({0}) AS BIGINT)
substr(varbinary, bigint) -> varbinary | CASE WHEN {1} = 0 OR {1} < -octet_length({0}) THEN IF({0} IS NULL, NULL, X'') ELSE substring({0}, {int:1}) END
substr(varbinary, bigint, bigint) -> varbinary | CASE WHEN {1} = 0 OR {1} < -octet_length({0}) OR {2} <= 0 THEN IF({0} IS NULL OR {1} IS NULL OR {2} IS NULL, NULL, X'') ELSE substring({0}, {int:1}, {int:2}) END
lpad(varbinary, bigint, varbinary) -> varbinary | {bytes checked} ELSE lpad({0}, {padded to}, {2}) END
rpad(varbinary, bigint, varbinary) -> varbinary | {bytes checked} ELSE rpad({0}, {padded to}, {2}) END
reverse(varbinary) -> varbinary | encode(reverse(decode({0}, 'ISO-8859-1')), 'ISO-8859-1')
to_utf8(varchar(x)) -> varbinary | encode({0}, 'UTF-8') | encode({0})
to_utf8(char(x)) -> varbinary | encode({0}, 'UTF-8') | encode({0})
from_utf8(varbinary) -> varchar | IF(is_valid_utf8(CAST({0} AS STRING)), CAST({0} AS STRING), {mended})
from_utf8(varbinary, varchar(x)) -> varchar | CASE WHEN char_length({1}) > 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:Replacement character string must empty or a single character} WHEN is_valid_utf8(CAST({0} AS STRING)) THEN CAST({0} AS STRING) ELSE {mended 1} END
from_utf8(varbinary, bigint) -> varchar | CASE WHEN {1} > 1114111 OR {1} BETWEEN 55296 AND 57343 OR ({1} < 0 AND NOT is_valid_utf8(CAST({0} AS STRING))) THEN {fail:INVALID_FUNCTION_ARGUMENT:Invalid replacement character} WHEN is_valid_utf8(CAST({0} AS STRING)) THEN CAST({0} AS STRING) ELSE {mended by number} END
to_hex(varbinary) -> varchar | hex({0}) | hex({0})
from_hex(varchar(x)) -> varbinary | CASE WHEN octet_length({0}) % 2 = 1 THEN {fail odd} WHEN {0} RLIKE '[^0-9A-Fa-f]' THEN {fail digit} ELSE unhex({0}) END
from_hex(varbinary) -> varbinary | CASE WHEN octet_length(CAST({0} AS STRING)) % 2 = 1 THEN {fail odd} WHEN CAST({0} AS STRING) RLIKE '[^0-9A-Fa-f]' THEN {fail digit} ELSE unhex(CAST({0} AS STRING)) END
to_base64(varbinary) -> varchar | {in base 64} | to_base64({0})
from_base64(varchar(x)) -> varbinary | IF({0} RLIKE {base64}, unbase64({0}), IF({0} IS NULL, NULL, {fail base64}))
from_base64(varbinary) -> varbinary | IF(CAST({0} AS STRING) RLIKE {base64}, unbase64(CAST({0} AS STRING)), IF({0} IS NULL, NULL, {fail bytes in base64}))
to_base32(varbinary) -> varchar | array_join(transform(regexp_extract_all(hex({0}), '.{1,10}', 0), h -> rpad(translate(left(lpad(conv(rpad(h, 10, '0'), 16, 32), 8, '0'), CAST(ceil(char_length(h) * 0.8BD) AS INT)), {digits 32}, {letters 32}), 8, '=')), '')
from_base32(varchar(x)) -> varbinary | {from base 32}
from_base32(varbinary) -> varbinary | {bytes from base 32}
to_base64url(varbinary) -> varchar | translate({in base 64}, '+/', '-_') | translate(to_base64({0}), '+/', '-_')
from_base64url(varchar(x)) -> varbinary | IF({0} NOT RLIKE '[+/]' AND translate({0}, '-_', '+/') RLIKE {base64}, unbase64(translate({0}, '-_', '+/')), IF({0} IS NULL, NULL, {fail base64url}))
from_base64url(varbinary) -> varbinary | IF(CAST({0} AS STRING) NOT RLIKE '[+/]' AND translate(CAST({0} AS STRING), '-_', '+/') RLIKE {base64}, unbase64(translate(CAST({0} AS STRING), '-_', '+/')), IF({0} IS NULL, NULL, {fail bytes in base64url}))
to_big_endian_32(integer) -> varbinary | unhex(right(lpad(hex({0}), 16, '0'), 8))
from_big_endian_32(varbinary) -> integer | IF(octet_length({0}) <> 4, {fail length 4}, CAST(IF(hex({0}) >= '8', CAST(conv(hex({0}), 16, 10) AS BIGINT) - 4294967296, CAST(conv(hex({0}), 16, 10) AS BIGINT)) AS INT))
to_big_endian_64(bigint) -> varbinary | unhex(lpad(hex({0}), 16, '0'))
from_big_endian_64(varbinary) -> bigint | IF(octet_length({0}) <> 8, {fail length 8}, CAST(conv(hex({0}), 16, -10) AS BIGINT))
to_ieee754_32(real) -> varbinary | unhex(right(lpad(hex({signed bits of 32}), 16, '0'), 8))
from_ieee754_32(varbinary) -> real | IF(octet_length({0}) <> 4, {fail:INVALID_FUNCTION_ARGUMENT:Input floating-point value must be exactly 4 bytes long}, CAST({float of bits 32} AS FLOAT))
to_ieee754_64(double) -> varbinary | unhex(lpad(hex({signed bits}), 16, '0'))
from_ieee754_64(varbinary) -> double | IF(octet_length({0}) <> 8, {fail:INVALID_FUNCTION_ARGUMENT:Input floating-point value must be exactly 8 bytes long}, {float of bits 64})
md5(varbinary) -> varbinary | unhex(md5({0})) | unhex(md5({0}))
sha1(varbinary) -> varbinary | unhex(sha1({0})) | unhex(sha1({0}))
sha256(varbinary) -> varbinary | unhex(sha2({0}, 256)) | unhex(sha256({0}))
sha512(varbinary) -> varbinary | unhex(sha2({0}, 512))
hmac_md5(varbinary, varbinary) -> varbinary | {key checked} unhex(md5(concat({outer 64 md5}, unhex(md5(concat({inner 64 md5}, {0})))))))
hmac_sha1(varbinary, varbinary) -> varbinary | {key checked} unhex(sha1(concat({outer 64 sha1}, unhex(sha1(concat({inner 64 sha1}, {0})))))))
hmac_sha256(varbinary, varbinary) -> varbinary | {key checked} unhex(sha2(concat({outer 64 sha256}, unhex(sha2(concat({inner 64 sha256}, {0}), 256))), 256)))
hmac_sha512(varbinary, varbinary) -> varbinary | {key checked} unhex(sha2(concat({outer 128 sha512}, unhex(sha2(concat({inner 128 sha512}, {0}), 512))), 512)))
crc32(varbinary) -> bigint | crc32({0})
xxhash64(varbinary) -> varbinary | {xxhash64}
murmur3(varbinary) -> varbinary | {murmur3}
"""

_DIGIT: Final = "[A-Za-z0-9+/]"
_DIGESTS: Final = {
    "md5": "md5({1})",
    "sha1": "sha1({1})",
    "sha256": "sha2({1}, 256)",
    "sha512": "sha2({1}, 512)",
}


def _mixed(block: int, digest: str, byte: int) -> str:
    """Write the key of an HMAC, padded to a block, with each byte XORed."""
    key = f"rpad(IF(octet_length({{1}}) > {block}, upper({digest}), hex({{1}})), {2 * block}, '0')"
    mixed = (
        f"transform(regexp_extract_all({key}, '..', 0), b -> lpad(hex(CAST(conv(b, 16, 10) AS INT)"
        f" ^ {byte}), 2, '0'))"
    )
    return f"unhex(array_join({mixed}, ''))"


_CONTINUED: Final = "[89AB]."
_VALID: Final = f"[0-7].|(?:C[2-9A-F]|D.){_CONTINUED}|(?:E0[AB]|E[1-9A-CEF][89AB]|ED[89]).{_CONTINUED}|(?:F0[9AB]|F[1-3][89AB]|F48).{_CONTINUED * 2}"
_BROKEN: Final = "|".join(
    f"{lead}(?:{_CONTINUED}){{0,{most}}}"
    for lead, most in (("[CD].", 1), ("E.", 2), ("F[0-7]", 3), ("F[89AB]", 4), ("F[CD]", 5))
)


def _mended(by: str) -> str:
    """Write text from invalid UTF-8, with a replacement per broken sequence."""
    # Two hexadecimal digits are a byte; matches end at bytes.
    pattern = f"'\\\\G((?:{_VALID})*+)(?:{_BROKEN}|..)'"
    return f"CAST(unhex(regexp_replace(hex({{0}}), {pattern}, concat('$1', {by}))) AS STRING)"


def _from_base_32(text: str, message_text: str) -> str:
    plain, message_text = (f"trim(TRAILING '=' FROM {part})" for part in (text, message_text))
    length = (
        "{fail:INVALID_FUNCTION_ARGUMENT:Invalid input length $(char_length(" + message_text + "))}"
    )
    invalid_character = f"regexp_extract({message_text}, '[^A-Z2-7]', 0)"
    # An invisible character is shown by its number.
    unseen = f"concat('0x', ltrim('0', lower(hex(encode({invalid_character}, 'UTF-32')))))"
    letter = (
        f"{{fail:INVALID_FUNCTION_ARGUMENT:Unrecognized character: $(IF({invalid_character} RLIKE"
        f" '^[\\\\pZ\\\\pC]', {unseen}, {invalid_character}))}}"
    )
    digits = f"translate(b, {_LETTERS_32}, {_DIGITS_32})"
    block = (
        f"left(lpad(conv(rpad({digits}, 8, '0'), 32, 16), 10, '0'), char_length(b) * 5 div 8 * 2)"
    )
    return (
        f"CASE WHEN char_length({plain}) % 8 IN (1, 3, 6) THEN {length} WHEN {plain} RLIKE"
        f" '[^A-Z2-7]' THEN {letter} ELSE unhex(array_join(transform(regexp_extract_all({plain},"
        f" '.{{1,8}}', 0), b -> {block}), '')) END"
    )


_LETTERS_32: Final = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'"
_DIGITS_32: Final = "'0123456789ABCDEFGHIJKLMNOPQRSTUV'"


def _not_in_base_64(text: str, digits: str) -> str:
    read = f"char_length(regexp_extract({text}, '^[{digits}]*', 0))"
    rest = f"substring({text}, {read} + 1)"
    byte = f"CAST(conv(left(hex(encode({rest}, 'UTF-8')), 2), 16, 10) AS INT)"
    letter = f"IF({byte} < 128, lower(hex({byte})), concat('-', lower(hex(256 - {byte}))))"
    ending = "'Input byte array has"
    return (
        f"{{fail:INVALID_FUNCTION_ARGUMENT:$(CASE WHEN octet_length({text}) < 2 THEN 'Input byte[]"
        f" should at least have 2 bytes for base64 bytes' WHEN {rest} = '' OR ({rest} LIKE '=%' AND"
        f" {read} % 4 = 1) THEN 'Last unit does not have enough valid bits' WHEN {rest} NOT LIKE"
        f" '=%' THEN concat('Illegal base64 character ', {letter}) WHEN {read} % 4 = 0 OR ({read} %"
        f" 4 = 2 AND {rest} NOT LIKE '==%') THEN {ending} wrong 4-byte ending unit' ELSE"
        f" concat({ending} incorrect ending byte at ', {read} + IF({read} % 4 = 2, 2, 1)) END)}}"
    )


def _bits_of(exponents: int, fraction: int) -> str:
    """Write a float's bits without sign as a bigint; powers of two avoid rounding."""
    size, bias, infinite = "CAST(abs({0}) AS DOUBLE)", 2 ** (exponents - 1) - 1, 2**exponents - 1
    near = f"CAST(floor(log2({size})) AS INT)"
    power = (
        f"({near} + CASE WHEN {size} < power(2D, {near}) THEN -1 WHEN {size} >= power(2D, {near} +"
        " 1) THEN 1 ELSE 0 END)"
    )
    # In two steps, since the power of two of the least double is not a double.
    least = f"CAST({size} * power(2D, {bias - 1}) * {2**fraction}D AS BIGINT)"
    return (
        f"CASE WHEN isnan({{0}}) THEN {infinite << fraction | 1 << fraction - 1}L WHEN {size} ="
        f" CAST('Infinity' AS DOUBLE) THEN {infinite << fraction}L WHEN {size} < power(2D,"
        f" {1 - bias}) THEN {least} ELSE {power} * {2**fraction}L + {(bias - 1) << fraction}L +"
        f" CAST({size} * power(2D, -{power}) * {2**fraction}D AS BIGINT) END"
    )


def _float_of(exponents: int, fraction: int) -> str:
    bias, infinite = 2 ** (exponents - 1) - 1, 2**exponents - 1
    bits = "CAST(conv(hex({0}), 16, -10) AS BIGINT)"
    exponent = f"(shiftright({bits}, {fraction}) & {infinite}L)"
    rest = f"({bits} & {2**fraction - 1}L)"
    sign = f"IF(({bits} & {_as_long(1 << exponents + fraction)}) = 0, 1D, -1D)"
    number = (
        f"CAST({rest} + IF({exponent} > 0, {2**fraction}L, 0L) AS DOUBLE) * power(2D,"
        f" greatest({exponent}, 1L) - {bias + fraction})"
    )
    large = f"CAST(IF({rest} = 0, 'Infinity', 'NaN') AS DOUBLE)"
    return f"({sign} * IF({exponent} = {infinite}, {large}, {number}))"


def _as_long(bits: int) -> str:
    return f"{bits}L" if bits < 2**63 else "(-9223372036854775807L - 1L)"


FRAGMENTS: Final = {
    "key checked": "IF(octet_length({1}) = 0, {fail:GENERIC_INTERNAL_ERROR:Empty key},",
    "signed bits": "{bits 64} | {sign bit}",
    "signed bits of 32": "{bits 32} | {sign bit of 32}",
    "xxhash64": XXHASH64,
    "murmur3": MURMUR3,
    "bits 32": _bits_of(8, 23),
    "bits 64": _bits_of(11, 52),
    "sign bit of 32": "IF(CAST({0} AS STRING) LIKE '-%', 2147483648L, 0L)",
    "sign bit": f"IF(CAST({{0}} AS STRING) LIKE '-%', {_as_long(1 << 63)}, 0L)",
    "float of bits 32": _float_of(8, 23),
    "float of bits 64": _float_of(11, 52),
    "fail base64": _not_in_base_64("$0", "A-Za-z0-9+/"),
    "fail bytes in base64": _not_in_base_64("CAST($0 AS STRING)", "A-Za-z0-9+/"),
    "fail base64url": _not_in_base_64("$0", "A-Za-z0-9_-"),
    "fail bytes in base64url": _not_in_base_64("CAST($0 AS STRING)", "A-Za-z0-9_-"),
    "mended": _mended("'EFBFBD'"),
    "mended 1": _mended("hex({1})"),
    "mended by number": _mended("hex(decode(unhex(lpad(hex({1}), 8, '0')), 'UTF-32'))"),
    "letters 32": _LETTERS_32,
    "digits 32": _DIGITS_32,
    "from base 32": _from_base_32("{0}", "$0"),
    "bytes from base 32": _from_base_32("CAST({0} AS STRING)", "CAST($0 AS STRING)"),
    # Spark breaks lines after 76 characters.
    "in base 64": r"translate(base64({0}), '\r\n', '')",
    "bytes checked": (
        "CASE WHEN {1} NOT BETWEEN 0 AND 2147483647 THEN {fail:INVALID_FUNCTION_ARGUMENT:Target"
        " length must be in the range [0..2147483647]} WHEN octet_length({2}) = 0 THEN"
        " {fail:INVALID_FUNCTION_ARGUMENT:Padding bytes must not be empty}"
    ),
    "base64": f"'^(?:{_DIGIT * 4})*(?:{_DIGIT * 2}(?:==)?|{_DIGIT * 3}=?)?$'",
    "fail odd": "{fail:INVALID_FUNCTION_ARGUMENT:invalid input length $(octet_length($0))}",
    "fail digit": (
        '{fail:INVALID_FUNCTION_ARGUMENT:not a hexadecimal digit: "$(regexp_extract($0,'
        " '[^0-9A-Fa-f]', 0))\" = $(conv(hex(encode(regexp_extract($0, '[^0-9A-Fa-f]', 0),"
        " 'UTF-32')), 16, 10))}"
    ),
    "fail length 4": (
        "{fail:INVALID_FUNCTION_ARGUMENT:expected 4-byte input, but got instead:"
        " $(octet_length($0))}"
    ),
    "fail length 8": (
        "{fail:INVALID_FUNCTION_ARGUMENT:expected 8-byte input, but got instead:"
        " $(octet_length($0))}"
    ),
    **{
        f"{side} {block} {name}": _mixed(block, _DIGESTS[name], byte)
        for side, byte in (("inner", 0x36), ("outer", 0x5C))
        for block, name in ((64, "md5"), (64, "sha1"), (64, "sha256"), (128, "sha512"))
    },
}
"""Parts that several templates share, as ``{name}``."""
