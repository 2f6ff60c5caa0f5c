"""The options of ``%%merge``: definition, parsing and help."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from keyword import iskeyword
from typing import Any, Final, NoReturn

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import nearest
from rowmerge_nb.engine.api.statement_options import STATEMENT_OPTIONS, Option

_OF_CELLS: Final = (
    Option("Keep the result in this variable and also show it.", "output", takes="NAME", short="o"),
    Option(
        "Show the plan and run nothing: as an HTML drawing, or as text in fragments,"
        " as Trino prints it.",
        "explain",
        choices=("text", "dot", "json", "svg"),
        assumed="text",
        page="trino-differences.md#plans",
    ),
    Option(
        "The parts of the report to show: outcome, check, clauses, plan, pages,"
        " stored, calls, diff, journeys, near, words, verdicts; or short, rows, learn,"
        " connector or all, which combine several parts.",
        "show",
        takes="PART,PART",
        is_setting=True,
        default="",
        unset="the usual parts",
    ),
    Option(
        "Show the explorer below the report: follow rows step by step, or predict their outcomes.",
        "explore",
        page="explorer.md",
    ),
    Option(
        "Show the explorer with hidden outcomes to predict them first, and fold the"
        " report below it.",
        "predict",
        page="explorer.md",
    ),
    Option(
        "Run a MERGE, UPDATE or DELETE in two ways on the same rows, or in several catalogs or stores"
        " on a copy of its target in each, and show them side by side; no table is changed.",
        "compare",
        choices=(
            "flows",
            "paradigms",
            "duplicates",
            "catalogs=NAME,NAME",
            "stores",
            "stores=NAME,NAME",
        ),
        page="compare.md#two-ways-side-by-side",
    ),
    Option(
        "Run a statement that reads changes over a grid of stores, layouts and"
        " changes, in a temporary folder, and show what each writes, reads and leaves; values"
        " are, for example, share=0.01,0.1 store=delta,hive seconds=60.",
        "lab",
        takes="'NAME=VALUE,VALUE ...'",
        assumed="",
        page="lab.md",
    ),
    Option(
        "Rehearse the statements of the cell, which change one table in files, and show which files"
        " they touch and read, and what other layouts would have saved; nothing is written. Without"
        " layouts, those by one column that a statement names.",
        "layouts",
        takes="'LAYOUT; LAYOUT'",
        assumed="",
        page="lab.md#a-layout-from-statements",
    ),
    Option(
        "Evaluate the statement on its target as it was before, and compare its"
        " result with what another engine committed; nothing is written. States are versions,"
        " snapshots, tags, write ids or timestamps; without AFTER, the current table.",
        "audit",
        takes="BEFORE..AFTER",
        page="audit.md",
    ),
    Option(
        "The variable that holds the Engine to use.",
        "engine",
        takes="NAME",
        is_setting=True,
        default="",
        unset="the default engine",
    ),
    Option(
        "Show times, which differ from run to run.",
        "timings",
        has_flag=False,
        is_setting=True,
        default=False,
    ),
    Option(
        "Show a line of progress while a cell takes longer than half a second.",
        "progress",
        has_flag=False,
        is_setting=True,
        default=True,
    ),
    Option(
        "Start Spark in the background when a kernel has loaded the magics and is idle.",
        "prestart",
        has_flag=False,
        is_setting=True,
        default=True,
    ),
    Option(
        "The number of rows of a query to show.",
        "max-rows",
        has_flag=False,
        is_setting=True,
        default=60,
    ),
    Option(
        "With the command doctor: list what dead processes left behind in the stores"
        " of all catalogs.",
        "orphans",
        page="stores-leftovers.md#leftovers",
    ),
    Option(
        "With the command doctor and --orphans: remove it. Files of running statements are kept.",
        "remove",
    ),
    Option(
        "With the command doctor: create the class cache, with which Java starts in"
        " half the processor time; takes a minute.",
        "prepare",
    ),
    Option(
        "With the command connect: ask for the password in a field that hides it.",
        "password",
        page="stores.md#connecting-a-store",
    ),
    Option("Show all options and commands.", "help", short="h"),
)
"""Options of cells and lines only."""
ALL_OPTIONS: Final = (*STATEMENT_OPTIONS.values(), *_OF_CELLS)
"""The options of statements, cells and lines."""
OPTIONS: Final = tuple(option for option in ALL_OPTIONS if option.has_flag)
"""The options that a cell or a line can write, in the order of the help page."""
SETTINGS: Final = tuple(option for option in ALL_OPTIONS if option.is_setting)
"""The options that ``%config MergeMagic`` and pyproject.toml set for all cells."""

COMMANDS: Final[Mapping[str, str]] = {
    "tables": "the tables of all catalogs, with their columns, rows and paradigm",
    "connect": "adds a STORE as a catalog: iceberg warehouse/ AS ice; alone, lists the catalogs",
    "undo": "undoes the last change: of a TABLE, or of the table that was changed last",
    "doctor": "what is installed, which Java was found, and whether Spark starts",
    "translate": ("translates another engine's statement: delta MERGE INTO ...; %%merge too"),
    "options": "the options, their values now, and their defaults",
    "help": "all options and commands",
}
"""The commands of ``%merge``."""

_EXAMPLE: Final = """\
%%merge -o result --show diff,journeys
MERGE INTO accounts a USING updates u ON a.id = u.id
WHEN MATCHED THEN UPDATE SET balance = u.balance
WHEN NOT MATCHED THEN INSERT (id, balance) VALUES (u.id, u.balance)"""
_WIDTHS: Final = (17, 27, 54)
"""The column widths of the options table; together about the width of a tooltip."""

_BY_NAME: Final = {option.name: option for option in OPTIONS}
_BY_SHORT: Final = {option.short: option for option in OPTIONS if option.short}
FIRST_WORDS: Final = (
    *(
        "merge",
        "select",
        "with",
        "values",
        "table",
        "insert",
        "update",
        "delete",
        "explain",
        "set",
        "show",
        "desc",
        "describe",
    ),
    *("create", "drop", "alter", "truncate", "comment", "call", "use"),
    *(
        "prepare",
        "execute",
        "deallocate",
        "analyze",
        "grant",
        "revoke",
        "deny",
        "refresh",
        "reset",
        "start",
        "commit",
        "rollback",
    ),
)
"""The first words of statements, repeated here so that the first cell need not import the parser.
"""
STATEMENT: Final = re.compile(rf"(?i)(?:{'|'.join(FIRST_WORDS)})\b")


@dataclass(frozen=True)
class MagicUse:
    """A parsed magic line.

    Args:
        values: option name to value; ``"true"`` for options without a value.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    quiet_name: str = ""
    rest: str = ""

    def has(self, name: str) -> bool:
        return name in self.values


