"""The lines of a file of cases that run by default, and those that need ``--long``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest


def sample(cases: Iterable[tuple[str, ...]]) -> list[Any]:
    """Return cases as parameters. Lines with a new word or symbol and every tenth line run; others are marked ``long``.

    Args:
        cases: an expression or a query, and its expected result.
    """
    seen: set[str] = set()
    parameters = []
    for number, case in enumerate(cases):
        words = set(re.findall(r"%?[a-z_]+|[^\w\s]+", re.sub("'[^']*'", _symbols, case[0].lower())))
        is_chosen = number % 10 == 0 or not words <= seen
        if is_chosen:
            seen |= words
        parameters.append(pytest.param(*case, marks=[] if is_chosen else [pytest.mark.long]))
    return parameters


def _symbols(text: re.Match[str]) -> str:
    """Return the parts of a text that a function may interpret: symbols of a path or pattern, and fields of a format."""
    return " ".join(["''", *re.findall(r"%[a-z]|[^\w\s']", text[0])])
