"""The executors of a Spark session.

Executors of other sessions than `create_session`'s are sent the package and the modules of
connectors. Every worker checks that its versions are the driver's.
"""

from __future__ import annotations

import sys
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.private import PrivateDirectory, sweep
from rowmerge_nb.engine.spark.bundles import PACKAGE, Bundle, bundle, digest, pickled
from rowmerge_nb.engine.tasks import envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.engine.spark.marks import Mark

DAEMON: Final = "rowmerge_nb.engine.spark.worker"
RELATION_BYTES: Final = 1 << 25
"""Maximum size of a local relation: Spark limits tasks to 128 MiB."""

_lock = threading.Lock()
_executors: weakref.WeakKeyDictionary[Any, Executors] = weakref.WeakKeyDictionary()


def executors_of(spark: Any) -> Executors:
    """Return the executors of a session; sessions of one Spark context share them."""
    context = _context_of(spark)
    with _lock:
        if context not in _executors:
            own = spark.conf.get("spark.python.daemon.module", None) == DAEMON
            master = "" if context is spark else context.master
            here = own or master == "local" or master.startswith("local[")
            _executors[context] = Executors(sends_packages=not own, elsewhere=not here)
        return _executors[context]


def _context_of(spark: Any) -> Any:
    try:
        return spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect raises one of several types, by version
        return spark


class Executors:
    """The archives that the executors of a session have.

    Args:
        elsewhere: they may run on other machines, without this machine's temporary files.
    """

    def __init__(self, *, sends_packages: bool, elsewhere: bool) -> None:
        self.sends_packages = sends_packages
        self.elsewhere = elsewhere
        self._lock = threading.Lock()
        self._directory: PrivateDirectory | None = None
        self._made: dict[Bundle, tuple[Any, str, str]] = {}
        self._there: set[str] = set()

    def task(
        self, spark: Any, task: Callable[..., Any], marks: Sequence[Mark], schema: pa.Schema | None
    ) -> Callable[..., Any]:
        if not self.sends_packages:
            return task
        content, modules = pickled(task)
        bundles = [self._bundled(spark, bundle([PACKAGE]))]
        if modules:
            bundles.append(self._bundled(spark, bundle(modules)))
        from pyspark import cloudpickle

        by_value: Callable[..., None] = cloudpickle.register_pickle_by_value
        by_value(envelope)
        return partial(
            envelope.deliver,
            {
                "task": content,
                "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
                "pyarrow": pa.__version__,
                "bundles": bundles,
                "marks": [(str(mark.path), mark.content) for mark in marks],
                "record_schema": None if schema is None else schema.serialize().to_pybytes(),
            },
        )

    def _bundled(self, spark: Any, modules: Bundle) -> tuple[str, str, list[str]]:
        with self._lock:
            state = modules.state()
            if modules not in self._made or self._made[modules][0] != state:
                content = modules.content()
                checksum = digest(content)
                name = (
                    f"{PACKAGE if modules.modules == (PACKAGE,) else 'modules'}-{checksum[:16]}.zip"
                )
                if name not in self._there:
                    self._send(spark, name, content)
                self._made[modules] = (state, name, checksum)
            _, name, checksum = self._made[modules]
            return name, checksum, list(modules.modules)

    def _send(self, spark: Any, name: str, content: bytes) -> None:
        if self._directory is None:
            sweep()
            self._directory = PrivateDirectory()
            weakref.finalize(self, self._directory.remove)
        path = self._directory.path / name
        path.write_bytes(content)
        before = list(sys.path)
        try:
            spark.addArtifacts(str(path), pyfile=True)
        except Exception as error:
            raise SetupError(
                f"The executors cannot be sent the package: {type(error).__name__}:"
                f" {str(error).strip().partition(chr(10))[0]}",
                hint=(
                    "Check that the session is running and that its server allows"
                    " artifacts (addArtifacts)."
                ),
            ) from error
        finally:
            # PySpark adds the archive to sys.path of this process, too, which would hide edited
            # modules.
            sys.path[:] = before
        self._there.add(name)


def relation_of(spark: Any, cells: Sequence[bytes]) -> Any:
    """Return a DataFrame of ``id`` and ``cell`` that carries the data itself."""
    frames, start = [], 0
    while start < len(cells):
        end, size = start + 1, len(cells[start])
        while end < len(cells) and size + len(cells[end]) <= RELATION_BYTES:
            size += len(cells[end])
            end += 1
        rows = [
            pa.record_batch(
                {"id": pa.array([i], pa.int64()), "cell": pa.array([cells[i]], pa.binary())}
            )
            for i in range(start, end)
        ]
        frames.append(spark.createDataFrame(pa.Table.from_batches(rows)))
        start = end
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole
