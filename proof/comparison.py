"""Whether engines agree on a scenario."""

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
    """Where an engine and a reference part ways.

    Args:
        reference: the reference's name.
        sentence: what is different.
    """

    reference: str
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What the references say of one run.

    Args:
        outcome: what the engine gave.
        differences: what is not alike; empty if all is well.
        agreed: the references that gave the same.
        passed_over: the references that could not be asked: they cannot say it, or follow another rule for duplicates.
    """

    outcome: Outcome
    differences: tuple[Difference, ...]
    agreed: tuple[str, ...]
    passed_over: tuple[str, ...]


def judge(engine: Backend, references: Sequence[Backend], scenario: Scenario) -> Verdict:
    """Run a scenario on an engine and on references, and compare.

    Raises:
        InexpressibleError: the engine itself cannot say it.
    """
    got = engine.run(scenario)
    differences: list[Difference] = []
    agreed: list[str] = []
    passed_over: list[str] = []
    for reference in references:
        want = _asked(engine, reference, scenario, got)
        if want is None:
            passed_over.append(reference.name)
            continue
        sentence = compare(got, want, predict(scenario, engine.rule).errors)
        if sentence:
            differences.append(Difference(reference.name, sentence))
        else:
            agreed.append(reference.name)
    return Verdict(got, tuple(differences), tuple(agreed), tuple(passed_over))


def _asked(engine: Backend, reference: Backend, scenario: Scenario, got: Outcome) -> Outcome | None:
    """Ask a reference; None where its answer says nothing about the engine."""
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
    """Return whether a backend may have failed on a value that no row is given."""
    return bool(outcome.errors) and outcome.errors <= backend.eager


def compare(got: Outcome, want: Outcome, possible: frozenset[str] = frozenset()) -> str:
    """Return how an outcome differs from the one that was to be; ``""`` if it does not.

    Args:
        got: the outcome of the engine.
        want: the outcome of the reference.
        possible: the errors that the statement can end with: of several, an engine may meet any first.

    >>> from proof.oracle.oracle import Outcome, multiset
    >>> compare(Outcome(multiset([(1,)]), 1), Outcome(multiset([(2,)]), 1))
    'rows (1,) are here only; rows (2,) are missing'
    """
    if got.errors or want.errors:
        if got.errors & want.errors or (got.errors and want.errors and got.errors | want.errors <= possible):
            return ""
        told = f" ({got.message})" if got.message else ""
        return f"it ended with {_ending(got)}{told}, and was to end with {_ending(want)}"
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
    """Name the rows that the first has more often than the second."""
    known = dict(theirs)
    more = [(row, count - known.get(row, 0)) for row, count in ours if count > known.get(row, 0)]
    return ", ".join(f"{row}{f' ×{count}' if count > 1 else ''}" for row, count in sorted(more, key=repr))
