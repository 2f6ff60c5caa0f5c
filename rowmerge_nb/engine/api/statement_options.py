"""The options of a statement: one field of `Options` each, from which checks, flags, settings, help
and the page of options are made.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from rowmerge_nb.base.arguments import checked, checked_path
from rowmerge_nb.base.choices import CHOSEN_RULES, Dialect, Flow, RepeatedMatches, TraceLevel
from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.spi.operations import Era, RowChangeParadigm
from rowmerge_nb.sql.constants import half_character

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.audit_passes import RowChooser
    from rowmerge_nb.engine.tasks.handed import Keeping
    from rowmerge_nb.engine.tasks.task_faults import Fault

T = TypeVar("T")

NEAR_ROWS: Final = 2_000_000
"""The size of the largest table in which ``near=True`` looks for keys."""


class Progress:
    """Reports steps until the report fails: a statement does not depend on it.

    >>> Progress(print)("run")
    run
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell: Callable[[str], object] | None = tell

    def __call__(self, name: str) -> None:
        if self._tell is None:
            return
        try:
            self._tell(name)
        except Exception as error:  # noqa: BLE001 - it becomes a warning
            self._tell = None
            message = (
                f"progress failed at step '{name}' and gets no further steps: {error_text(error)}"
            )
            # Where warnings are errors, this one must not end the statement.
            with suppress(RuntimeWarning):
                warnings.warn(message, RuntimeWarning, stacklevel=3)


@dataclass(frozen=True)
class Option:
    """An option of statements, of cells, or of both.

    Args:
        name: its name in a cell, as in ``--name``; a field of `Options` sets it.
        choices: the words that it takes, if it takes words of a list.
        expected: the type of its value, one of several, or a test of the value; None if `choices`
            or `convert` check it.
        convert: makes the value that the engine uses; raises RowMergeError if it cannot.
        takes: a name for the value in a cell, as ``NAME``; ``""`` if it takes one of its choices,
            or no value.
        assumed: the value if the cell writes none; None if a value is needed.
        is_setting: whether ``%config`` and pyproject.toml can set it for all cells.
        unset: what applies without a value, in words; ``""`` if the default is a value.
        aliases: other spellings of its choices, in lower-case letters and digits alone.

    >>> Option("", name="dry-run").keyword, Option("", name="output", takes="NAME", short="o").flags
    ('dry_run', '-o NAME, --output NAME')
    """

    meaning: str
    name: str = ""
    choices: tuple[str, ...] = ()
    expected: type | tuple[type, ...] | Callable[[Any], bool] | None = None
    form: str = ""
    convert: Callable[[Any], Any] | None = None
    takes: str = ""
    short: str = ""
    assumed: str | None = None
    has_flag: bool = True
    is_setting: bool = False
    default: Any = None
    unset: str = ""
    page: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def keyword(self) -> str:
        return self.name.replace("-", "_")

    @property
    def values(self) -> str:
        """What a cell writes behind it; ``""`` for nothing."""
        return self.takes or "|".join(self.choices)

    @property
    def flags(self) -> str:
        value = f" {self.values}" if self.values else ""
        if self.assumed is not None and value:
            value = f" [{self.values}]"
        return (
            f"-{self.short}{value}, --{self.name}{value}" if self.short else f"--{self.name}{value}"
        )

    def field(self, default: T) -> T:
        """Return a field of `Options` with this default, which the type checker takes for its
        value.
        """
        return field(default=default, metadata={"option": self})

    def choice_of(self, word: str) -> str | None:
        """Return the choice that a word spells, or None; signs and capital letters do not matter.

        >>> option = Option("", choices=("DELETE_ROW", "none"), aliases={"remove": "DELETE_ROW"})
        >>> option.choice_of("delete-row"), option.choice_of("Remove"), option.choice_of("row")
        ('DELETE_ROW', 'DELETE_ROW', None)
        """
        plain = _letters(word)
        words = {_letters(str(choice)): choice for choice in self.choices}
        return words.get(plain) or self.aliases.get(plain)

    def accept(self, value: Any) -> Any:
        """Return a program's value as the engine uses it.

        >>> Option("", name="flow", choices=tuple(Flow)).accept("updatable")
        <Flow.UPDATABLE: 'updatable'>
        """
        if self.expected is not None:
            checked(value, self.keyword, self.expected, self.form)
        elif self.choices:
            choice = self.choice_of(str(value))
            words = {str(choice): choice for choice in self.choices}
            value = words.get(str(choice)) or _refuse(self.keyword, value, words)
        return value if self.convert is None else self.convert(value)


def _letters(word: str) -> str:
    return re.sub("[^a-z0-9]", "", word.lower())


