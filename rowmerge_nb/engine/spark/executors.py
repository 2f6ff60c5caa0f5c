"""The executors of a Spark session: those of this machine have all that they need; others are sent it.

A session that `create_session` made has its workers on this machine, with this process's Python paths: tasks go as they are. To the
executors of a session of the user's the package is sent, and the modules of connectors, once per session and again when one of them has
changed; every worker process looks whether it has got what the driver has.
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
"""Rows that travel in a relation of the driver's: so much per relation, since a task of Spark's may not be larger than 128 MiB."""

_lock = threading.Lock()
_known: weakref.WeakKeyDictionary[Any, Executors] = weakref.WeakKeyDictionary()


def executors_of(spark: Any) -> Executors:
    """Return the executors of a session; sessions of one Spark context share theirs."""
    context = _context_of(spark)
    with _lock:
        if context not in _known:
            own = spark.conf.get("spark.python.daemon.module", None) == DAEMON
            master = "" if context is spark else context.master
            here = own or master == "local" or master.startswith("local[")
            _known[context] = Executors(sent=not own, elsewhere=not here)
        return _known[context]


def _context_of(spark: Any) -> Any:
    """Return the Spark context of a classic session; a session of Spark Connect itself, which has none."""
    try:
        return spark.sparkContext
    except Exception:  # noqa: BLE001 - Connect raises one of several types, by version
        return spark


class Executors:
    """What the executors of a session have been sent.

    Args:
        sent: whether anything must be sent to them.
        elsewhere: they may run on other machines, where this machine's temporary files are not.
    """

    def __init__(self, *, sent: bool, elsewhere: bool) -> None:
        self.sent = sent
        self.elsewhere = elsewhere
        self._lock = threading.Lock()
        self._directory: PrivateDirectory | None = None
        self._made: dict[Bundle, tuple[Any, str, str]] = {}
        self._there: set[str] = set()

    def task(self, spark: Any, task: Callable[..., Any], marks: Sequence[Mark], schema: pa.Schema | None) -> Callable[..., Any]:
        """Return what ``mapInArrow`` is to run for a task.

        Args:
            spark: the session.
            task: works on the rows of a partition.
            marks: what the driver has put into stores that the task uses.
            schema: the channels in which a record of it can travel; None where none can.

        Raises:
            SetupError: nothing can be sent to the executors.
        """
        if not self.sent:
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
                "told": None if schema is None else schema.serialize().to_pybytes(),
            },
        )

    def _bundled(self, spark: Any, modules: Bundle) -> tuple[str, str, list[str]]:
        """Return an archive's name, hash and modules; it is sent if it has not been."""
        with self._lock:
            state = modules.state()
            if modules not in self._made or self._made[modules][0] != state:
                content = modules.content()
                known = digest(content)
                name = f"{PACKAGE if modules.modules == (PACKAGE,) else 'modules'}-{known[:16]}.zip"
                if name not in self._there:
                    self._send(spark, name, content)
                self._made[modules] = (state, name, known)
            _, name, known = self._made[modules]
            return name, known, list(modules.modules)

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
                f"The executors cannot be sent the package: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
                hint="Look whether the session lives, and whether its server allows artifacts (addArtifacts).",
            ) from error
        finally:
            # PySpark has this process look for modules in what is sent, too: a module that is edited would no longer be found.
            sys.path[:] = before
        self._there.add(name)


def relation_of(spark: Any, cells: Sequence[bytes]) -> Any:
    """Return a DataFrame of ``id`` and ``cell``, a row for each of some pieces of data; they travel with it, to the tasks that read them."""
    frames, start = [], 0
    while start < len(cells):
        end, size = start + 1, len(cells[start])
        while end < len(cells) and size + len(cells[end]) <= RELATION_BYTES:
            size += len(cells[end])
            end += 1
        rows = [
            pa.record_batch({"id": pa.array([i], pa.int64()), "cell": pa.array([cells[i]], pa.binary())})
            for i in range(start, end)
        ]
        frames.append(spark.createDataFrame(pa.Table.from_batches(rows)))
        start = end
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole
