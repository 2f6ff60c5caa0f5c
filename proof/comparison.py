"""Comparison of engines on a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from proof.engines.backends import InexpressibleError
from proof.oracle.oracle import predict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.engines.backends import Backend
    from proof.oracle.oracle import Outcome
    from proof.statements.model import Row, Scenario

__all__ = ["Difference", "Verdict", "compare", "judge"]


@dataclass(frozen=True)
class Difference:
    """A difference between an engine and a reference.

    Args:
        reference: the reference's name.
        sentence: the difference.
    """

    reference: str
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """The comparison of one run with the references.

    Args:
        outcome: the engine's outcome.
        differences: the differences; empty on success.
        agreed: the references with the same outcome.
        passed_over: the references that cannot express the scenario, or follow another rule for
            duplicates.
    """

    outcome: Outcome
    differences: tuple[Difference, ...]
    agreed: tuple[str, ...]
    passed_over: tuple[str, ...]


def judge(engine: Backend, references: Sequence[Backend], scenario: Scenario) -> Verdict:
    """Run a scenario on an engine and on references, and compare.

    Raises:
        InexpressibleError: the engine cannot express it.
    """
    outcome = engine.run(scenario)
    differences: list[Difference] = []
    agreed: list[str] = []
    passed_over: list[str] = []
    for reference in references:
        want = _asked(engine, reference, scenario, outcome)
        if want is None:
            passed_over.append(reference.name)
            continue
        sentence = compare(outcome, want, predict(scenario, engine.rule).errors)
        if sentence:
            differences.append(Difference(reference.name, sentence))
        else:
            agreed.append(reference.name)
    return Verdict(outcome, tuple(differences), tuple(agreed), tuple(passed_over))


def _asked(engine: Backend, reference: Backend, scenario: Scenario, got: Outcome) -> Outcome | None:
    """Compare with a reference; None if its outcome is no evidence about the engine."""
    rules = {backend.rule or scenario.settings.duplicates for backend in (engine, reference)}
    if len({predict(scenario, rule) for rule in rules}) > 1:
        return None
    try:
        want = reference.run(scenario)
    except InexpressibleError:
        return None
    early = _early(got, engine) or _early(want, reference)
    return None if early and got.errors != want.errors else want


def _early(outcome: Outcome, backend: Backend) -> bool:
    """Return whether a backend may have failed on a value that no row receives."""
    return bool(outcome.errors) and outcome.errors <= backend.eager


def compare(got: Outcome, want: Outcome, possible: frozenset[str] = frozenset()) -> str:
    """Return how an outcome differs from the expected one, or ``""``.

    Args:
        got: the outcome of the engine.
        want: the outcome of the reference.
        possible: the errors that the statement may end with; an engine may meet any of them first.

    >>> from proof.oracle.oracle import Outcome, multiset
    >>> compare(Outcome(multiset([(1,)]), 1), Outcome(multiset([(2,)]), 1))
    'rows (1,) are here only; rows (2,) are missing'
    """
    if got.errors or want.errors:
        if got.errors & want.errors or (
            got.errors and want.errors and got.errors | want.errors <= possible
        ):
            return ""
        message = f" ({got.message})" if got.message else ""
        return f"it ended with {_ending(got)}{message}, and was to end with {_ending(want)}"
    parts = []
    assert got.rows is not None
    assert want.rows is not None
    if more := _rows(got.rows, want.rows):
        parts.append(f"rows {more} are here only")
    if less := _rows(want.rows, got.rows):
        parts.append(f"rows {less} are missing")
    if got.count != want.count:
        parts.append(f"the count is {got.count}, and was to be {want.count}")
    return "; ".join(parts)


def _ending(outcome: Outcome) -> str:
    return " or ".join(sorted(outcome.errors)) or f"{outcome.count} rows changed"


def _rows(ours: frozenset[tuple[Row, int]], theirs: frozenset[tuple[Row, int]]) -> str:
    """Describe rows that the first multiset has more often than the second."""
    rest = dict(theirs)
    more = [(row, count - rest.get(row, 0)) for row, count in ours if count > rest.get(row, 0)]
    return ", ".join(
        f"{row}{f' ×{count}' if count > 1 else ''}" for row, count in sorted(more, key=repr)
    )
