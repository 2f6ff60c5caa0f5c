"""Bytes: encodings and digests."""

from __future__ import annotations

from typing import Final

__all__ = ["FRAGMENTS", "ROWS"]

ROWS: Final = r"""
length(varbinary) -> bigint | CAST(octet_length({0}) AS BIGINT)
substr(varbinary, bigint) -> varbinary | CASE WHEN {1} = 0 OR {1} < -octet_length({0}) THEN IF({0} IS NULL, NULL, X'') ELSE substring({0}, {int:1}) END
substr(varbinary, bigint, bigint) -> varbinary | CASE WHEN {1} = 0 OR {1} < -octet_length({0}) OR {2} <= 0 THEN IF({0} IS NULL OR {1} IS NULL OR {2} IS NULL, NULL, X'') ELSE substring({0}, {int:1}, {int:2}) END
lpad(varbinary, bigint, varbinary) -> varbinary | {bytes checked} ELSE lpad({0}, {int:1}, {2}) END
rpad(varbinary, bigint, varbinary) -> varbinary | {bytes checked} ELSE rpad({0}, {int:1}, {2}) END
reverse(varbinary) -> varbinary | unhex(array_join(reverse(regexp_extract_all(hex({0}), '..', 0)), ''))
to_utf8(varchar(x)) -> varbinary | encode({0}, 'UTF-8')
to_utf8(char(x)) -> varbinary | encode({0}, 'UTF-8')
from_utf8(varbinary) -> varchar | make_valid_utf8(CAST({0} AS STRING))
from_utf8(varbinary, varchar(x)) -> varchar | CASE WHEN char_length({1}) > 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:Replacement character string must empty or a single character} WHEN is_valid_utf8(CAST({0} AS STRING)) THEN IF({1} IS NULL, NULL, CAST({0} AS STRING)) WHEN hex({0}) RLIKE '^(?:..)*EFBFBD' THEN {fail:NOT_SUPPORTED:from_utf8 of broken text that has the character U+FFFD is not supported by this engine} ELSE replace(make_valid_utf8(CAST({0} AS STRING)), '\uFFFD', {1}) END
to_hex(varbinary) -> varchar | hex({0})
from_hex(varchar(x)) -> varbinary | CASE WHEN octet_length({0}) % 2 = 1 THEN {fail odd} WHEN {0} RLIKE '[^0-9A-Fa-f]' THEN {fail digit} ELSE unhex({0}) END
from_hex(varbinary) -> varbinary | CASE WHEN octet_length(CAST({0} AS STRING)) % 2 = 1 THEN {fail odd} WHEN CAST({0} AS STRING) RLIKE '[^0-9A-Fa-f]' THEN {fail digit} ELSE unhex(CAST({0} AS STRING)) END
to_base64(varbinary) -> varchar | {in base 64}
from_base64(varchar(x)) -> varbinary | IF({0} RLIKE {base64}, unbase64({0}), IF({0} IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:The text is not in base 64}))
from_base64(varbinary) -> varbinary | IF(CAST({0} AS STRING) RLIKE {base64}, unbase64(CAST({0} AS STRING)), IF(CAST({0} AS STRING) IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:The text is not in base 64}))
to_base64url(varbinary) -> varchar | translate({in base 64}, '+/', '-_')
from_base64url(varchar(x)) -> varbinary | IF({0} NOT RLIKE '[+/]' AND translate({0}, '-_', '+/') RLIKE {base64}, unbase64(translate({0}, '-_', '+/')), IF({0} IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:The text is not in base 64}))
from_base64url(varbinary) -> varbinary | IF(CAST({0} AS STRING) NOT RLIKE '[+/]' AND translate(CAST({0} AS STRING), '-_', '+/') RLIKE {base64}, unbase64(translate(CAST({0} AS STRING), '-_', '+/')), IF(CAST({0} AS STRING) IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:The text is not in base 64}))
to_big_endian_32(integer) -> varbinary | unhex(right(lpad(hex({0}), 8, '0'), 8))
from_big_endian_32(varbinary) -> integer | IF(octet_length({0}) <> 4, {fail length 4}, CAST(IF(hex({0}) >= '8', CAST(conv(hex({0}), 16, 10) AS BIGINT) - 4294967296, CAST(conv(hex({0}), 16, 10) AS BIGINT)) AS INT))
to_big_endian_64(bigint) -> varbinary | unhex(lpad(hex({0}), 16, '0'))
from_big_endian_64(varbinary) -> bigint | IF(octet_length({0}) <> 8, {fail length 8}, CAST(conv(hex({0}), 16, -10) AS BIGINT))
md5(varbinary) -> varbinary | unhex(md5({0}))
sha1(varbinary) -> varbinary | unhex(sha1({0}))
sha256(varbinary) -> varbinary | unhex(sha2({0}, 256))
sha512(varbinary) -> varbinary | unhex(sha2({0}, 512))
hmac_md5(varbinary, varbinary) -> varbinary | IF(octet_length({1}) = 0, {fail:INVALID_FUNCTION_ARGUMENT:Empty key}, unhex(md5(concat({outer 64 md5}, unhex(md5(concat({inner 64 md5}, {0})))))))
hmac_sha1(varbinary, varbinary) -> varbinary | IF(octet_length({1}) = 0, {fail:INVALID_FUNCTION_ARGUMENT:Empty key}, unhex(sha1(concat({outer 64 sha1}, unhex(sha1(concat({inner 64 sha1}, {0})))))))
hmac_sha256(varbinary, varbinary) -> varbinary | IF(octet_length({1}) = 0, {fail:INVALID_FUNCTION_ARGUMENT:Empty key}, unhex(sha2(concat({outer 64 sha256}, unhex(sha2(concat({inner 64 sha256}, {0}), 256))), 256)))
hmac_sha512(varbinary, varbinary) -> varbinary | IF(octet_length({1}) = 0, {fail:INVALID_FUNCTION_ARGUMENT:Empty key}, unhex(sha2(concat({outer 128 sha512}, unhex(sha2(concat({inner 128 sha512}, {0}), 512))), 512)))
crc32(varbinary) -> bigint | crc32({0})
"""