def parse_line(line: str) -> MagicUse:
    values: dict[str, str] = {}
    quiet_name = ""
    rest = line.strip()
    while rest and not STATEMENT.match(rest):
        if assigned := re.match(r"(\w+)\s*<<\s*", rest):
            if quiet_name:
                _refuse("<< occurs twice", "A result is kept in only one variable")
            quiet_name = _variable("<<", assigned[1])
            rest = rest[assigned.end() :]
        elif rest.startswith("-"):
            word, rest = _next_word(rest)
            option, inline_value = _option(word)
            if option.name in values:
                _refuse(f"--{option.name} occurs twice", "Remove one of them")
            value, rest = _value(option, inline_value, rest)
            values[option.name] = value
        else:
            _check_name_last(rest)
            break
    return MagicUse(values, quiet_name, rest)


def _check_name_last(rest: str) -> None:
    if match := re.match(r"(\w+)\s+(-[^<]*?)\s*<<", rest):
        name, options = match.groups()
        _refuse(
            f"{name} and << must follow the options together",
            f"Write %%merge {options} -o {name}, or %%merge {options} {name} << to show nothing",
        )


def states_of(text: str) -> tuple[int | str | dt.date, int | str | dt.date | None]:
    """Parse the value of ``--audit``: the states before and after, None for the current table.

    >>> states_of("3..5"), states_of("before-may.."), states_of("2026-05-01..2026-05-02T08:30:00")
    ((3, 5), ('before-may', None), (datetime.date(2026, 5, 1), datetime.datetime(2026, 5, 2, 8, 30)))
    """
    before, dots, after = text.partition("..")
    if not dots or not before or ".." in after:
        _refuse(
            f"--audit needs two states but got '{text}'",
            f"Write --audit BEFORE..AFTER, or --audit {before or 'BEFORE'}.. for the current table",
        )
    return _state(before), _state(after) if after else None


