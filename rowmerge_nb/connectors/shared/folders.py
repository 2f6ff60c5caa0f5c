"""Folder names for tables and schemas."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]|^\.|^ | $")
_LONGEST: Final = 150
"""The maximum length in bytes; file systems allow 255, which leaves room for a suffix."""


def folder_name(name: str) -> str:
    """Return a unique folder name for a table or a schema, which is a single path component.

    >>> folder_name("accounts"), folder_name("größe 2")
    ('accounts', 'größe 2')
    >>> folder_name("/etc"), folder_name(".."), folder_name("../a%2F")
    ('%2Fetc', '%2E.', '%2E.%2Fa%252F')
    >>> len(folder_name("x" * 300))
    167
    """
    safe = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name)
    if len(safe.encode()) <= _LONGEST:
        return safe
    shortened = safe.encode()[:_LONGEST].decode(errors="ignore")
    return f"{shortened}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
