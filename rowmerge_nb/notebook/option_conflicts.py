"""Options that do not go together, or not with a command or a cell of several statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.notebook.cell_options import MagicUse

PLANNED: Final = ("explain", "dry-run")
_RUNS_NOTHING: Final = dict.fromkeys(PLANNED, "it runs nothing")
_REPORTED: Final = (
    *(*PLANNED, "compare", "audit", "rehearse", "record", "fault", "verify"),
    *("show", "explore", "predict", "near", "check", "why"),
)
"""Options whose output a lab or a comparison of layouts does not have."""
_CLASHES: Final[Mapping[str, Mapping[str, str]]] = {
    "rehearse": {**_RUNS_NOTHING, "compare": "a comparison never changes tables"},
    "record": dict.fromkeys((*PLANNED, "compare", "audit"), "its pages are not kept"),
    "fault": {
        **_RUNS_NOTHING,
        "compare": "both of its sides would get it, and neither would finish",
        "audit": "an audit does not call the connector's sinks",
        "verify": "a failed statement has nothing to verify",
    },
    "lab": dict.fromkeys(_REPORTED, ""),
    "layouts": dict.fromkeys((*_REPORTED, "lab"), ""),
    "compare": dict.fromkeys((*PLANNED, "show", "explore", "predict", "near", "check", "why"), ""),
    "audit": dict.fromkeys(
        (*PLANNED, "show", "explore", "predict", "near", "compare", "rehearse", "check", "why"), ""
    ),
}
"""For each option, in the order of the checks, the options that it excludes, and why if that is not
obvious.
"""
_ALONE: Final[Mapping[str, str]] = {
    "record": "--record saves the record of one statement",
    "lab": "--lab runs one statement",
    "fault": "--fault counts the calls of one statement",
}
"""Options that apply to one statement only, so the cell may not have several."""


def check_clashes(use: MagicUse) -> None:
    for name, excluded in _CLASHES.items():
        for other, why in excluded.items():
            if use.has(name) and use.has(other):
                raise RowMergeError(
                    f"--{name} and --{other} cannot be combined{f': {why}' if why else ''}",
                    code="INVALID_ARGUMENTS",
                    hint="Remove one of them." if why else f"Omit --{other}.",
                )


def check_number_of_statements(use: MagicUse, statements: int) -> None:
    for name, what in _ALONE.items():
        if use.has(name) and statements > 1:
            raise RowMergeError(
                f"{what}, but the cell has {statements}",
                code="INVALID_ARGUMENTS",
                hint=f"Put the statement to {name} into a cell of its own.",
            )


def refuse_with(command: str, option: str) -> NoReturn:
    raise RowMergeError(
        f"--{option} and {command} cannot be combined",
        code="INVALID_ARGUMENTS",
        hint=f"Omit --{option}.",
    )


def check_command_options(command: str, use: MagicUse) -> None:
    for name, command_text, is_valid in (
        ("orphans", "%merge doctor", command == "doctor"),
        ("remove", "%merge doctor --orphans", use.has("orphans")),
        ("prepare", "%merge doctor", command == "doctor"),
        ("password", "%merge connect STORE LOCATION", command == "connect"),
    ):
        if use.has(name) and not is_valid:
            raise RowMergeError(
                f"--{name} is an option of {command_text}",
                code="INVALID_ARGUMENTS",
                hint=f"Write `{command_text} --{name}`.",
            )
    if use.has("prepare") and use.has("orphans"):
        raise RowMergeError(
            "--prepare and --orphans cannot be combined",
            code="INVALID_ARGUMENTS",
            hint="Run `%merge doctor` once with each.",
        )


def check_parts(parts: str | None) -> None:
    if parts is None:
        return
    from rowmerge_nb.report.model.report import PARTS, PRESETS, part_hint

    names = [part.strip() for part in parts.split(",")]
    for name in filter(None, names) if any(names) else [parts]:
        if name not in {*PARTS, *PRESETS}:
            raise RowMergeError(
                f"--show has no part '{name}'",
                code="INVALID_ARGUMENTS",
                hint=part_hint(name),
            )