def comparison_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse the value of ``--compare``: the kind of comparison, and the names behind ``=``.

    >>> comparison_of("flows"), comparison_of("catalogs=ours, ice")
    (('flows', ()), ('catalogs', ('ours', 'ice')))
    """
    word, _, names = text.partition("=")
    return word.lower(), tuple(filter(None, map(str.strip, names.split(","))))


def lab_arguments(text: str) -> dict[str, Any]:
    """Parse the value of ``--lab`` as arguments of `Engine.lab`.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for another form.

    >>> lab_arguments("share=0.01,0.5 partitioned_by=,month sorted=true seconds=60 results=a.jsonl")
    {'seconds': 60, 'results': 'a.jsonl', 'grid': {'share': [0.01, 0.5], 'partitioned_by': ['', 'month'], 'sorted': [True]}}
    >>> lab_arguments("")
    {}
    """
    arguments: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals:
            _refuse(f"--lab cannot be '{word}'", "Write NAME=VALUE, such as share=0.01,0.1")
        if name in arguments or name in grid:
            _refuse(f"--lab has {name} twice", "Remove one of them")
        if name in {"rows", "seconds", "key", "results"}:
            arguments[name] = value if name in {"key", "results"} else _lab_value(value)
        else:
            grid[name] = [_lab_value(part) for part in value.split(",")]
    return {**arguments, "grid": grid} if grid else arguments


def layout_names(text: str) -> list[str] | None:
    """Parse the value of ``--layouts``, with semicolons between layouts; None for no value.

    >>> layout_names("month(day), region; sorted by id"), layout_names("")
    (['month(day), region', 'sorted by id'], None)
    """
    return list(filter(None, map(str.strip, text.split(";")))) or None


def _lab_value(word: str) -> Any:
    if word.lower() in {"true", "false"}:
        return word.lower() == "true"
    for read in (int, float):
        with suppress(ValueError):
            return read(word)
    return word


def _state(word: str) -> int | str | dt.date:
    if word.isdecimal():
        return int(word)
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        with suppress(ValueError):
            return read(word)
    return word


def _next_word(text: str) -> tuple[str, str]:
    """Split off the first word, which may be quoted as in a shell.

    >>> _next_word("--show='plan, pages' MERGE x")
    ('--show=plan, pages', 'MERGE x')
    """
    word = re.match(r"""(?:'[^']*'|"[^"]*"|\S)+""", text)
    if word is None:
        return "", ""
    try:
        return "".join(shlex.split(word[0])), text[word.end() :].lstrip()
    except ValueError:
        return word[0], text[word.end() :].lstrip()


def _option(word: str) -> tuple[Option, str | None]:
    name, equals, value = word.partition("=")
    option = (
        _BY_NAME.get(name[2:].replace("_", "-"))
        if name.startswith("--")
        else _BY_SHORT.get(name[1:])
    )
    if option is None:
        near = nearest(name.lstrip("-"), _BY_NAME)
        hint = f"Did you mean --{near}?" if near else "%merge help lists the options."
        _refuse(f"There is no option {name}", hint)
    return option, value if equals else None


