"""Connection strings of PostgreSQL's client library, and what every connection of this package adds to them.

Names in SQL are looked up along the ``search_path`` of the session. With another user's schema on it, an operator or function of that schema can
take the place of the server's own, and runs with the rights of the user who sends the SQL. So the path is set before the first query is sent, which is
the driver's own.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

SAFE_PATH: Final = "pg_catalog, pg_temp"
"""The search path of all connections: the server's own names, and temporary tables behind them."""
_PAIR: Final = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)")
_STARTUP: Final = "-csearch_path=pg_catalog,pg_temp -cclient_encoding=UTF8 -cquote_all_identifiers=off"
"""The driver asks for the server's types when it connects, and knows them by names that it must find as they are."""


def parameters(dsn: str) -> dict[str, str]:
    r"""Take a connection string apart, be it a URI or pairs; what cannot be read is left out.

    >>> parameters("postgresql://ann:s%20t@db:5433/shop?sslmode=require")["password"]
    's t'
    >>> parameters(r"host=db password='it\'s'")["password"]
    "it's"
    """
    if "://" in dsn:
        try:
            parts = urlsplit(dsn)
            found = {"host": parts.hostname, "user": parts.username, "password": parts.password, "dbname": parts.path.strip("/")}
            port = parts.port
        except ValueError:
            return {}
        given = {key: unquote(value) for key, value in found.items() if value}
        return {**given, **({"port": str(port)} if port else {}), **dict(parse_qsl(parts.query))}
    unescaped = (
        (key, re.sub(r"\\(.)", r"\1", value[1:-1] if value.startswith("'") else value)) for key, value in _PAIR.findall(dsn)
    )
    return dict(unescaped)


def with_safe_path(dsn: str) -> str:
    """Return a connection string with a search path that no other user can put names on.

    Options of the string, or of the variable ``PGOPTIONS`` where it has none, stay; of two settings the later one counts.

    Args:
        dsn: the connection string.

    >>> with_safe_path("host=db options='-c geqo=off'")
    "host=db options='-c geqo=off' options='-c geqo=off -csearch_path=pg_catalog,pg_temp -cclient_encoding=UTF8 -cquote_all_identifiers=off'"
    >>> with_safe_path("postgresql://db/shop?sslmode=require")
    'postgresql://db/shop?sslmode=require&options=-csearch_path%3Dpg_catalog%2Cpg_temp%20-cclient_encoding%3DUTF8%20-cquote_all_identifiers%3Doff'
    """
    options = f"{parameters(dsn).get('options', os.environ.get('PGOPTIONS', ''))} {_STARTUP}".strip()
    if "://" in dsn:
        return f"{dsn}{'&' if '?' in dsn else '?'}options={quote(options, safe='')}"
    escaped = re.sub(r"(['\\])", r"\\\1", options)
    return f"{dsn} options='{escaped}'".strip()
