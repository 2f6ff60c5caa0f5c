"""The fragments that the sinks of a statement returned, for comparisons of stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rowmerge_nb.engine.observers.user_observers import ObserverRegistry
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.trace.store_comparison import SinkFragment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.statements.action import Action
    from rowmerge_nb.engine.statements.statement import StatementRun

MOST_TEXTS: Final = 50
"""The texts of later fragments are not kept."""
MOST_BYTES: Final = 100_000
"""The texts of larger fragments are not kept."""


class FragmentKeeper(ObserverRegistry):
    """Keeps the fragments of the last statement of an engine, in place of the observers of its
    user.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fragments: tuple[SinkFragment, ...] = ()

    def of_run(self) -> RunObserver:
        self.fragments = ()
        return _KeptFragments(self)


class _KeptFragments(RunObserver):
    def __init__(self, keeper: FragmentKeeper) -> None:
        self._keeper = keeper

    def after_action(self, run: StatementRun, action: Action) -> None:
        self._keeper.fragments = fragments_as_text(action.fragments)


def fragments_as_text(fragments: Sequence[bytes]) -> tuple[SinkFragment, ...]:
    """Return fragments with their JSON.

    >>> fragments_as_text([b'{"path": "a.parquet"}', bytes([128, 4])])
    (SinkFragment(bytes=21, text='{"path": "a.parquet"}'), SinkFragment(bytes=2, text=''))
    """
    return tuple(
        SinkFragment(len(fragment), _json_text(fragment) if number < MOST_TEXTS else "")
        for number, fragment in enumerate(fragments)
    )


def _json_text(fragment: bytes) -> str:
    if len(fragment) > MOST_BYTES:
        return ""
    try:
        text = fragment.decode()
        json.loads(text)
    except ValueError:
        return ""
    return text
