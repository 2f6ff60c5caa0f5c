"""Exceptions of a plugin as errors of connectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import HOST_TERMINATED, ConnectorError
from rowmerge_nb.connectors.trino.host_log import OUT_OF_MEMORY
from rowmerge_nb.connectors.trino.java_stack import plugin_frames, raised_of, stack_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CONFLICT: Final = re.compile(
    r"Found conflicting files|Cannot commit.*(?:stale|conflict|changed)|concurrent(?:ly)? "
    r"(?:update|modif|chang)|Failed to commit.*(?:conflict|concurrent)",
    re.IGNORECASE | re.DOTALL,
)
_CONFLICT_CLASSES: Final = frozenset(
    {
        "org.apache.iceberg.exceptions.CommitFailedException",
        "org.apache.iceberg.exceptions.ValidationException",
    }
)


LOST_FIELD_HINT: Final = (
    "Check its @JsonProperty or @JsonIgnore, unless only the coordinator needs it."
)


class PluginError(ConnectorError):
    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.java_class = ""


def error_of(answer: Mapping[str, Any]) -> PluginError:
    causes = tuple(answer.get("causes") or ())
    code = str(answer.get("code") or "GENERIC_INTERNAL_ERROR")
    message = str(answer.get("message") or answer.get("class") or "The plugin failed")
    texts = [message, *(str(cause.get("message") or "") for cause in causes)]
    hint = answer.get("hint")
    classes = {answer.get("class"), *(cause.get("class") for cause in causes)}
    if classes & _CONFLICT_CLASSES or any(_CONFLICT.search(text) for text in texts):
        code, hint = "TRANSACTION_CONFLICT", hint or "Run the statement again."
    # Several mistakes of a configuration are lines in Java, and one sentence in the host's error.
    deepest = "; ".join(texts[-1].strip().splitlines())
    if deepest and deepest not in message and texts[-1].strip() not in message:
        message = f"{message} ({deepest})"
    frames = tuple(str(frame) for frame in answer.get("frames") or ())
    error = PluginError(message, code=code, hint=hint or _place_hint(frames))
    error.java_class = str(answer.get("class") or "")
    error.code_error = raised_of(answer)
    for text in stack_lines(answer):
        error.add_note(text)
    return error


def add_lost_fields(error: ConnectorError, losses: Iterable[str]) -> None:
    """Add the fields that a handle has lost as JSON to the hint of a task's error."""
    sentences = list(losses)
    if sentences:
        error.hint = " ".join(filter(None, [error.hint, *sentences, LOST_FIELD_HINT]))


def _place_hint(frames: tuple[str, ...]) -> str | None:
    """Return the frame of the plugin nearest to the exception; the report has the others.

    >>> _place_hint(("java.util.List.of(List.java:1)", "shop.Sink.finish(Sink.java:9)"))
    'In Java: shop.Sink.finish(Sink.java:9).'
    """
    own_frames = plugin_frames(frames)
    return f"In Java: {own_frames[0]}." if own_frames else None


def terminated(reason: str, log_end: str, *, was_ready: bool = True) -> ConnectorError:
    tail = f"; its last words: {log_end}" if log_end else ""
    if OUT_OF_MEMORY in log_end:
        hint = "Give Java more memory, such as java_options=['-Xmx2g']."
    elif was_ready:
        hint = "Run the statement again; a new process starts."
    else:
        hint = "It ended before it was ready: check java_options and the catalog's properties."
    return ConnectorError(
        f"The process of the plugin ended ({reason}){tail}",
        code=HOST_TERMINATED,
        hint=hint,
        changed=False,
    )
