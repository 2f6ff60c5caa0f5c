"""Connection strings: what of them may be shown, and what must not be."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["redacted", "shown"]

_PAIR: Final = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)")
_SHOWN: Final = ("host", "hostaddr", "port", "dbname")
_SECRET: Final = re.compile("pass|secret|token|key", re.IGNORECASE)


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


def shown(dsn: str) -> str:
    """Say which database a connection string is about, without saying who asks or how.

    >>> shown("postgresql://ann:secret@db:5433/shop"), shown("host=db password=secret"), shown("?")
    ('host=db port=5433 dbname=shop', 'host=db', 'its default place')
    """
    found = parameters(dsn)
    return " ".join(f"{key}={found[key]}" for key in _SHOWN if found.get(key)) or "its default place"


def redacted(text: str, dsn: str) -> str:
    """Take the connection string and its secrets out of a text.

    >>> redacted('invalid option "sesame" in "host=db password=sesame"', "host=db password=sesame")
    'invalid option "***" in "***"'
    """
    secrets = [dsn, *(value for key, value in parameters(dsn).items() if _SECRET.search(key))]
    written = re.search(r"://[^/@]*:([^@]*)@", dsn)
    secrets += [written[1]] if written else []
    for secret in sorted({secret for secret in secrets if secret}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