def _value(option: Option, inline_value: str | None, rest: str) -> tuple[str, str]:
    if not option.values:
        if inline_value is not None:
            _refuse(f"--{option.name} takes no value but got '{inline_value}'")
        return "true", rest
    if inline_value is None:
        word, after = _next_word(rest)
        missing = not word or word.startswith("-") or after.startswith("<<")
        # A lowercase word that is neither a choice nor a statement is a wrong value.
        follows = (
            not word.islower() or not word.isalpha() or word in COMMANDS or STATEMENT.match(word)
        )
        is_value = bool(option.takes) and (
            rest.startswith(("'", '"'))
            or "=" in word
            or ("(" in word[1:] and not STATEMENT.match(word))
        )
        if option.assumed is not None and (
            missing or (word not in option.choices and follows and not is_value)
        ):
            return option.assumed, rest
        if missing:
            _refuse(f"--{option.name} needs a value", f"Write --{option.name} {option.values}")
        inline_value, rest = word, after
    if option.takes == "NAME":
        return _variable(f"--{option.name}", inline_value), rest
    if not option.choices:
        return inline_value, rest
    words = {str(choice).lower(): str(choice) for choice in option.choices}
    word = inline_value.lower()
    form_name, _, value = inline_value.partition("=")
    forms = {form.partition("=")[0]: form for form in words.values()}
    form = forms.get(form_name.lower(), "")
    if "=" in form:
        if not value and word not in words:
            _refuse(f"--{option.name} {form_name} needs a value", f"Write --{option.name} {form}")
        return inline_value, rest
    choice = option.choice_of(inline_value)
    if choice is not None:
        return str(choice), rest
    if word not in words:
        near = nearest(word, forms)
        choices = f"There are: {', '.join(words.values())}"
        _refuse(
            f"--{option.name} cannot be '{inline_value}'",
            f"Did you mean {forms[near]}?" if near else choices,
        )
    return words[word], rest


def _variable(where: str, name: str) -> str:
    if not name.isidentifier() or iskeyword(name):
        _refuse(f"{where} needs the name of a Python variable but got '{name}'")
    return name


def _refuse(message: str, hint: str | None = None) -> NoReturn:
    raise RowMergeError.invalid(message, hint=hint)


def help_text() -> str:
    return "\n".join(_help_lines())


def _help_lines() -> Iterator[str]:
    yield "%%merge [options] [NAME <<]        runs the SQL statements of the cell"
    yield "%merge [options] STATEMENT         runs one statement"
    for name, meaning in COMMANDS.items():
        yield f"{f'%merge {name}':<35}{meaning}"
    yield ""
    yield "Options:"
    for option in OPTIONS:
        yield f"  {option.flags}"
        yield f"      {option.meaning}"
    yield ""
    yield (
        "NAME << keeps the result in a variable and shows nothing. _merge holds the last result."
    )
    yield (
        "{{ expression }} inserts the value of a Python expression. DataFrames of the"
        " notebook are sources under their names."
    )
    yield (
        "%config MergeMagic sets defaults for all cells, as does the table [tool.rowmerge_nb] of"
        " the nearest pyproject.toml."
    )


def docstring() -> str:
    """Return the text of ``%merge?``: an example, and the options as a table."""
    heads = [("option", "values", "meaning"), tuple("-" * width for width in _WIDTHS)]
    table = "\n".join(
        _row(*cells)
        for cells in [
            *heads,
            *((_flag(option), _values_text(option), option.meaning) for option in OPTIONS),
        ]
    )
    behind = "\n".join(f"%merge {name:<10}{meaning}" for name, meaning in COMMANDS.items())
    return f"Run SQL statements, and show what happened.\n\n{_EXAMPLE}\n\n{table}\n\n{behind}"


def _flag(option: Option) -> str:
    return f"-{option.short}, --{option.name}" if option.short else f"--{option.name}"


def _values_text(option: Option) -> str:
    return "\n".join(
        [
            *option.values.split("|"),
            *([f"(or nothing: {option.assumed})"] if option.assumed is not None else []),
        ]
    )


def _row(*cells: str) -> str:
    wrapped = [
        [
            part
            for line in cell.split("\n")
            for part in textwrap.wrap(line, width, break_long_words=False)
        ]
        for cell, width in zip(cells, _WIDTHS, strict=True)
    ]
    lines = zip_longest(*wrapped, fillvalue="")
    return "\n".join(
        " ".join(f"{part:<{width}}" for part, width in zip(line, _WIDTHS, strict=True)).rstrip()
        for line in lines
    )