_DIGIT: Final = "[A-Za-z0-9+/]"
_DIGESTS: Final = {"md5": "md5({1})", "sha1": "sha1({1})", "sha256": "sha2({1}, 256)", "sha512": "sha2({1}, 512)"}


def _mixed(block: int, digest: str, byte: int) -> str:
    """The key of an HMAC, digested if it is longer than a block, filled up to a block, each byte XORed with a constant."""
    key = f"rpad(IF(octet_length({{1}}) > {block}, upper({digest}), hex({{1}})), {2 * block}, '0')"
    mixed = f"transform(regexp_extract_all({key}, '..', 0), b -> lpad(hex(CAST(conv(b, 16, 10) AS INT) ^ {byte}), 2, '0'))"
    return f"unhex(array_join({mixed}, ''))"


FRAGMENTS: Final = {
    # Spark breaks lines after 76 characters.
    "in base 64": r"translate(base64({0}), '\r\n', '')",
    "bytes checked": (
        "CASE WHEN {1} NOT BETWEEN 0 AND 2147483647 THEN {fail:INVALID_FUNCTION_ARGUMENT:Target length must be in the range [0..2147483647]} "
        "WHEN octet_length({2}) = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Padding bytes must not be empty}"
    ),
    "base64": f"'^(?:{_DIGIT * 4})*(?:{_DIGIT * 2}(?:==)?|{_DIGIT * 3}=?)?$'",
    "fail odd": "{fail:INVALID_FUNCTION_ARGUMENT:invalid input length $(octet_length($0))}",
    "fail digit": (
        "{fail:INVALID_FUNCTION_ARGUMENT:not a hexadecimal digit: \"$(regexp_extract($0, '[^0-9A-Fa-f]', 0))\" = "
        "$(conv(hex(encode(regexp_extract($0, '[^0-9A-Fa-f]', 0), 'UTF-32')), 16, 10))}"
    ),
    "fail length 4": "{fail:INVALID_FUNCTION_ARGUMENT:expected 4-byte input, but got instead: $(octet_length($0))}",
    "fail length 8": "{fail:INVALID_FUNCTION_ARGUMENT:expected 8-byte input, but got instead: $(octet_length($0))}",
    **{
        f"{side} {block} {name}": _mixed(block, _DIGESTS[name], byte)
        for side, byte in (("inner", 0x36), ("outer", 0x5C))
        for block, name in ((64, "md5"), (64, "sha1"), (64, "sha256"), (128, "sha512"))
    },
}
"""Parts that several templates share; ``{name}`` in a template stands for them."""
