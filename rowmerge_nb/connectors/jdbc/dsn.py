"""Connection strings: what of them may be shown, and what must not be."""

from __future__ import annotations

import os
import re
from typing import Final

from rowmerge_nb.base.conninfo import parameters

_SHOWN: Final = ("host", "hostaddr", "port", "dbname")
_SECRET: Final = re.compile("pass|secret|token|key", re.IGNORECASE)


def startup_options(dsn: str) -> str:
    """Return the options that a session begins with, of the connection string or of ``PGOPTIONS``.

    >>> startup_options("host=db options='-c geqo=off'")
    '-c geqo=off'
    """
    return parameters(dsn).get("options", os.environ.get("PGOPTIONS", ""))


def shown(dsn: str) -> str:
    """Return which database a connection string is about, without saying who asks or how.

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
