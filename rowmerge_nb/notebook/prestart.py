"""The start of Spark after ``%load_ext``, while the user types the first statement."""

from __future__ import annotations

import contextvars
import importlib
import os
import re
import sys
import threading
from html import escape
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.notebook.progress import runs_in_nbval

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.engine.spark.lazy_session import LazySession

IDLE_SECONDS: Final = 0.5
"""How long the kernel has nothing to do before Spark starts.

A person types longer than that. Programs that run a notebook send the next cell at once, so they
start Spark by their first statement, as without this module.
"""
_LINE: Final = (
    "Spark is starting in the background (%config MergeMagic.prestart = False prevents this)"
)
_OWN_SPARK: Final = re.compile(
    r"\bSpark(?:Session|Context|Conf)\b|\bpyspark\b|\bEngine\([^)]*\b(?:spark|cores)\s*="
)
"""How a cell names a Spark that would not be the one in the background."""
_LOADS_ONLY: Final = re.compile(r"(?:[ \t]*(?:%(?:(?:re)?load_ext|config)\b.*|#.*)?(?:\n|\Z))*")
_CONNECT: Final = "pyspark.sql.connect.session"
_REMOTE: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


class Prestart:
    """Starts Spark for the default engine once the kernel is idle.

    A cell that names a Spark session of the user's ends an unused one, with its Java, before the
    cell runs: one process has one Spark.
    """

    def __init__(self, shell: InteractiveShell, is_wanted: Callable[[], bool]) -> None:
        self._shell = shell
        self._is_wanted = is_wanted
        self._timer: threading.Timer | None = None
        self._is_registered = False
        self._has_started = False
        # The kernel finds the cell of an output in a context variable: here that of %load_ext.
        self._context = contextvars.copy_context()
        self._parent = _parent_of(shell)
        self._cell: str | None = None

    def register(self) -> None:
        """Watch the kernel's cells; only a kernel has a user who types meanwhile."""
        if hasattr(self._shell, "kernel") and not runs_in_nbval() and not self._is_registered:
            self._is_registered = True
            self._shell.events.register("pre_run_cell", self._before_cell)
            self._shell.events.register("post_run_cell", self._after_cell)

    def unregister(self) -> None:
        """Watch no more; a Spark that runs stays."""
        self._cancel()
        if self._is_registered:
            self._is_registered = False
            self._shell.events.unregister("pre_run_cell", self._before_cell)
            self._shell.events.unregister("post_run_cell", self._after_cell)

    def end(self) -> None:
        """End a Spark that no statement has used; do nothing if there is none."""
        from rowmerge_nb.default import end_prestart

        self._cancel()
        end_prestart()

    # -- events

    def _before_cell(self, info: Any) -> None:
        self._cancel()
        if _OWN_SPARK.search(info.raw_cell or ""):
            self.end()
            self.unregister()

    def _after_cell(self, result: Any) -> None:
        if self._cell is None:
            self._cell = result.info.raw_cell or ""
        self._cancel()
        if self._has_started:
            return
        # The thread that waits must not keep a kernel from ending.
        self._timer = threading.Timer(IDLE_SECONDS, self._context.copy().run, (self._start,))
        self._timer.daemon = True
        self._timer.start()

    def _cancel(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    # -- in the background

    def _start(self) -> None:
        if not self._is_wanted() or _has_session():
            return
        self._has_started = True
        from rowmerge_nb.default import prestart

        session = prestart()
        if session is None:
            return
        loads_only = _LOADS_ONLY.fullmatch(self._cell or "") is not None
        line = _Line(self._shell, self._parent if loads_only else None)
        line.show(_LINE)
        try:
            _warm_up(session)
        except Exception:  # noqa: BLE001 - the first statement meets the same error, where it is shown with its next step
            return
        finally:
            line.remove()


class _Line:
    """A line below the cell of ``%load_ext``, which leaves nothing in a saved notebook."""

    def __init__(self, shell: InteractiveShell, parent: str | None) -> None:
        self._shell = shell
        self._publisher: Any = shell.display_pub
        self._parent = parent
        self._transient = {"display_id": f"rowmerge_nb-prestart-{os.getpid()}"}

    def show(self, line: str) -> None:
        if self._is_at_cell:
            html = f"<p style='opacity:.7;margin:0'>{escape(line)}</p>"
            self._publisher.publish(
                {"text/plain": line, "text/html": html}, transient=self._transient
            )

    @property
    def _is_at_cell(self) -> bool:
        """Whether an output goes to the cell; older kernels send it to the last one that ran."""
        return self._parent is not None and _parent_of(self._shell) == self._parent

    def remove(self) -> None:
        if self._is_at_cell:
            # A front end that ignores the second message has an empty output.
            self._publisher.publish({"text/plain": ""}, transient=self._transient, update=True)
            self._publisher.clear_output()


def _warm_up(session: LazySession) -> None:
    from rowmerge_nb.demo import SETUP, STATEMENT
    from rowmerge_nb.engine.api.what_if import variants_of
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.report.explorer.explorer_file import explorer_page

    engine = Engine(spark=session)
    # Java starts meanwhile. No widget is made: it would belong to the cell of %load_ext.
    importlib.import_module("rowmerge_nb.report.explorer.widget")
    _ = session.spark
    engine.run_script(SETUP)
    result = engine.run(STATEMENT)
    result._repr_mimebundle_()
    explorer_page(result.trace, None, variants_of(result.trace))


def _parent_of(shell: InteractiveShell) -> str | None:
    header = getattr(shell.display_pub, "parent_header", None) or {}
    return header.get("msg_id")


def _has_session() -> bool:
    if any(os.environ.get(name) for name in _REMOTE) or _CONNECT in sys.modules:
        return True
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None
