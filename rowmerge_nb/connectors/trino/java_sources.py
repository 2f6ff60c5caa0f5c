"""Lines of a plugin's source text, from jars of sources and folders."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.trace.raised import lines_around

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.trace.raised import CodeLines

_MOST_BYTES: Final = 2_000_000
"""The largest file of source text that is read."""
_FILE: Final = re.compile(r"[\w$-]+\.(?:java|kt|scala|groovy)")
_METHOD: Final = re.compile(r"((?:[\w$]+\.)*)[\w$/]+\.[\w$<>]+")
_ROOTS: Final = ("", "src/main/java/", "*/src/main/java/", "*/*/src/main/java/")
"""Where packages begin: in the folder itself, in a project of Maven, and in its modules."""


class JavaSources:
    """Reads source text when an error is reported. Nothing of it is executed.

    Args:
        sources: a jar of sources or a folder, or several of them; None for none.

    Raises:
        SetupError: one of them is neither a folder nor a jar.
    """

    def __init__(
        self, sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
    ) -> None:
        if sources is None:
            paths: list[str | os.PathLike[str]] = []
        else:
            paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
        for path in paths:
            if not (Path(path).is_dir() or (Path(path).is_file() and zipfile.is_zipfile(path))):
                raise SetupError(
                    f"sources = '{os.fspath(path)}' is neither a folder nor a jar",
                    hint="Name a jar such as 'trino-iceberg-483-sources.jar', or a folder such as"
                    " 'src/main/java'.",
                )
        self._paths = tuple(Path(path).absolute() for path in paths)

    def lines_around(self, file: str, function: str, line: int) -> CodeLines:
        """Return a line of a stack and its neighbors, without common indentation; empty if its file
        is not there.
        """
        method = _METHOD.fullmatch(function)
        if not self._paths or method is None or not _FILE.fullmatch(file) or line < 1:
            return ()
        name = method[1].replace(".", "/") + file
        text = next((text for path in self._paths for text in _texts(path, name)), "")
        return lines_around(text.splitlines(), line)


def _texts(path: Path, name: str) -> Iterator[str]:
    try:
        if path.is_dir():
            for root in _ROOTS:
                for source in path.glob(root + name):
                    if source.is_file() and source.stat().st_size <= _MOST_BYTES:
                        yield source.read_bytes().decode(errors="replace")
            return
        with zipfile.ZipFile(path) as jar:
            if jar.getinfo(name).file_size > _MOST_BYTES:
                return
            with jar.open(name) as entry:
                # The size that a jar states may be wrong.
                content = entry.read(_MOST_BYTES + 1)
            if len(content) <= _MOST_BYTES:
                yield content.decode(errors="replace")
    except (OSError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile, EOFError):
        return