def _refuse(name: str, value: object, choices: Iterable[str]) -> NoReturn:
    raise RowMergeError.invalid(
        f"{name} = {str(value)!r} is not possible",
        hint=f"There are: {', '.join(choices)}.",
    )


def _is_verifier(value: Any) -> bool:
    return str(value) in {"duckdb", "postgresql"} or str(value).startswith(
        ("postgresql://", "postgres://")
    )


def _is_positive(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_condition(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and half_character(value) is None


def _is_bound(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _near_rows(value: int) -> int:
    return NEAR_ROWS if value is True else int(value)


def _record_file(value: Any) -> bool | str:
    if isinstance(value, bool):
        return value
    return checked(
        checked_path(value, "record"),
        "record",
        lambda path: path != "",
        "the path of a file, True or False",
    )


def _fault(value: Any) -> Fault:
    from rowmerge_nb.engine.api.fault_option import fault_of

    return fault_of(value)


def _rules(value: Any) -> frozenset[str]:
    from rowmerge_nb.plan.rules import RULES

    if isinstance(value, str) or not isinstance(value, Iterable):
        _refuse("rules_off", value, RULES)
    for rule in value:
        if not isinstance(rule, str) or rule not in RULES:
            _refuse("rules_off", rule, RULES)
    return frozenset(value)


def _progress(value: Callable[[str], None]) -> Progress:
    return value if isinstance(value, Progress) else Progress(value)


_PARADIGMS: Final = {
    **dict.fromkeys(
        ("deleteinsert", "deleteandinsert", "deleteplusinsert", "insertdelete", "replacerows"),
        str(RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW),
    ),
    **dict.fromkeys(
        (
            "changecolumns",
            "changedcolumns",
            "updatedcolumns",
            "updatecolumns",
            "onlyupdatedcolumns",
        ),
        str(RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS),
    ),
}


@dataclass(frozen=True)
class Options:
    """How a statement is run: the keywords of `Engine.run`, each with its default.

    Each field is one option, and its metadata has the `Option`: meaning, check, flag and setting.
    docs/options.md shows them. ``chooser`` is no option: an audit sets it to choose the joined rows
    that the trace keeps.

    >>> Options().changed(era="current").era
    <Era.CURRENT: 'current'>
    >>> Options().changed(era="trino")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: era = 'trino' is not possible. There are: documents, current.
    """

    paradigm: RowChangeParadigm | None = Option(
        "The row change paradigm, for stores that support both; delete+insert and"
        " change-columns are short forms.",
        choices=tuple(RowChangeParadigm),
        is_setting=True,
        unset="that of the table",
        aliases=_PARADIGMS,
    ).field(None)
    flow: Flow = Option(
        "How UPDATE and DELETE are executed: by the machinery of MERGE, or by the older flow of"
        " updatable page sources.",
        choices=tuple(Flow),
        is_setting=True,
        page="flows.md",
    ).field(Flow.MERGE)
    delete_pushdown: bool = Option(
        "Have the connector execute a DELETE itself if it accepts the whole"
        " condition, as Trino does. Otherwise the rows go through the merge sink, and the"
        " report says so.",
        expected=bool,
        form="True or False",
        is_setting=True,
        page="flows.md",
    ).field(False)
    duplicates: RepeatedMatches = Option(
        "Which repeated matches end a MERGE: Trino's rule, or that of standard SQL.",
        choices=CHOSEN_RULES,
        is_setting=True,
        page="duplicates.md",
    ).field(RepeatedMatches.TRINO)
    era: Era = Option(
        "Whose pages: those of the design documents, or today's Trino.",
        choices=tuple(Era),
        is_setting=True,
    ).field(Era.DOCUMENTS)
    dialect: Dialect = Option(
        "Which SQL is accepted: Trino's, or forms of MERGE that other engines have as well.",
        choices=tuple(Dialect),
        is_setting=True,
        page="dialect.md",
    ).field(Dialect.TRINO)
    dry_run: bool = Option(
        "Plan the statement and show the report of the plan, with the rows as far as"
        " they are known; nothing runs.",
        expected=bool,
        form="True or False",
    ).field(False)
    rehearse: bool = Option(
        "Run the statement through its finish call, show everything, and roll it"
        " back: nothing is changed.",
        expected=bool,
        form="True or False",
    ).field(False)
    trace: TraceLevel = Option(
        "How many rows the report keeps: all of small statements and some of large ones, all, or"
        " counts only.",
        choices=tuple(TraceLevel),
        is_setting=True,
    ).field(TraceLevel.AUTO)
    verify: str | None = Option(
        "Have another engine run the statement over the same rows, and compare; ROWMERGE_POSTGRES"
        " names a PostgreSQL server.",
        choices=("duckdb", "postgresql"),
        expected=_is_verifier,
        form="duckdb, postgresql or postgresql://...",
        assumed="duckdb",
        is_setting=True,
        unset="none",
        page="compare.md#a-second-opinion",
    ).field(None)
    check: bool | None = Option(
        "Read the table back after the commit, and report whether it has the rows"
        " that the statement should have left.",
        expected=bool,
        form="True, False, or None for what the connector says",
        unset="small tables of connectors that ask for it",
        page="debugging.md#the-truth-after-the-commit",
    ).field(None)
    near: int = Option(
        "Look for the nearest keys of the rows of a MERGE that have no partner, in large tables"
        " too; result.near() reports them.",
        expected=_is_bound,
        form="True, False, or the number of rows of a table at most, from 0",
        convert=_near_rows,
        page="near.md",
    ).field(0)
    record: bool | str = Option(
        "Save the record of the statement as FILE: the pages handed to the connector, for"
        " rowmerge_nb.replay(FILE, connector).",
        expected=(bool, str, os.PathLike),
        form="the path of a file, True or False",
        convert=_record_file,
        takes="FILE",
        page="replay.md",
    ).field(False)
    record_bytes: int = Option(
        "The maximum size of a record: this many bytes of pages, and this many bytes"
        " of the target's rows.",
        expected=_is_positive,
        form="a whole number from 1",
        has_flag=False,
        page="replay.md",
    ).field(1 << 26)
    record_every: int = Option(
        "Keep every n-th row of the pages in a record.",
        expected=_is_positive,
        form="a whole number from 1",
        has_flag=False,
        page="replay.md",
    ).field(1)
    why: str = Option(
        "For up to 30 joined rows for which a condition in SQL is true, report what every clause"
        " decided and why, in large tables too.",
        expected=_is_condition,
        form="a condition on rows in SQL, as \"t.customer = 'Dave'\"",
        takes="CONDITION",
        page="why.md#rows-of-large-statements",
    ).field("")
    fault: Fault | None = Option(
        "Make a call of the connector's contract fail, as store_merged_rows:2:after;"
        " PLACE is before or after its work, ACTION raise, kill, delay or twice, and only"
        " STEP is needed. The report lists it as injected.",
        form="a fault, as 'store_merged_rows:2:after'",
        convert=_fault,
        takes="STEP:CALL:PLACE:ACTION",
        page="faults.md",
    ).field(None)
    rules_off: frozenset[str] = Option(
        "Names of plan rules that are not applied.",
        form="names of rules",
        convert=_rules,
        has_flag=False,
    ).field(frozenset())
    namespace: Mapping[str, Any] = field(
        default_factory=dict,
        metadata={
            "option": Option(
                "DataFrames that the statement may name; a cell passes those of the notebook.",
                expected=Mapping,
                form="a dictionary of DataFrames",
                has_flag=False,
            )
        },
    )
    parameters: tuple[Any, ...] = Option(
        "The values of the question marks in the statement, in their order.",
        expected=(list, tuple),
        form="a list of values",
        convert=tuple,
        has_flag=False,
    ).field(())
    progress: Callable[[str], None] | None = Option(
        "Called with each step as it begins. An error that it raises becomes a"
        " warning and does not end the statement.",
        expected=callable,
        form="a function of a step's name",
        convert=_progress,
        has_flag=False,
    ).field(None)
    chooser: RowChooser | None = None

    def changed(self, **values: Any) -> Options:
        """Return options with some values replaced; None leaves a value as it is."""
        new_values = {}
        for name, value in values.items():
            option = STATEMENT_OPTIONS.get(name)
            if option is None:
                raise RowMergeError.invalid(
                    f"There is no option '{name}'",
                    hint=did_you_mean(name, STATEMENT_OPTIONS)
                    or f"There are: {', '.join(STATEMENT_OPTIONS)}.",
                )
            if value is not None:
                new_values[name] = option.accept(value)
        return replace(self, **new_values)

    @property
    def keeping(self) -> Keeping:
        """Which pages tasks keep of those that they hand to the connector."""
        from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping

        return (
            Keeping(self.record_bytes, always=True, every=self.record_every)
            if self.record
            else IN_CASE
        )

    def step(self, name: str) -> None:
        if self.progress is not None:
            self.progress(name)


STATEMENT_OPTIONS: Final[Mapping[str, Option]] = {
    column.name: replace(
        column.metadata["option"],
        name=column.name.replace("_", "-"),
        default=None if column.default is MISSING else column.default,
    )
    for column in fields(Options)
    if column.metadata
}
"""The options of a statement by their keywords."""
