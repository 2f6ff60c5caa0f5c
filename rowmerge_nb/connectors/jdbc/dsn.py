"""Connection strings: their visible parts, and redaction of secrets."""

from __future__ import annotations

import os
from typing import Final

from rowmerge_nb.base.conninfo import parameters, secrets_in

_SHOWN: Final = ("host", "hostaddr", "port", "dbname")


def startup_options(dsn: str) -> str:
    """Return the startup options of a connection string or of ``PGOPTIONS``.

    >>> startup_options("host=db options='-c geqo=off'")
    '-c geqo=off'
    """
    return parameters(dsn).get("options", os.environ.get("PGOPTIONS", ""))


def shown(dsn: str) -> str:
    """Return the database, without user and secrets.

    >>> shown("postgresql://ann:secret@db:5433/shop"), shown("host=db password=secret"), shown("?")
    ('host=db port=5433 dbname=shop', 'host=db', 'its default place')
    """
    values = parameters(dsn)
    return (
        " ".join(f"{key}={values[key]}" for key in _SHOWN if values.get(key)) or "its default place"
    )


def redacted(text: str, dsn: str) -> str:
    """Replace the connection string and its secrets in a text.

    >>> redacted('invalid option "sesame" in "host=db password=sesame"', "host=db password=sesame")
    'invalid option "***" in "***"'
    """
    for secret in sorted({dsn, *secrets_in(dsn)} - {""}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
