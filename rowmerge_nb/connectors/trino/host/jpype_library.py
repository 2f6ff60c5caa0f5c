"""JPype, imported when it is first used: modules of the host can be read without it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command


class _Library:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            # Tools look for such names in every object; JPype's are not meant.
            raise AttributeError(name)
        try:
            return getattr(importlib.import_module("jpype"), name)
        except ImportError as error:
            raise SetupError(
                "JPype is not installed", hint=f"Run: {install_command('trino')}"
            ) from error


jpype: Any = _Library()
"""The module ``jpype``."""


def is_java_exception(error: BaseException | None) -> bool:
    """Return whether an exception was thrown by Java.

    >>> is_java_exception(ValueError())
    False
    """
    if "jpype" not in sys.modules or not jpype.isJVMStarted():
        # JPype ends the process if its classes are used before Java runs.
        return False
    return isinstance(error, jpype.JException)
