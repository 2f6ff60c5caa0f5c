"""Calls of the public API with wrong arguments, which Python refuses, as short as other errors."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Final

import rowmerge_nb
from rowmerge_nb.base.errors import calls_of_user, is_of_package
from rowmerge_nb.base.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from IPython.core.interactiveshell import InteractiveShell

_MESSAGE: Final = re.compile(r"(?s)([\w.]+)\(\) (?:got|missing|takes) .*")
_UNEXPECTED: Final = re.compile(r"unexpected keyword argument '(\w+)'")
_ERRORS: Final = (TypeError,)


def register(shell: InteractiveShell) -> None:
    """Show such errors in short, unless the user has handlers of their own."""
    if not shell.custom_exceptions:
        shell.set_custom_exc(_ERRORS, _show)  # type: ignore[no-untyped-call]


def unregister(shell: InteractiveShell) -> None:
    if shell.custom_exceptions == _ERRORS:
        shell.set_custom_exc((), None)  # type: ignore[no-untyped-call]


def _show(
    shell: InteractiveShell,
    error_type: type[BaseException],
    error: BaseException,
    calls: TracebackType,
    tb_offset: int | None = None,
) -> None:
    lines = short_lines(error)
    if lines:
        whole = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
        texts = iter([lines])
        error.__dict__["_render_traceback_"] = lambda: next(texts, whole)
    shell.showtraceback((error_type, error, calls), tb_offset=tb_offset)


def short_lines(error: BaseException) -> list[str]:
    """Return message, arguments and calls, or nothing unless a public function has refused them."""
    match = _MESSAGE.fullmatch(str(error))
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    file = frame.f_code.co_filename
    if match is None or is_of_package(file):
        return []
    names = {**frame.f_globals, **frame.f_locals}
    function = next(_functions(match[1], names, linecache.getline(file, line)), None)
    if function is None:
        return []
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    ]
    form = str(inspect.Signature(parameters))
    unexpected = _UNEXPECTED.search(str(error))
    near = None if unexpected is None else did_you_mean(unexpected[1], [p.name for p in parameters])
    message = re.sub(r"\. Did you mean.*", "", str(error))
    hint = " ".join(filter(None, [near, f"The arguments are {form}."]))
    calls = calls_of_user(error)
    return [f"TypeError: {message}", hint, "", *calls, "%tb shows the traceback."]


def _functions(name: str, names: Mapping[str, Any], line: str) -> Iterator[FunctionType]:
    first, _, method = name.partition(".")
    if method.startswith("_") and method != "__init__":
        return
    if method:
        owners = [names[first]] if first in names else _classes(first)
        candidates = [vars(owner).get(method) for owner in owners if isinstance(owner, type)]
    else:
        aliases = re.findall(rf"\b(\w+)\.{first}\b", line)
        is_ours = any(names.get(alias) is rowmerge_nb for alias in aliases)
        candidates = [getattr(rowmerge_nb, first, None) if is_ours else names.get(first)]
    for candidate in candidates:
        if isinstance(candidate, FunctionType) and is_of_package(candidate.__code__.co_filename):
            yield candidate


def _classes(name: str) -> list[Any]:
    return [
        vars(module)[name]
        for module_name, module in list(sys.modules.items())
        if module_name.startswith("rowmerge_nb.") and name in vars(module)
    ]
