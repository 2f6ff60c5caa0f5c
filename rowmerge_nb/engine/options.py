"""Options of a statement, checked once, the same for functions and for magics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.choices import CHOSEN_RULES, Dialect, Flow, RepeatedMatches, TraceLevel
from rowmerge_nb.engine.faults import fault_of
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.errors import RowMergeError, checked, checked_path, error_text
from rowmerge_nb.names import did_you_mean
from rowmerge_nb.plan.rules import RULES
from rowmerge_nb.spi.operations import Era, RowChangeParadigm
from rowmerge_nb.sql.constants import half_character

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.audit import RowChooser
    from rowmerge_nb.engine.tasks.faults import Fault

_CHOICES: Mapping[str, tuple[StrEnum, ...]] = {
    "era": tuple(Era),
    "duplicates": CHOSEN_RULES,
    "dialect": tuple(Dialect),
    "trace": tuple(TraceLevel),
    "flow": tuple(Flow),
}
_OURS: Final = frozenset({"chooser"})
"""Options that no user gives."""

VERIFIERS = ("duckdb", "postgresql")
"""The engines that a statement can be verified by."""
NEAR_ROWS: Final = 2_000_000
"""Of tables of at most so many rows the nearest keys are looked for where that is asked without a number."""

RECORD_BYTES: Final = 1 << 26
"""A record has so many bytes of pages, unless more are asked for."""


class Progress:
    """Who is told of steps, until telling them fails: a statement must not depend on who looks on.

    Args:
        tell: takes the name of a step.

    >>> Progress(print)("run")
    run
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell: Callable[[str], object] | None = tell

    def __call__(self, name: str) -> None:
        """Tell that a step begins."""
        if self._tell is None:
            return
        try:
            self._tell(name)
        except Exception as error:  # noqa: BLE001 - it is told as a warning
            self._tell = None
            told = f"progress failed at step '{name}', and is told no further steps: {error_text(error)}"
            # Where warnings are errors this one must not become what ends the statement either.
            with suppress(RuntimeWarning):
                warnings.warn(told, RuntimeWarning, stacklevel=3)


@dataclass(frozen=True)
class Options:
    """How a statement is run.

    Args:
        dry_run: plan the statement, but do not begin it.
        paradigm: the row change paradigm to use, for connectors that have both; None for the table's own.
        era: whose page layout: ``documents`` or ``current``.
        duplicates: which repeated matches end a MERGE: ``trino`` or ``standard``.
        dialect: ``trino``, or ``extended`` for forms that other engines or later releases have, and Trino 476 refuses.
        flow: how UPDATE and DELETE are executed: ``merge``, by the machinery of MERGE, or ``updatable``, by the older flow in which the
            page source of a split changes the rows that it has read.
        trace: ``auto`` (whole rows of small statements, some per clause of large ones), ``full``, or ``off`` (counts only).
        verify: which other engine runs the statement as well, over the same input, and is compared: ``duckdb``, ``postgresql``
            (the server that the variable ROWMERGE_POSTGRES names) or ``postgresql://...``; None for none.
        near: the nearest keys of the rows of a MERGE that have no partner are looked for in tables of so many rows at most; True means 2,000,000,
            and 0 that it is done for small statements alone.
        check: read the table back after the commit, and compare its rows with those that the statement must have left: True, False, or None for
            small tables of connectors that say `checked_after_commit`.
        record: keep all pages that are handed to the connector, for `Result.record`: True, or the path of a file to save the record as; it is
            also saved where the statement fails. Without it those of a call in a task that fails are kept.
        record_bytes: so many bytes of pages are kept at most, and as many of the target's rows; 64 MiB by default.
        record_every: of so many rows of the pages one is kept; 1 by default, which is all of them.
        why: a condition in SQL on the rows of a MERGE, UPDATE or DELETE, over the columns of the target and, by alias, of the source: those
            for which it is true, 30 at most, are in the trace whole, however large the statement is; ``""`` for none.
        fault: what is to go wrong in a call of the connector's contract, and in which, as ``"store_merged_rows:2:after"``: see `fault_of`; None
            for nothing.
        rehearse: run the statement up to its finish call, then roll it back: everything is done, and nothing is committed.
        rules_off: names of plan rules that are not applied.
        namespace: DataFrames that the statement may name.
        parameters: the values of ``?`` in the statement, in their order.
        progress: is told each step as it begins. An error that it raises does not end the statement: it is told as a warning, and the
            steps after it are not told.
        chooser: chooses the joined rows that the trace keeps, in place of the first of each clause; None but for an audit.

    >>> Options().changed(era="current").era
    <Era.CURRENT: 'current'>
    >>> Options().changed(era="trino")
    Traceback (most recent call last):
    rowmerge_nb.errors.RowMergeError: INVALID_ARGUMENTS: era = 'trino' is not possible. There are: documents, current.
    """

    dry_run: bool = False
    paradigm: RowChangeParadigm | None = None
    era: Era = Era.DOCUMENTS
    duplicates: RepeatedMatches = RepeatedMatches.TRINO
    dialect: Dialect = Dialect.TRINO
    flow: Flow = Flow.MERGE
    trace: TraceLevel = TraceLevel.AUTO
    verify: str | None = None
    near: int = 0
    check: bool | None = None
    record: bool | str = False
    record_bytes: int = RECORD_BYTES
    record_every: int = 1
    why: str = ""
    fault: Fault | None = None
    rehearse: bool = False
    rules_off: frozenset[str] = frozenset()
    namespace: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()
    progress: Callable[[str], None] | None = None
    chooser: RowChooser | None = None

    def changed(self, **values: Any) -> Options:
        """Give options with some values replaced; None leaves a value as it is.

        Raises:
            RowMergeError: INVALID_ARGUMENTS for an unknown option or value; the hint lists what there is.
        """
        names = [f.name for f in fields(self) if f.name not in _OURS]
        given = {}
        for name, value in values.items():
            if name not in names:
                raise RowMergeError(
                    f"There is no option '{name}'",
                    code="INVALID_ARGUMENTS",
                    hint=did_you_mean(name, names) or f"There are: {', '.join(names)}.",
                )
            if value is not None:
                given[name] = _checked(name, value)
        return replace(self, **given)

    @property
    def keeping(self) -> Keeping:
        """Which pages tasks keep of those that they hand to the connector."""
        return Keeping(self.record_bytes, always=True, every=self.record_every) if self.record else IN_CASE

    def step(self, name: str) -> None:
        """Tell that a step begins."""
        if self.progress is not None:
            self.progress(name)


