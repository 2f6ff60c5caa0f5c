"""Where a replay gets its connector from: one that is there, or one that is made for it."""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.spi.connector import Connector


@dataclass(frozen=True)
class Origin:
    """A connector, or what makes one.

    Args:
        given: a connector, which is somebody's own; or what makes one that is empty, and the replay's.

    >>> Origin.of("rowmerge_nb.connectors.memory.connector:MemoryConnector").reference
    'rowmerge_nb.connectors.memory.connector:MemoryConnector'
    """

    given: Connector | Callable[..., Any]

    @classmethod
    def of(cls, given: Any) -> Origin:
        """Check what was given: a connector, a class or function that makes one, or ``module:name`` of any of them.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for anything else, and for a name that leads nowhere.
        """
        if isinstance(given, Origin):
            return given
        if isinstance(given, str):
            given = _named(given)
        if not isinstance(given, Connector) and not callable(given):
            raise RowMergeError(
                f"connector is of type {type(given).__name__}, which is not possible",
                code="INVALID_ARGUMENTS",
                hint="Give a connector, a class or function that makes one, or its name: 'shop:make_connector'.",
            )
        return cls(given)

    @property
    def is_own(self) -> bool:
        """The connector is made for the replay, and nobody else's rows are in it."""
        return not isinstance(self.given, Connector)

    @property
    def name(self) -> str:
        """What it is called in reports."""
        if isinstance(self.given, Connector):
            return type(self.given).__name__
        return getattr(self.given, "__name__", type(self.given).__name__)

    @property
    def reference(self) -> str | None:
        """The name by which a file imports what makes the connector, ``module:name``; None where none leads there."""
        module, name = getattr(self.given, "__module__", ""), getattr(self.given, "__qualname__", "")
        if not self.is_own or module == "__main__" or not name.isidentifier():
            return None
        return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is self.given else None

    @contextmanager
    def opened(self) -> Iterator[Connector]:
        """Yield the connector; one that was created for this is closed in the end, and its directory removed.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if what should make a connector makes something else; what it raises itself is its own.
        """
        if isinstance(self.given, Connector):
            yield self.given
            return
        with tempfile.TemporaryDirectory(prefix="rowmerge_nb-replay-", ignore_cleanup_errors=True) as folder:
            made = self.given(*([Path(folder)] if _takes_folder(self.given) else []))
            if not isinstance(made, Connector):
                raise RowMergeError(
                    f"{self.name} gave {type(made).__name__}; it gives a rowmerge_nb.Connector",
                    code="INVALID_ARGUMENTS",
                    hint="Give a class or a function that makes a connector.",
                )
            try:
                yield made
            finally:
                with suppress(Exception):
                    made.close()


def _named(text: str) -> Any:
    module, _, name = text.partition(":")
    hint = "Give 'module:name' of a class or function that makes a connector, such as 'shop:make_connector'."
    if not module or not name.isidentifier():
        raise RowMergeError(f"connector = {text!r} is not possible", code="INVALID_ARGUMENTS", hint=hint)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise RowMergeError(
            f"connector = {text!r} cannot be imported: {error_text(error)}", code="INVALID_ARGUMENTS", hint=hint
        ) from error


def _takes_folder(make: Callable[..., Any]) -> bool:
    """Return whether it needs one argument: an empty directory, as ``make_connector`` of the contract kit does."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
    return len(needed) == 1
