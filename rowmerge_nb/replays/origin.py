"""The connector of a replay: an existing one, or a factory."""

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
class ReplayOrigin:
    """A connector, or a factory of connectors.

    >>> ReplayOrigin.of("rowmerge_nb.connectors.memory.memory_connector:MemoryConnector").reference
    'rowmerge_nb.connectors.memory.memory_connector:MemoryConnector'
    """

    source: Connector | Callable[..., Any]
    is_kept: bool = False
    """Whether a factory has created the connector, for several replays."""

    @classmethod
    def of(cls, source: Any) -> ReplayOrigin:
        """Resolve a connector, a factory, or the ``module:name`` of one, or raise
        INVALID_ARGUMENTS.
        """
        if isinstance(source, ReplayOrigin):
            return source
        if isinstance(source, str):
            source = _imported(source)
        if not isinstance(source, Connector) and not callable(source):
            raise RowMergeError.invalid(
                f"connector is of type {type(source).__name__}, which is not possible",
                hint=(
                    "Pass a connector, a class or function that creates one, or its"
                    " name: 'shop:make_connector'."
                ),
            )
        return cls(source)

    @property
    def is_own(self) -> bool:
        return not isinstance(self.source, Connector)

    @property
    def name(self) -> str:
        if isinstance(self.source, Connector):
            return type(self.source).__name__
        return getattr(self.source, "__name__", type(self.source).__name__)

    @property
    def reference(self) -> str | None:
        module = getattr(self.source, "__module__", "")
        name = getattr(self.source, "__qualname__", "")
        if not self.is_own or module == "__main__" or not name.isidentifier():
            return None
        return (
            f"{module}:{name}"
            if getattr(sys.modules.get(module), name, None) is self.source
            else None
        )

    @property
    def may_create_schema(self) -> bool:
        return self.is_own or self.is_kept

    @contextmanager
    def kept(self) -> Iterator[ReplayOrigin]:
        """Yield what several replays use: one connector if its start takes long, which then gets
        a table for each of them. Otherwise each of them creates a connector.
        """
        if not self.is_own:
            yield self
            return
        with self.opened() as connector:
            yield ReplayOrigin(connector, is_kept=True) if connector.starts_slowly else self

    @contextmanager
    def opened(self) -> Iterator[Connector]:
        """Yield the connector; close a factory's connector at the end, and remove its directory."""
        with self.opened_in() as (connector, _):
            yield connector

    @contextmanager
    def opened_in(self) -> Iterator[tuple[Connector, Path | None]]:
        if isinstance(self.source, Connector):
            yield self.source, None
            return
        with tempfile.TemporaryDirectory(
            prefix="rowmerge_nb-replay-", ignore_cleanup_errors=True
        ) as folder:
            own_folder = Path(folder) if _takes_folder(self.source) else None
            connector = self.source(*([] if own_folder is None else [own_folder]))
            if not isinstance(connector, Connector):
                raise RowMergeError.invalid(
                    f"{self.name} returned {type(connector).__name__}; it must return"
                    " a rowmerge_nb.Connector",
                    hint="Pass a class or a function that creates a connector.",
                )
            try:
                yield connector, own_folder
            finally:
                with suppress(Exception):
                    connector.close()


def _imported(text: str) -> Any:
    module, _, name = text.partition(":")
    hint = (
        "Pass 'module:name' of a class or function that creates a connector, such as"
        " 'shop:make_connector'."
    )
    if not module or not name.isidentifier():
        raise RowMergeError.invalid(f"connector = {text!r} is not possible", hint=hint)
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise RowMergeError.invalid(
            f"connector = {text!r} cannot be imported: {error_text(error)}",
            hint=hint,
        ) from error


def _takes_folder(make: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}
    ]
    return len(required) == 1
