"""Writes docs/options.md: ``python -m rowmerge_nb.notebook.options_page > docs/options.md``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from rowmerge_nb.engine.api.statement_options import STATEMENT_OPTIONS
from rowmerge_nb.notebook.cell_options import ALL_OPTIONS, COMMANDS

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.statement_options import Option

_PARTS: Final = (
    "# Options",
    (
        "This page is written by `python -m rowmerge_nb.notebook.options_page > docs/options.md`; a"
        " test keeps it up to date."
    ),
    "In a cell, write options after `%%merge`; in a program, pass them to `engine.run(sql, ...)`.",
    (
        "`%config MergeMagic.NAME = VALUE` sets a default for all cells of a notebook, by the name"
        " in the third column. The table `[tool.rowmerge_nb]` of the nearest pyproject.toml sets"
        " defaults for a project. Arguments of `Engine` set those of an engine: `era`,"
        " `duplicates`, `dialect`, `trace`, `flow`."
    ),
    "`%%merge NAME <<` keeps the result in a variable and shows nothing.",
)
_HEADS: Final = ("in a cell", "in a program", "`%config`", "without it", "meaning")


def page() -> str:
    rows = [_HEADS, ("---",) * len(_HEADS), *map(_row, ALL_OPTIONS)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    commands = "\n".join(f"- `%merge {name}`: {meaning}" for name, meaning in COMMANDS.items())
    return "\n\n".join([*_PARTS, table, "## Commands", commands]) + "\n"


def _row(option: Option) -> tuple[str, ...]:
    """Return the cells of one option.

    >>> from rowmerge_nb.engine.api.statement_options import STATEMENT_OPTIONS
    >>> _row(STATEMENT_OPTIONS["era"])[:4]
    ('`--era documents` or `current`', '`era`', '`era`', '`documents`')
    """
    more = f" [More]({option.page})" if option.page else ""
    in_program = (
        f"`{option.keyword}`"
        if option.keyword in STATEMENT_OPTIONS and STATEMENT_OPTIONS[option.keyword] is option
        else ""
    )
    form = f": {option.form}" if in_program and option.form else ""
    setting = f"`{option.keyword}`" if option.is_setting else ""
    return (
        _in_cell(option),
        in_program + form,
        setting,
        option.unset or _default(option),
        option.meaning + more,
    )


def _default(option: Option) -> str:
    return f"`{option.default}`" if option.default else ""


def _in_cell(option: Option) -> str:
    """Return how a cell writes an option.

    >>> from rowmerge_nb.engine.api.statement_options import Option
    >>> _in_cell(Option("", "explain", choices=("text", "dot", "svg"), assumed="text"))
    '`--explain`, `--explain text`, `dot` or `svg`'
    """
    if not option.has_flag:
        return ""
    first, *others = option.choices or (option.takes,)
    forms = [
        f"`--{option.name} {first}`" if first else f"`--{option.name}`",
        *(f"`{word}`" for word in others),
    ]
    if option.short:
        forms.insert(0, f"`-{option.short} {first}`" if first else f"`-{option.short}`")
    if option.assumed is not None:
        forms.insert(0, f"`--{option.name}`")
    return f"{', '.join(forms[:-1])} or {forms[-1]}" if len(forms) > 1 else forms[0]


if __name__ == "__main__":
    sys.stdout.write(page())
