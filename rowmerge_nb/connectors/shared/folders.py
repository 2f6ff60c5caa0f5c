"""Folders for tables and schemas: a name is one step of a path, whatever it holds."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]|^\.|^ | $")
_LONGEST: Final = 150
"""So many bytes leave room for what is put behind a name: file systems take 255."""


def folder_name(name: str) -> str:
    """Return the name of a folder for a table or a schema; other names have other folders.

    Args:
        name: the table's or schema's name.

    >>> folder_name("accounts"), folder_name("größe 2")
    ('accounts', 'größe 2')
    >>> folder_name("/etc"), folder_name(".."), folder_name("../a%2F")
    ('%2Fetc', '%2E.', '%2E.%2Fa%252F')
    >>> len(folder_name("x" * 300))
    167
    """
    safe = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", name)
    if len(safe.encode()) <= _LONGEST:
        return safe
    shortened = safe.encode()[:_LONGEST].decode(errors="ignore")
    return f"{shortened}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
