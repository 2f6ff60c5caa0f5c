"""Compression codecs of ORC files, named as in Trino's ``hive.compression-codec``."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import did_you_mean

if TYPE_CHECKING:
    from typing import Any, Literal


class OrcCodec(Enum):
    """A codec; the value is Arrow's name for it."""

    NONE = "uncompressed"
    SNAPPY = "snappy"
    ZSTD = "zstd"
    GZIP = "zlib"

    @property
    def arrow(self) -> Literal["uncompressed", "snappy", "zlib", "zstd"]:
        return self.value

    @property
    def pyorc(self) -> Any:
        import pyorc

        return pyorc.CompressionKind[{"GZIP": "ZLIB"}.get(self.name, self.name)]


def orc_codec(name: str) -> OrcCodec:
    """Return the codec of a name, ignoring case, or raise INVALID_ARGUMENTS."""
    if isinstance(name, str) and name.upper() in OrcCodec.__members__:
        return OrcCodec[name.upper()]
    msg = f"compression_codec = {name!r} is none of {', '.join(OrcCodec.__members__)}"
    near = did_you_mean(name.upper(), OrcCodec.__members__) if isinstance(name, str) else None
    raise ConnectorError.invalid(
        msg,
        hint=near or "Omit it to use GZIP, which all ORC readers support.",
    )
