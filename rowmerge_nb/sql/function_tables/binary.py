"""Bytes: encodings and digests."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
to_utf8(varchar) -> varbinary | encode({0}, 'UTF-8')
from_utf8(varbinary) -> varchar | decode({0}, 'UTF-8')
to_hex(varbinary) -> varchar | hex({0})
from_hex(varchar) -> varbinary | unhex({0})
to_base64(varbinary) -> varchar | base64({0})
from_base64(varchar) -> varbinary | unbase64({0})
md5(varbinary) -> varbinary | unhex(md5({0}))
sha1(varbinary) -> varbinary | unhex(sha1({0}))
sha256(varbinary) -> varbinary | unhex(sha2({0}, 256))
sha512(varbinary) -> varbinary | unhex(sha2({0}, 512))
crc32(varbinary) -> bigint | crc32({0})
"""
