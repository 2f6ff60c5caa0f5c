"""A progress line, shown after half a second."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import time
from html import escape
from typing import TYPE_CHECKING, Any, Final, Self

from rowmerge_nb.base.words import number, plural

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell

_DELAY: Final = 0.5

_STEPS: Final = {
    "parse": "reading the statement",
    "analyze": "looking up names and types",
    "wait": "waiting for another statement that changes the same table",
    "plan": "planning",
    "start Spark": "waiting for Java and Spark, which start once",
    "run": "running on Spark",
    "commit": (
        "committing; an interrupt waits for the end, and a second one after 10"
        " seconds ends the wait"
    ),
}


class CellProgress:
    """Shows the current step; a context manager around a statement.

    In a notebook the line is an output, and outputs can only be cleared together.
    So ``again`` shows the cell's earlier reports again, and printed text is recorded and printed
    again.

    Args:
        whole_cell: the cell has no other code; otherwise no line is shown.

    Attributes:
        last: the latest step, or ``""``.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        again: Callable[[], None],
        *,
        whole_cell: bool = True,
        tasks: Callable[[], tuple[int, int] | None] = lambda: None,
        rows: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._tasks = tasks
        self._rows = rows
        self._painter = _painter(shell, again, whole_cell)
        self.last = ""
        self._began = time.monotonic()
        self._changed = threading.Condition()
        self._done = False
        # The kernel finds the cell of an output in a context variable.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._show,), name="rowmerge_nb-progress", daemon=True
        )

    def __call__(self, step: str) -> None:
        """Report that a step begins; may be called from any thread."""
        with self._changed:
            self.last = step
            self._changed.notify()

    def __enter__(self) -> Self:
        self._painter.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._changed:
            self._done = True
            self._changed.notify()
        self._thread.join()
        self._painter.stop()

    def _show(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._done, timeout=_DELAY)
        while not self._done:
            # Computed without the lock, so that the statement can proceed.
            line = self._line()
            with self._changed:
                if not self._done:
                    self._painter.paint(line)
                    self._changed.wait(timeout=1)

    def _line(self) -> str:
        words = _STEPS.get(self.last, self.last) or "working"
        tasks = self._tasks() if self.last == "run" else None
        suffix = "" if tasks is None else f", {number(tasks[0])} of {plural(tasks[1], 'task')} done"
        if tasks is not None and (rows := self._rows()) is not None:
            suffix += f", {plural(rows, 'row')}"
        return f"{words}{suffix}, {time.monotonic() - self._began:.0f} s"


class _Painter:
    def start(self) -> None: ...

    def paint(self, line: str) -> None: ...

    def stop(self) -> None: ...


class _TerminalPainter(_Painter):
    def __init__(self) -> None:
        self._width = 0

    def paint(self, line: str) -> None:
        sys.stderr.write(f"\r{line:<{self._width}}")
        sys.stderr.flush()
        self._width = len(line)

    def stop(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


class _NotebookPainter(_Painter):
    """Shows the line as an output that is updated in place and finally cleared."""

    def __init__(self, shell: InteractiveShell, again: Callable[[], None]) -> None:
        self._shell = shell
        self._again = again
        self._handle: Any = None
        self._recorders: list[tuple[str, _Recorder]] = []

    def start(self) -> None:
        for name in ("stdout", "stderr"):
            recorder = _Recorder(getattr(sys, name))
            setattr(sys, name, recorder)
            self._recorders.append((name, recorder))

    def paint(self, line: str) -> None:
        from IPython.display import display

        bundle = {
            "text/plain": line,
            "text/html": f"<p style='opacity:.7;margin:0'>{escape(line)}</p>",
        }
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(bundle, raw=True)

    def stop(self) -> None:
        for name, recorder in self._recorders:
            # Keep a stream that other code has installed meanwhile.
            if getattr(sys, name) is recorder:
                setattr(sys, name, recorder.stream)
            recorder.recording = False
        if self._handle is None:
            return
        from IPython.display import clear_output

        # Not wait=True: without further output the line would stay.
        clear_output()  # type: ignore[no-untyped-call]
        self._again()
        for _, recorder in self._recorders:
            if recorder.text:
                recorder.stream.write("".join(recorder.text))


class _Recorder:
    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.text: list[str] = []
        self.recording = True

    def write(self, text: str) -> int:
        if self.recording:
            self.text.append(text)
        return int(self.stream.write(text) or 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def runs_in_nbval() -> bool:
    """Return whether nbval has started this process as a kernel.

    It compares all outputs with the saved ones, also those that are cleared. Its kernels inherit
    pytest's name of the current test, which for a cell is ``file.ipynb::Cell 0``.
    """
    return ".ipynb::" in os.environ.get("PYTEST_CURRENT_TEST", "")


def _painter(shell: InteractiveShell, again: Callable[[], None], whole_cell: bool) -> _Painter:
    if hasattr(shell, "kernel"):
        visible = whole_cell and _is_magic_cell(shell) and not runs_in_nbval()
        return _NotebookPainter(shell, again) if visible else _Painter()
    return _TerminalPainter() if sys.stderr is not None and sys.stderr.isatty() else _Painter()


def ends_with_cell(shell: Any) -> bool:
    """Return whether a cell magic is the whole cell, and the kernel restores SIGINT afterwards."""
    return hasattr(getattr(shell, "kernel", None), "post_handler_hook") and _is_magic_cell(shell)


def _is_magic_cell(shell: Any) -> bool:
    try:
        return str(shell.get_parent()["content"]["code"]).lstrip().startswith("%%merge")
    except (AttributeError, LookupError, TypeError):
        return False
