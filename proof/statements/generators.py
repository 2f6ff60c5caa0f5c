"""Strategies of Hypothesis for tests of one's own: random scenarios that shrink.

Hypothesis is an optional dependency, of this module alone: ``pip install hypothesis``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import strategies as st

from proof.statements.model import Scenario
from proof.statements.scenarios import KINDS, random_scenario

__all__ = ["scenarios"]


def scenarios(kinds: Sequence[str] = KINDS) -> st.SearchStrategy[Scenario]:
    """Return scenarios: a statement, its tables, and how it is to be run.

    The choices are Hypothesis's own, so that it can make a scenario smaller that fails.

    Args:
        kinds: which statements: ``MERGE``, ``UPDATE``, ``DELETE``.

    Example::

        @given(scenarios())
        def test_my_engine(scenario):
            assert my_engine(script(scenario)) == predict(scenario).rows
    """
    return st.randoms(use_true_random=False).map(partial(random_scenario, kinds=tuple(kinds)))
