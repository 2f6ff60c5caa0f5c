"""Calls of a connector within tasks refuse ``breakpoint()``."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from rowmerge_nb.base.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_breakpoints() -> Iterator[None]:
    pyspark = sys.modules.get("pyspark")
    if pyspark is None or pyspark.TaskContext.get() is None:
        yield
        return
    before, sys.breakpointhook = sys.breakpointhook, _refuse
    try:
        yield
    finally:
        sys.breakpointhook = before


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ExecutionError.unsupported(
        "breakpoint() cannot stop in a task: it runs in a Spark process without a keyboard",
        hint=(
            "%debug stops there, in this process. So does breakpoint() in a replay of"
            " the statement's record: rowmerge_nb.replay(error.result, connector)."
        ),
    )
