"""Validation of properties that other engines have set, which could break pyiceberg or Arrow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.write_modes import WRITE_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle

_INTEGERS: Final = (
    "commit.manifest.min-count-to-merge",
    "commit.manifest.target-size-bytes",
    "commit.retry.max-wait-ms",
    "commit.retry.min-wait-ms",
    "commit.retry.num-retries",
    "commit.retry.total-timeout-ms",
    "history.expire.min-snapshots-to-keep",
    "write.metadata.previous-versions-max",
    "write.parquet.compression-level",
    "write.summary.partition-limit",
    "write.target-file-size-bytes",
)
_BOOLEANS: Final = (
    "commit.manifest-merge.enabled",
    "write.metadata.delete-after-commit.enabled",
    "write.object-storage.enabled",
    "write.object-storage.partitioned-paths",
)
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "write.parquet.compression-codec": (
        "brotli",
        "gzip",
        "lz4",
        "none",
        "snappy",
        "uncompressed",
        "zstd",
    ),
    "write.avro.compression-codec": (
        "bzip2",
        "deflate",
        "gzip",
        "null",
        "snappy",
        "zstandard",
        "zstd",
    ),
    **WRITE_PROPERTIES,
}
_METRICS: Final = "write.metadata.metrics."
_TRUE_OR_FALSE: Final = frozenset(
    {"y", "yes", "t", "true", "on", "1", "n", "no", "f", "false", "off", "0"}
)
_MODE: Final = re.compile(r"none|counts|full|truncate\([1-9]\d{0,8}\)")
_MOST_DIGITS: Final = 18


def check_properties(handle: IcebergTableHandle) -> None:
    """Raise ICEBERG_INVALID_METADATA for an invalid property."""
    for name, value in handle.properties.items():
        problem = _problem(name, value)
        if problem:
            raise ConnectorError(
                f"Property {name} of Iceberg table '{handle.name}' is '{value}' but"
                f" should be {problem}",
                code="ICEBERG_INVALID_METADATA",
                hint="Correct or remove the property with the engine that set it.",
            )


def _problem(name: str, value: str) -> str:
    if name in _INTEGERS:
        digits = value.strip().removeprefix("-")
        return (
            ""
            if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
            else "an integer"
        )
    if name in _BOOLEANS:
        return "" if value.lower() in _TRUE_OR_FALSE or not value else "true or false"
    if name in _WORDS:
        return "" if value.lower() in _WORDS[name] else f"one of {', '.join(_WORDS[name])}"
    if name == f"{_METRICS}default" or name.startswith(f"{_METRICS}column."):
        return "" if _MODE.match(value.strip().lower()) else "none, counts, full or truncate(n)"
    return ""
