"""The log of contract calls."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, error_text
from rowmerge_nb.base.names import class_name
from rowmerge_nb.engine.tasks.call_frames import raised_by
from rowmerge_nb.engine.tasks.strikes import noted
from rowmerge_nb.trace.contract_calls import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.trace.raised import Raised

T = TypeVar("T")


@dataclass
class CallLog:
    """The coordinator's contract calls, in order."""

    started: float = field(default_factory=time.perf_counter)
    calls: list[Call] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    handle: object = None

    def call(
        self,
        method: str,
        function: Callable[[], T],
        arguments: str = "",
        *,
        gave: Callable[[T], str] = lambda _: "",
        size: int | None = None,
    ) -> T:
        began = time.perf_counter()

        def note(result: str, error: str | None, injected: str = "") -> None:
            seconds = time.perf_counter() - began
            self.calls.append(
                Call(
                    0,
                    "coordinator",
                    method,
                    arguments,
                    result,
                    bytes=size,
                    seconds=seconds,
                    started=began - self.started,
                    error=error,
                    injected=injected,
                )
            )

        try:
            answer = function()
        except BaseException as failure:
            number = 1 + sum(one.method == method for one in self.calls)
            raised = raised_by(
                failure, method, caller="coordinator", call=number, handle=self.handle
            )
            if raised is not None:
                self.raised.append(raised)
            note("", error_text(failure))
            if isinstance(failure, RowMergeError) or not isinstance(failure, Exception):
                raise
            raise ExecutionError(
                f"{method} failed: {error_text(failure)}", step=method
            ) from failure
        note(gave(answer), None, noted())
        return answer


def layout_text(layout: ConnectorTableLayout | None) -> str:
    if layout is None:
        return "none"
    columns = ", ".join(layout.partition_columns) or "row_id"
    return (
        f"{columns},"
        f" {'the engine hashes' if layout.partitioning is None else class_name(layout.partitioning)}"
    )
