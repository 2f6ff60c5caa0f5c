"""Connection strings of PostgreSQL's client library, with a safe search path.

With another user's schema on the ``search_path``, its functions and operators can replace the
server's own, and run with the rights of the connected user. The path is therefore set before the
driver's first query.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

SAFE_PATH: Final = "pg_catalog, pg_temp"
"""The search path of all connections: the server's own names, then temporary tables."""
_PAIR: Final = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)")
_SECRET: Final = re.compile("pass|pasw|pwd|secret|token|key", re.IGNORECASE)
_ADDRESS_PASSWORD: Final = re.compile(r"(://[^:/@\s]*:)([^\s]*)(?=@)")
_SECRET_PAIR: Final = re.compile(
    r"(?i)([\w.-]*(?:pass|pasw|pwd|secret|token|key)[\w.-]*\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)"
)
_STARTUP: Final = (
    "-csearch_path=pg_catalog,pg_temp -cclient_encoding=UTF8 -cquote_all_identifiers=off"
)
"""The driver queries type names when it connects, and must find them unquoted and in UTF-8."""


def parameters(dsn: str) -> dict[str, str]:
    """Parse a connection string, ignoring unreadable parts."""
    if "://" in dsn:
        try:
            parts = urlsplit(dsn)
            fields = {
                "host": parts.hostname,
                "user": parts.username,
                "password": parts.password,
                "dbname": parts.path.strip("/"),
            }
            port = parts.port
        except ValueError:
            return {}
        pairs = {key: unquote(value) for key, value in fields.items() if value}
        return {**pairs, **({"port": str(port)} if port else {}), **dict(parse_qsl(parts.query))}
    unescaped = (
        (key, re.sub(r"\\(.)", r"\1", value[1:-1] if value.startswith("'") else value))
        for key, value in _PAIR.findall(dsn)
    )
    return dict(unescaped)


def is_secret(name: str) -> bool:
    """Return whether a parameter of this name is never shown.

    >>> is_secret("password"), is_secret("s3.secret-access-key"), is_secret("host")
    (True, True, False)
    """
    return _SECRET.search(name) is not None


def secrets_in(text: str) -> set[str]:
    """Return the passwords and other secrets of a connection string, as written and decoded."""
    return {
        secret
        for secret in (
            *(value for name, value in parameters(text).items() if is_secret(name)),
            *(match[2] for match in _ADDRESS_PASSWORD.finditer(text)),
            *(match[2].strip("'") for match in _SECRET_PAIR.finditer(text)),
        )
        if secret
    }


def masked(text: str) -> str:
    """Return a connection string with its secrets masked."""
    return _SECRET_PAIR.sub(r"\1***", _ADDRESS_PASSWORD.sub(r"\1***", text))


def with_safe_path(dsn: str) -> str:
    """Return a connection string with a search path that other users cannot add names to.

    Other options of the string, or else of ``PGOPTIONS``, stay.
    """
    options = (
        f"{parameters(dsn).get('options', os.environ.get('PGOPTIONS', ''))} {_STARTUP}".strip()
    )
    if "://" in dsn:
        return f"{dsn}{'&' if '?' in dsn else '?'}options={quote(options, safe='')}"
    escaped = re.sub(r"(['\\])", r"\\\1", options)
    return f"{dsn} options='{escaped}'".strip()
