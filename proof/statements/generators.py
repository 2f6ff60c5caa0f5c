"""Strategies of Hypothesis: random scenarios that shrink.

Only this module needs the optional dependency: ``pip install hypothesis``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from proof.statements.model import Scenario
from proof.statements.scenarios import KINDS, random_scenario

__all__ = ["scenarios"]


def scenarios(kinds: Sequence[str] = KINDS) -> st.SearchStrategy[Scenario]:
    """Return scenarios: a statement, its tables, and its settings; Hypothesis can shrink them.

    Args:
        kinds: the statements: ``MERGE``, ``UPDATE``, ``DELETE``.

    Example::

        @given(scenarios())
        def test_my_engine(scenario):
            assert my_engine(script(scenario)) == predict(scenario).rows
    """
    return st.randoms(use_true_random=False).map(partial(random_scenario, kinds=tuple(kinds)))
