"""Exceptions of Java as records of a connector's errors, and as Java prints them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.trace.raised import CodeFrame, Raised, RaisedFrom

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_JAVA: Final = re.compile(r"(?:java|javax|jdk|sun|com\.sun|org\.jpype)\.")
_ENGINE: Final = re.compile(
    r"(?:java|javax|jdk|sun|com\.sun|org\.jpype|com\.google|io\.airlift|io\.trino\.plugin\.base"
    r"|io\.trino(?!\.plugin\.))\."
)
"""Java's classes, its libraries, and Trino's engine with the wrappers that all plugins share."""
_FRAME: Final = re.compile(r"(.+)\(([^():]*)(?::(\d+))?\)")
_MOST_FRAMES: Final = 10
_MOST_CAUSES: Final = 5
_MOST_LINES: Final = 200
_MOST_TEXT: Final = 1_000
_UNNAMED: Final = "GENERIC_INTERNAL_ERROR"


def java_frame(text: str) -> CodeFrame:
    """Return a line of a stack as a frame.

    >>> java_frame("shop.Sink.finish(Sink.java:9)").place
    'Sink.java, line 9, in shop.Sink.finish'
    >>> java_frame("shop.Sink.finish(Unknown Source)").place
    'Unknown Source, in shop.Sink.finish'
    """
    match = _FRAME.fullmatch(text.strip())
    if match is None:
        return CodeFrame("Unknown Source", 0, text.strip())
    return CodeFrame(match[2] or "Unknown Source", int(match[3] or 0), match[1])


def plugin_frames(frames: Sequence[str]) -> list[str]:
    """Return the frames of the plugin and its libraries; those of Trino if there are none.

    >>> plugin_frames(["java.util.List.of(List.java:1)", "shop.Sink.finish(Sink.java:9)",
    ...     "io.trino.plugin.base.classloader.ClassLoaderSafeSink.finish(ClassLoaderSafeSink.java:5)"])
    ['shop.Sink.finish(Sink.java:9)']
    >>> plugin_frames(["java.util.List.of(List.java:1)", "io.trino.parquet.Reader.read(Reader.java:7)"])
    ['io.trino.parquet.Reader.read(Reader.java:7)']
    """
    return [frame for frame in frames if not _ENGINE.match(frame)] or [
        frame for frame in frames if not _JAVA.match(frame)
    ]


def stack_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the stack as Java prints it; frames that a cause shares are counted only."""
    lines: list[str] = []
    outer: list[str] = []
    for number, each in enumerate([answer, *(answer.get("causes") or ())]):
        frames = [str(frame) for frame in each.get("frames") or ()]
        if not frames:
            continue
        shared = _shared(frames, outer)
        what = str(each.get("class") or "")
        if each.get("message"):
            what += f": {each['message']}"
        lines.append(f"{'Caused by: ' if number else ''}{what}")
        lines.extend(f"    at {frame}" for frame in frames[: len(frames) - shared])
        if shared:
            lines.append(f"    ... {shared} more")
        outer = frames
    return lines


def raised_of(answer: Mapping[str, Any]) -> Raised:
    """Return the record of a host's error; the engine adds the call."""
    causes: list[RaisedFrom] = []
    outer = [str(frame) for frame in answer.get("frames") or ()]
    frames = _code_frames(outer)
    for cause in list(answer.get("causes") or ())[:_MOST_CAUSES]:
        inner = [str(frame) for frame in cause.get("frames") or ()]
        own_frames = inner[: len(inner) - _shared(inner, outer)]
        causes.append(RaisedFrom(_name(cause), _message(cause), _code_frames(own_frames)))
        outer = inner
    lines = stack_lines(answer)
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"... {len(lines) - _MOST_LINES} more lines"]
    return Raised(
        method="",
        caller="",
        number=None,
        call=0,
        error=_name(answer),
        text=_message(answer),
        frames=frames,
        causes=tuple(causes),
        stack=tuple(line[:_MOST_TEXT] for line in lines),
    )


def _code_frames(frames: Sequence[str]) -> tuple[CodeFrame, ...]:
    """Return the plugin's frames, the innermost last, as in Python."""
    return tuple(map(java_frame, reversed(plugin_frames(frames)[:_MOST_FRAMES])))


def _shared(inner: Sequence[str], outer: Sequence[str]) -> int:
    """Return how many outermost frames are equal.

    >>> _shared(["a", "b", "d"], ["c", "b", "d"])
    2
    """
    count = 0
    for ours, theirs in zip(reversed(inner), reversed(outer), strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def _name(error: Mapping[str, Any]) -> str:
    code = error.get("code") or _UNNAMED
    name = str(error.get("class") or "Exception")
    return name if code == _UNNAMED else f"{name} ({code})"


def _message(error: Mapping[str, Any]) -> str:
    text = str(error.get("message") or "")
    return "" if text == error.get("class") else text[:_MOST_TEXT]
