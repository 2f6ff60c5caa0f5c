"""How to install the optional libraries of this package."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_PACKAGE: Final = "rowmerge-nb"


def install_command(extra: str) -> str:
    """Return the command that installs an extra from where this package came from: a folder, an
    archive, a repository or an index.

    >>> install_command("trino").startswith("pip install ")
    True
    """
    requirement = f"{_PACKAGE}[{extra}]"
    origin = _origin()
    url = origin.get("url", "")
    if "dir_info" in origin:
        folder = unquote(urlsplit(url).path)
        if not Path(folder).is_dir():
            url = ""
        elif origin["dir_info"].get("editable"):
            return f"pip install -e {shlex.quote(f'{folder}[{extra}]')}"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}"
    return f"pip install {shlex.quote(f'{requirement} @ {url}' if url else requirement)}"


def _origin() -> dict[str, Any]:
    """Return what pip has noted of a package that no index has given; nothing otherwise."""
    try:
        note = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    origin: dict[str, Any] = json.loads(note) if note else {}
    return origin
