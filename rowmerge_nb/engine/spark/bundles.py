"""Archives of Python modules for executors: this package, and the modules that what travels to tasks is defined in."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import pickle
import sys
import sysconfig
import types
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SOURCE_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE: Final = __name__.partition(".")[0]
_NEVER: Final = sys.stdlib_module_names | {"__main__", "__mp_main__", "pyspark", "pyarrow", "numpy", "pandas"}
_LARGEST_FILE: Final = 1 << 20
_CONTRACT: Final = f"{PACKAGE}.spi"


@dataclass(frozen=True)
class Bundle:
    """Modules in an archive.

    Args:
        modules: names of the top-level modules and packages in it.
        locations: where each of them is: a file, or a package's directory.
    """

    modules: tuple[str, ...]
    locations: tuple[Path, ...]

    def state(self) -> tuple[tuple[str, int, int], ...]:
        """Return by what the files' system says whether anything may have changed: path, size and time of every file."""
        return tuple((path, state.st_size, state.st_mtime_ns) for path, _, state in self._files())

    def content(self) -> bytes:
        """Return the archive, the same bytes for the same files."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path, name, _ in self._files():
                archive.writestr(zipfile.ZipInfo(name), Path(path).read_bytes(), zipfile.ZIP_DEFLATED)
        return buffer.getvalue()

    def _files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        """Yield every file that travels: its path, its name in the archive, its state."""
        for location in self.locations:
            if location.is_file():
                yield str(location), location.name, location.stat()
                continue
            above = len(str(location.parent)) + 1
            for folder, folders, names in os.walk(location):
                folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
                for name in sorted(names):
                    path = f"{folder}/{name}"
                    # The list is read before every task's journey: one look per file.
                    if not name.startswith(".") and S_ISREG((state := os.stat(path)).st_mode) and state.st_size <= _LARGEST_FILE:  # noqa: PTH116
                        yield path, path[above:], state


def bundle(modules: Iterable[str]) -> Bundle:
    """Find where modules are, those that they import included, as far as they are the user's own.

    >>> bundle([PACKAGE]).modules
    ('rowmerge_nb',)
    """
    found: dict[str, Path] = {}
    waiting = sorted(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and (location := _location(name)) is not None:
            found[name] = location
            if name != PACKAGE:
                waiting.extend(top for top in _imported(location) if top != PACKAGE and _is_own(top))
    return Bundle(tuple(sorted(found)), tuple(found[name] for name in sorted(found)))


def pickled(value: Any) -> tuple[bytes, set[str]]:
    """Pickle what goes to tasks; give the bytes, and the modules of the user's that they speak of."""
    from pyspark import cloudpickle

    spoken: set[str] = set()

    class Noticing(cloudpickle.CloudPickler):
        def persistent_id(self, obj: Any) -> None:
            kind = type(obj)
            if kind is types.CodeType:
                # The code of a notebook's cell imports by these names, among others.
                spoken.update(name for name in obj.co_names if name in sys.modules and _is_own(name))
            elif kind is types.ModuleType:
                spoken.add(obj.__name__)
            elif isinstance(obj, type):
                spoken.add(obj.__module__)
                if _extends_contract(obj):
                    contracted.add(obj.__module__.partition(".")[0])
            elif kind is types.FunctionType:
                spoken.add(obj.__module__ or "")

    contracted: set[str] = set()
    buffer = io.BytesIO()
    pickler: Any = Noticing
    pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    tops = {name.partition(".")[0] for name in spoken}
    return buffer.getvalue(), {top for top in tops if top != PACKAGE and (top in contracted or _is_own(top))} - _NEVER


def _extends_contract(kind: type) -> bool:
    return any(base.__module__.startswith(_CONTRACT) for base in kind.__mro__)


def _is_own(name: str) -> bool:
    """Return whether a top-level module is the user's: neither Python's nor installed."""
    if not name or name in _NEVER or name == PACKAGE:
        return False
    location = _location(name)
    return location is not None and not any(location.is_relative_to(installed) for installed in _installed())


@cache
def _installed() -> tuple[Path, ...]:
    """Return the directories that Python and pip put modules into."""
    paths = {Path(path) for key, path in sysconfig.get_paths().items() if key in {"stdlib", "platstdlib", "purelib", "platlib"}}
    paths |= {Path(entry) for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}}
    return tuple({resolved for path in paths for resolved in (path, path.resolve())})


def _location(name: str) -> Path | None:
    """Return the file of a module, or the directory of a package; None for what is not Python's source."""
    module = sys.modules.get(name)
    file, paths = getattr(module, "__file__", None), list(getattr(module, "__path__", ()))
    if module is None:
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return None
        if spec is None:
            return None
        file, paths = spec.origin, list(spec.submodule_search_locations or ())
    location = Path(paths[0]) if paths else Path(file) if file else None
    if location is None or not (location.is_dir() or (location.is_file() and location.suffix in SOURCE_SUFFIXES)):
        return None
    return location


def _imported(location: Path) -> set[str]:
    """Return the top-level modules that a module's files import, at the top or within functions."""
    files = [location] if location.is_file() else sorted(location.rglob("*.py"))
    return {name for path in files for name in _imports_of(path, path.stat().st_mtime_ns)}


@cache
def _imports_of(path: Path, _: int) -> frozenset[str]:
    """Return what a file imports; read again when its time has changed."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def digest(content: bytes) -> str:
    """Return the hash by which an archive is known.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()
