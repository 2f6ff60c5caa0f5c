"""A matcher for IPython:
https://ipython.readthedocs.io/en/stable/api/generated/IPython.core.completer.html.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.frames import is_frame
from rowmerge_nb.notebook.completion.cells import Braces, OptionLine, Sql, Text, where
from rowmerge_nb.notebook.completion.lookups import Lookups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.notebook.completion.statement_completion import Names

_MATCHER: Final = "rowmerge_matcher"
_EXPRESSION: Final = re.compile(r"[\w.]*\Z")


class _Nothing(list["SimpleCompletion"]):
    """An empty list of length one: IPython lets only a nonempty result suppress other matchers."""

    def __len__(self) -> int:
        return 1


def register(
    shell: InteractiveShell, settings_of: Callable[[str], tuple[Names | None, bool]]
) -> None:
    """Add the completion to a shell; a second registration replaces the first.

    ``settings_of`` maps a cell's line of options to the engine, or None, and whether the extended
    dialect is on.
    """
    completer = getattr(shell, "Completer", None)
    if completer is None or not hasattr(completer, "custom_matchers"):
        return
    from IPython.core.completer import SimpleCompletion, context_matcher

    lookups = Lookups()

    # Runs first and suppresses the others: the Python matcher needs half a second at first use.
    @context_matcher(priority=100, identifier=_MATCHER)  # type: ignore[untyped-decorator]
    def rowmerge_matcher(context: CompletionContext) -> SimpleMatcherResult:
        at = where(context.full_text, context.cursor_line, context.cursor_position)
        if at is None:
            return {"completions": [], "suppress": False}
        word, matches = _completions(at)
        completions = [SimpleCompletion(text=text, type=label) for text, label in matches]
        return {
            "completions": completions or _Nothing(),
            "suppress": True,
            "ordered": True,
            "matched_fragment": word,
        }

    def _completions(at: OptionLine | Braces | Text | Sql) -> tuple[str, Iterable[tuple[str, str]]]:
        if isinstance(at, Text):
            return "", ()
        if isinstance(at, Braces):
            return _python(completer, at.code)
        if isinstance(at, OptionLine):
            from rowmerge_nb.notebook.completion.option_completion import in_options

            return in_options(at, variables=_engines(shell.user_ns))
        from rowmerge_nb.notebook.completion.statement_completion import Known, in_statement

        lookups.begin()
        frames = {
            name: value
            for name, value in shell.user_ns.items()
            if not name.startswith("_") and is_frame(value)
        }
        engine, extended = settings_of(at.options)
        return at.word, [
            (matches.text, matches.kind)
            for matches in in_statement(at, Known(engine, frames, lookups), extended=extended)
        ]

    unregister(shell)
    completer.custom_matchers = [*completer.custom_matchers, rowmerge_matcher]


def _python(completer: Any, code: str) -> tuple[str, Iterable[tuple[str, str]]]:
    pattern_match = _EXPRESSION.search(code)
    expression = pattern_match[0] if pattern_match is not None else ""
    owner, dot, word = expression.rpartition(".")
    matches = completer.attr_matches(expression) if owner else completer.global_matches(expression)
    names = [match.removeprefix(owner + dot).removeprefix(".") for match in matches]
    return word, [(name, "instance") for name in dict.fromkeys(names)]


def _engines(namespace: dict[str, Any]) -> tuple[str, ...]:
    module = sys.modules.get("rowmerge_nb.engine.engine")
    if module is None:
        return ()
    return tuple(
        name
        for name, value in namespace.items()
        if isinstance(value, module.Engine) and not name.startswith("_")
    )


def unregister(shell: InteractiveShell) -> None:
    completer = getattr(shell, "Completer", None)
    matchers = getattr(completer, "custom_matchers", [])
    if completer is not None and matchers:
        completer.custom_matchers = [
            m for m in matchers if getattr(m, "matcher_identifier", "") != _MATCHER
        ]
