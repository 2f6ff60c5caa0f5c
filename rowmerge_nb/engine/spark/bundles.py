"""Archives of Python modules for executors: this package, and the user's modules."""

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
_NEVER: Final = sys.stdlib_module_names | {
    "__main__",
    "__mp_main__",
    "pyspark",
    "pyarrow",
    "numpy",
    "pandas",
}
_LARGEST_FILE: Final = 1 << 20
_CONTRACT: Final = f"{PACKAGE}.spi"


@dataclass(frozen=True)
class Bundle:
    modules: tuple[str, ...]
    locations: tuple[Path, ...]

    def state(self) -> tuple[tuple[str, int, int], ...]:
        return tuple((path, state.st_size, state.st_mtime_ns) for path, _, state in self._files())

    def content(self) -> bytes:
        """Return the archive, byte-identical for identical files."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path, name, _ in self._files():
                archive.writestr(
                    zipfile.ZipInfo(name), Path(path).read_bytes(), zipfile.ZIP_DEFLATED
                )
        return buffer.getvalue()

    def _files(self) -> Iterator[tuple[str, str, os.stat_result]]:
        for location in self.locations:
            if location.is_file():
                yield str(location), location.name, location.stat()
                continue
            above = len(str(location.parent)) + 1
            for folder, folders, names in os.walk(location):
                folders[:] = sorted(
                    name for name in folders if not name.startswith((".", "__pycache__"))
                )
                for name in sorted(names):
                    path = f"{folder}/{name}"
                    # This runs before every task is sent: one stat per file.
                    if (
                        not name.startswith(".")
                        and S_ISREG((state := os.stat(path)).st_mode)  # noqa: PTH116
                        and state.st_size <= _LARGEST_FILE
                    ):
                        yield path, path[above:], state


def bundle(modules: Iterable[str]) -> Bundle:
    """Find the user's modules, including those that they import.

    >>> bundle([PACKAGE]).modules
    ('rowmerge_nb',)
    """
    locations: dict[str, Path] = {}
    waiting = sorted(modules)
    while waiting:
        name = waiting.pop()
        if name not in locations and (location := _location(name)) is not None:
            locations[name] = location
            if name != PACKAGE:
                waiting.extend(
                    top for top in _imported(location) if top != PACKAGE and _is_own(top)
                )
    return Bundle(tuple(sorted(locations)), tuple(locations[name] for name in sorted(locations)))


def pickled(value: Any) -> tuple[bytes, set[str]]:
    """Pickle a value for tasks; return the bytes, and the user's modules that it needs."""
    from pyspark import cloudpickle

    modules: set[str] = set()

    class Noticing(cloudpickle.CloudPickler):
        def persistent_id(self, obj: Any) -> None:
            obj_type = type(obj)
            if obj_type is types.CodeType:
                # Code of notebook cells imports modules by these names.
                modules.update(
                    name for name in obj.co_names if name in sys.modules and _is_own(name)
                )
            elif obj_type is types.ModuleType:
                modules.add(obj.__name__)
            elif isinstance(obj, type):
                modules.add(obj.__module__)
                if _extends_contract(obj):
                    contracted.add(obj.__module__.partition(".")[0])
            elif obj_type is types.FunctionType:
                modules.add(obj.__module__ or "")

    contracted: set[str] = set()
    buffer = io.BytesIO()
    pickler: Any = Noticing
    pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    tops = {name.partition(".")[0] for name in modules}
    return (
        buffer.getvalue(),
        {top for top in tops if top != PACKAGE and (top in contracted or _is_own(top))} - _NEVER,
    )


def _extends_contract(cls: type) -> bool:
    return any(base.__module__.startswith(_CONTRACT) for base in cls.__mro__)


def _is_own(name: str) -> bool:
    if not name or name in _NEVER or name == PACKAGE:
        return False
    location = _location(name)
    return location is not None and not any(
        location.is_relative_to(installed) for installed in _installed()
    )


@cache
def _installed() -> tuple[Path, ...]:
    paths = {
        Path(path)
        for key, path in sysconfig.get_paths().items()
        if key in {"stdlib", "platstdlib", "purelib", "platlib"}
    }
    paths |= {
        Path(entry) for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}
    }
    return tuple({resolved for path in paths for resolved in (path, path.resolve())})


def _location(name: str) -> Path | None:
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
    if location is None or not (
        location.is_dir() or (location.is_file() and location.suffix in SOURCE_SUFFIXES)
    ):
        return None
    return location


def _imported(location: Path) -> set[str]:
    files = [location] if location.is_file() else sorted(location.rglob("*.py"))
    return {name for path in files for name in _imports_of(path, path.stat().st_mtime_ns)}


@cache
def _imports_of(path: Path, _: int) -> frozenset[str]:
    """Return the modules that a file imports; the second argument is its time, part of the cache
    key.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return frozenset()
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules.add(node.module.partition(".")[0])
    return frozenset(modules)


def digest(content: bytes) -> str:
    """Return the hash of an archive.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()
