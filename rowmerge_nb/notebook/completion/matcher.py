"""The completion as a matcher of IPython: https://ipython.readthedocs.io/en/stable/api/generated/IPython.core.completer.html."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.frames import is_frame
from rowmerge_nb.notebook.completion.cells import Braces, Options, Sql, Text, where
from rowmerge_nb.notebook.completion.lookups import Lookups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.notebook.completion.statement_completion import Names

_MATCHER: Final = "rowmerge_matcher"
_EXPRESSION: Final = re.compile(r"[\w.]*\Z")


class _Nothing(list["SimpleCompletion"]):
    """No completions, and none of others either: IPython lets only a matcher that has found something keep others silent.

    Of it IPython asks whether it is empty, and then takes what is in it.
    """

    def __len__(self) -> int:
        return 1


def register(shell: InteractiveShell, chosen: Callable[[str], tuple[Names | None, bool]]) -> None:
    """Add the completion to a shell; a second registration replaces the first.

    Args:
        shell: the shell.
        chosen: tells by a cell's line of options the engine whose tables are offered (None where there is none yet), and whether forms
            of MERGE are offered that Trino does not have.
    """
    completer = getattr(shell, "Completer", None)
    if completer is None or not hasattr(completer, "custom_matchers"):
        return
    from IPython.core.completer import SimpleCompletion, context_matcher

    lookups = Lookups()

    # Before all others, which need not run then: that of Python's names takes half a second at its first time.
    @context_matcher(priority=100, identifier=_MATCHER)  # type: ignore[untyped-decorator]
    def rowmerge_matcher(context: CompletionContext) -> SimpleMatcherResult:
        at = where(context.full_text, context.cursor_line, context.cursor_position)
        if at is None:
            return {"completions": [], "suppress": False}
        word, found = _completions(at)
        completions = [SimpleCompletion(text=text, type=kind) for text, kind in found]
        return {"completions": completions or _Nothing(), "suppress": True, "ordered": True, "matched_fragment": word}

    def _completions(at: Options | Braces | Text | Sql) -> tuple[str, Iterable[tuple[str, str]]]:
        if isinstance(at, Text):
            return "", ()
        if isinstance(at, Braces):
            return _python(completer, at.code)
        if isinstance(at, Options):
            from rowmerge_nb.notebook.completion.option_completion import in_options

            return in_options(at, variables=_engines(shell.user_ns))
        from rowmerge_nb.notebook.completion.statement_completion import Known, in_statement

        lookups.begin()
        frames = {name: value for name, value in shell.user_ns.items() if not name.startswith("_") and is_frame(value)}
        engine, extended = chosen(at.options)
        return at.word, [
            (found.text, found.kind) for found in in_statement(at, Known(engine, frames, lookups), extended=extended)
        ]

    unregister(shell)
    completer.custom_matchers = [*completer.custom_matchers, rowmerge_matcher]


def _python(completer: Any, code: str) -> tuple[str, Iterable[tuple[str, str]]]:
    """Return Python's names, as IPython finds them without Jedi, which would read the cell as Python."""
    found = _EXPRESSION.search(code)
    written = found[0] if found is not None else ""
    owner, dot, word = written.rpartition(".")
    matches = completer.attr_matches(written) if owner else completer.global_matches(written)
    names = [match.removeprefix(owner + dot).removeprefix(".") for match in matches]
    return word, [(name, "instance") for name in dict.fromkeys(names)]


def _engines(namespace: dict[str, Any]) -> tuple[str, ...]:
    """Return the variables that hold an engine; without its module there is none."""
    module = sys.modules.get("rowmerge_nb.engine.engine")
    if module is None:
        return ()
    return tuple(name for name, value in namespace.items() if isinstance(value, module.Engine) and not name.startswith("_"))


def unregister(shell: InteractiveShell) -> None:
    """Take the completion out of a shell."""
    completer = getattr(shell, "Completer", None)
    known = getattr(completer, "custom_matchers", [])
    if completer is not None and known:
        completer.custom_matchers = [m for m in known if getattr(m, "matcher_identifier", "") != _MATCHER]
