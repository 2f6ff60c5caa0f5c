"""The servers that a table's files may be on: only those that the catalog's configuration names."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

SERVERS: Final = "rowmerge-nb.servers"
"""The connection property that lists the allowed servers."""

_STORES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "oss": "s3",
    "gs": "gs",
    "gcs": "gs",
    "hf": "hf",
}
"""Schemes whose locations name a bucket; the configuration decides the server."""
_FAMILIES: Final = {"viewfs": "hdfs", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}
_CONNECTIONS: Final = {"s3.": "s3", "client.": "s3", "gcs.": "gs", "hf.": "hf"}


def local_path(location: str) -> str | None:
    """Return the path of a location on the local disk, or None.

    >>> local_path("file:///w/a b.parquet"), local_path("/w/a#b"), local_path("s3://w/a"), local_path("file://host/w/a")
    ('/w/a b.parquet', '/w/a#b', None, None)
    """
    if location.startswith("file:"):
        rest = location.removeprefix("file:")
        has_host = rest.startswith("//") and not rest.startswith("///")
        return None if has_host else "/" + rest.lstrip("/")
    return location if location.startswith("/") or not _scheme(location) else None


def _scheme(location: str) -> str:
    """Return the scheme as pyiceberg parses it, without requiring ``//``."""
    try:
        return urlsplit(location).scheme
    except ValueError:
        return location.partition(":")[0].lower()


def server_of(location: str) -> str | None:
    """Return the server of a location; None for the local disk.

    >>> server_of("s3a://lake/t"), server_of("hdfs://Name:8020/t"), server_of("abfss://box@a.dfs.core.windows.net/t")
    ('s3', 'hdfs://name:8020', 'abfs://a.dfs.core.windows.net')
    >>> server_of("/w/t"), server_of("FILE:///w/t"), server_of("file://other/w/t")
    (None, None, 'file://other')
    """
    scheme = _scheme(location)
    if scheme in _STORES:
        return _STORES[scheme]
    try:
        host = urlsplit(location).netloc.rpartition("@")[2].lower()
    except ValueError:
        host = location
    if scheme in {"", "file"} and not (scheme and host):
        return None
    return f"{_FAMILIES.get(scheme, scheme)}://{host}"


def named_servers(properties: Mapping[str, Any], locations: Iterable[str] = ()) -> frozenset[str]:
    """Return the servers that a catalog's configuration names.

    >>> sorted(named_servers({"warehouse": "gs://lake", "s3.endpoint": "http://127.0.0.1:9000"}))
    ['gs', 's3']
    """
    warehouse = str(properties.get("warehouse") or "")
    servers = {
        server_of(location)
        for location in (warehouse if "://" in warehouse else "", *locations)
        if location
    }
    servers |= {
        store
        for start, store in _CONNECTIONS.items()
        if any(name.startswith(start) for name in properties)
    }
    if host := properties.get("hdfs.host"):
        port = properties.get("hdfs.port")
        servers |= {f"hdfs://{host}".lower(), f"hdfs://{host}:{port}".lower(), "hdfs://"}
    if account := properties.get("adls.account-name"):
        servers |= {
            f"abfs://{account}.{service}.core.windows.net".lower() for service in ("dfs", "blob")
        }
    if host := properties.get("adls.account-host"):
        servers.add(f"abfs://{host}".lower())
    return frozenset(server for server in servers if server is not None)


def with_servers(properties: Mapping[str, Any], servers: Iterable[str]) -> dict[str, Any]:
    return {**properties, SERVERS: " ".join(sorted(servers))}


def _servers(properties: Mapping[str, Any]) -> Collection[str]:
    allowed = properties.get(SERVERS)
    return named_servers(properties) if allowed is None else str(allowed).split()


def require_reachable(properties: Mapping[str, Any], location: str) -> None:
    """Check that a location is on the local disk, or on an allowed server.

    >>> require_reachable({}, "s3://elsewhere/secret.parquet")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.ConnectorError: PERMISSION_DENIED: File 's3://elsewhere/secret.parquet' is not opened: ...
    """
    server = server_of(location)
    if server is None or server in _servers(properties):
        return
    raise ConnectorError(
        f"File '{location}' is not opened: the configuration of the catalog names no connection to"
        f" '{server}'",
        code="PERMISSION_DENIED",
        hint=(
            "A table's metadata does not decide which servers are contacted. If you"
            " trust this server, configure it for the catalog: pass its connection as"
            " properties, such as s3.endpoint, gcs.project-id, hdfs.host or"
            " adls.account-name."
        ),
    )


def require_readable(path: str) -> None:
    """Raise ICEBERG_BAD_DATA for a pipe or a device, which may never end."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return  # the reader reports the error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ConnectorError(
            f"File '{path}' is a pipe or a device, which cannot be part of an Iceberg table",
            code="ICEBERG_BAD_DATA",
            hint="Ask the author of the table's metadata where the file came from.",
        )
