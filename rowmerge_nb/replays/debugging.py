"""The debugger at a given error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_NAMES: Final = ("last_type", "last_value", "last_traceback", "last_exc")


@contextmanager
def last_error(error: BaseException) -> Iterator[None]:
    old_values = {name: getattr(sys, name) for name in _NAMES if hasattr(sys, name)}
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        yield
    finally:
        for name in _NAMES:
            if name in old_values:
                setattr(sys, name, old_values[name])
            elif hasattr(sys, name):
                delattr(sys, name)


def debugger_at(error: BaseException) -> None:
    shell = _shell()
    with last_error(error):
        if shell is None:
            import pdb  # noqa: T100 - this is what was asked for

            pdb.post_mortem(error.__traceback__)
        else:
            # Otherwise the shell debugs the error that it has stored.
            shell.InteractiveTB.tb = None
            type(shell).debugger(shell, force=True)


def has_keyboard() -> bool:
    return hasattr(_shell(), "kernel") or (
        sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    )


def _shell() -> Any:
    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()
