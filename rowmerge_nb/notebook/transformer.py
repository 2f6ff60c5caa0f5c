"""Rewrites of cells that IPython would reject: what people write around ``%merge`` and ``%%merge``.

- ``%%merge`` without text below is the line ``%merge``.
- ``%merge`` with SQL on the next lines is a cell of ``%%merge``; ``x = %merge`` keeps its result.
- ``%%merge`` below comments is the first line.
- ``%%merge`` below Python code, and ``%%sql`` if no extension has it, are errors with the next step.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.notebook.cell_options import STATEMENT

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_CELL: Final = re.compile(r"%%merge(?=\s|$)")
_LINE: Final = re.compile(
    r"(?:(?P<name>[^\W\d]\w*)\s*=\s*)?%{1,2}merge(?=\s|$)(?P<rest>.*)", re.DOTALL
)
_SQL: Final = re.compile(r"(%{1,2})sql(?=\s|$)")


class CellTransformer:
    has_side_effects = True
    """IPython does not call it to find out whether a cell is complete: it may raise."""

    def __init__(self, shell: InteractiveShell | None = None) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        begin = next((at for at, line in enumerate(lines) if _is_code(line)), None)
        if begin is None:
            return lines
        first, rest = lines[begin], lines[begin + 1 :]
        self._check_sql(first)
        if _CELL.match(first):
            if not any(line.strip() for line in rest):
                return [first.rstrip("\n").removeprefix("%") + "\n"]
            # Blank lines keep the numbers of the lines below.
            return [first, *["\n"] * begin, *rest]
        if (line := _LINE.fullmatch(first)) is not None and (rest or "%%merge" in first):
            return self._spread(lines, begin, line) or lines
        if any(_CELL.match(other) for other in rest) and not first.startswith("%%"):
            at = next(at for at, other in enumerate(lines) if _CELL.match(other))
            raise RowMergeError.invalid(
                f"%%merge is on line {at + 1} of its cell but must be on the first",
                hint="Put the Python code above it into a cell of its own.",
            )
        return lines

    def _check_sql(self, first: str) -> None:
        match = _SQL.match(first)
        if match is None or self._shell is None:
            return
        magic_type = "cell" if match[1] == "%%" else "line"
        if self._shell.find_magic("sql", magic_type) is None:  # type: ignore[no-untyped-call]
            raise RowMergeError.invalid(
                f"The magic {match[1]}sql does not exist in this notebook",
                hint=f"Write {match[1]}merge: rowmerge_nb runs queries too.",
            )

    def _spread(self, lines: list[str], begin: int, line: re.Match[str]) -> list[str] | None:
        below = "".join(lines[begin + 1 :])
        line_text = line["rest"].strip()
        double = "%%merge" in lines[begin]
        if not double and (not below.strip() or self._is_python(below)):
            return None
        statement = STATEMENT.search(line_text)
        if statement is not None and not _starts_statement(line_text, statement.start()):
            statement = None
        if not _is_sql(below) and (statement is None or line_text.endswith(";")):
            return None
        target = f" -o {line['name']}" if line["name"] else ""
        if not below.strip():
            return [f"{line['name']} = %merge {line_text}\n"]
        return [f"%%merge{target} {line_text}".rstrip() + "\n", *["\n"] * begin, below]

    def _is_python(self, text: str) -> bool:
        if self._shell is not None:
            try:
                text = self._shell.input_transformer_manager.transform_cell(text)
            except (SyntaxError, RowMergeError):
                return False
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
        return True


def _starts_statement(text: str, at: int) -> bool:
    return at == 0 or text[:at].lstrip().startswith("-")


def _is_sql(text: str) -> bool:
    return (
        STATEMENT.match(re.sub(r"\A(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*", "", text, flags=re.DOTALL))
        is not None
    )


def _is_code(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#")


class ShownOnce(ast.NodeTransformer):
    """Keeps IPython from showing the value of a line of ``%merge``, which has shown its report."""

    def __init__(self) -> None:
        self.has_cell = False
        """It has seen the running cell."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.has_cell = True
        for statement in node.body:
            if isinstance(statement, ast.Expr) and _is_merge(statement.value):
                nothing = ast.Constant(None)
                is_none = ast.Compare(statement.value, [ast.Is()], [nothing])
                statement.value = ast.copy_location(
                    ast.IfExp(is_none, nothing, nothing), statement.value
                )
        return ast.fix_missing_locations(node)

    def end_of_cell(self, *_: object) -> None:
        self.has_cell = False


def show_once(shell: InteractiveShell, result: object) -> None:
    """Keep the running cell from showing a result again, if it loads the extension.

    Its code is compiled before `ShownOnce` is there.
    """
    transforms = [each for each in shell.ast_transformers if isinstance(each, ShownOnce)]
    if result is None or any(each.has_cell for each in transforms):
        return
    from IPython import display

    show_value: Any = display.display
    displayed: Any = shell.display_formatter
    formatter = displayed.ipython_display_formatter
    result_type = type(result)

    def forget(*_: object) -> None:
        formatter.pop(result_type, None)
        with suppress(ValueError):
            shell.events.unregister("post_run_cell", forget)

    def show(value: object) -> None:
        forget()
        if value is not result:
            show_value(value)

    formatter.for_type(result_type, show)
    shell.events.register("post_run_cell", forget)


def _is_merge(node: ast.expr) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(attr="run_line_magic", value=ast.Call(func=ast.Name("get_ipython"))),
            args=[ast.Constant("merge"), *_],
        ):
            return True
    return False


def register(shell: InteractiveShell) -> None:
    unregister(shell)
    transforms: list[Any] = shell.input_transformers_cleanup
    transforms.append(CellTransformer(shell))
    once = ShownOnce()
    shell.ast_transformers.append(once)
    shell.events.register("post_run_cell", once.end_of_cell)


def unregister(shell: InteractiveShell) -> None:
    for once in [each for each in shell.ast_transformers if isinstance(each, ShownOnce)]:
        shell.ast_transformers.remove(once)
        shell.events.unregister("post_run_cell", once.end_of_cell)
    shell.input_transformers_cleanup[:] = [
        transform
        for transform in shell.input_transformers_cleanup
        if not isinstance(transform, CellTransformer)
    ]