def _checked(name: str, value: Any) -> Any:
    if name == "paradigm":
        if isinstance(value, RowChangeParadigm):
            return value
        if str(value).upper() in RowChangeParadigm.__members__:
            return RowChangeParadigm[str(value).upper()]
        _refuse(name, value, tuple(RowChangeParadigm.__members__))
    if name == "rules_off":
        if isinstance(value, str) or not isinstance(value, Iterable):
            _refuse(name, value, tuple(RULES))
        for rule in value:
            if not isinstance(rule, str) or rule not in RULES:
                _refuse(name, rule, tuple(RULES))
        return frozenset(value)
    if name == "verify" and str(value) not in VERIFIERS and not str(value).startswith(("postgresql://", "postgres://")):
        _refuse(name, value, (*VERIFIERS, "postgresql://..."))
    if name in {"dry_run", "rehearse"}:
        # Whatever else counts as true, or as false, would decide whether a table is changed.
        return checked(value, name, bool, "True or False")
    if name == "check":
        return checked(value, "check", lambda given: isinstance(given, bool), "True, False, or None for what the connector says")
    if name == "near":
        rows = checked(value, "near", _is_bound, "True, False, or the number of rows of a table at most, from 0")
        return NEAR_ROWS if rows is True else int(rows)
    if name == "record":
        if isinstance(value, bool):
            return value
        return checked(checked_path(value, "record"), "record", _is_named, "the path of a file, True or False")
    if name in {"record_bytes", "record_every"}:
        return checked(value, name, _is_positive, "a whole number from 1")
    if name == "why":
        return checked(value, "why", _is_condition, "a condition on rows in SQL, as \"t.customer = 'Dave'\"")
    if name == "fault":
        return fault_of(value)
    if name == "progress":
        return (
            value
            if isinstance(value, Progress)
            else Progress(checked(value, "progress", callable, "a function of a step's name"))
        )
    if name == "parameters":
        return tuple(checked(value, "parameters", lambda given: isinstance(given, list | tuple), "a list of values"))
    if name == "namespace":
        return checked(value, "namespace", Mapping, "a dictionary of DataFrames")
    if name in _CHOICES:
        choices = _CHOICES[name]
        if str(value) not in choices:
            _refuse(name, value, choices)
        return choices[choices.index(str(value))]
    return value


def _is_positive(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_condition(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and half_character(value) is None


def _is_named(path: str) -> bool:
    return path != ""


def _is_bound(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _refuse(name: str, value: object, choices: tuple[str, ...]) -> None:
    raise RowMergeError(
        f"{name} = {str(value)!r} is not possible", code="INVALID_ARGUMENTS", hint=f"There are: {', '.join(choices)}."
    )
