"""The magics: ``%%merge`` runs the statements of a cell, ``%merge`` one statement or a command."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, Enum, HasTraits, Int, TraitError, TraitType, Unicode, validate

import rowmerge_nb
from rowmerge_nb.base.choices import ROW_CHANGES
from rowmerge_nb.base.errors import AnalysisError, RowMergeError, SetupError, error_text
from rowmerge_nb.base.front_end import cell_front_end
from rowmerge_nb.base.words import plural
from rowmerge_nb.default import prepare_default_engine
from rowmerge_nb.engine.api.statement_options import STATEMENT_OPTIONS, Option
from rowmerge_nb.engine.spark.interrupts import StatementGuard
from rowmerge_nb.notebook import call_errors, debugging, transformer
from rowmerge_nb.notebook.cell_options import (
    SETTINGS,
    STATEMENT,
    MagicUse,
    comparison_of,
    docstring,
    help_text,
    lab_arguments,
    layout_names,
    parse_line,
    states_of,
)
from rowmerge_nb.notebook.completion import matcher
from rowmerge_nb.notebook.connect_command import (
    catalogs_bundle,
    connected_bundle,
    is_listing,
    parse_connect,
    password_notice,
    request_of,
    secrets_of_text,
)
from rowmerge_nb.notebook.display import (
    Bundle,
    error_bundle,
    folded,
    grid_bundle,
    plan_bundle,
    result_bundle,
    show,
    show_all,
    show_beneath_report,
    text_bundle,
    without_traceback,
)
from rowmerge_nb.notebook.line_commands import (
    command_of,
    is_translation,
    translation_use,
    with_options_behind,
)
from rowmerge_nb.notebook.option_conflicts import (
    PLANNED,
    check_clashes,
    check_command_options,
    check_number_of_statements,
    check_parts,
    refuse_with,
)
from rowmerge_nb.notebook.orphan_report import orphans_bundle
from rowmerge_nb.notebook.prestart import Prestart
from rowmerge_nb.notebook.progress import CellProgress, ends_with_cell
from rowmerge_nb.notebook.project_file import (
    CATALOGS,
    OWN_FILE,
    declared_catalogs,
    project_defaults,
)
from rowmerge_nb.notebook.template import Rendered, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.trace.audit import Audit
    from rowmerge_nb.trace.comparison import Comparison
    from rowmerge_nb.trace.lab import Lab
    from rowmerge_nb.trace.layouts import Layouts
    from rowmerge_nb.trace.store_comparison import StoreComparison


@dataclass(frozen=True)
class _Cell:
    """What the statements of a cell share; ``first_line`` is the cell's line on which the text
    begins.
    """

    rendered: Rendered
    first_line: int
    parts: str | None


def _trait(option: Option) -> TraitType[Any, Any]:
    meaning = f"{option.meaning} Empty for {option.unset}." if option.unset else option.meaning
    if option.choices:
        words = [str(choice) for choice in option.choices]
        trait: TraitType[Any, Any] = Enum(
            ["", *words] if option.unset else words, str(option.default or ""), help=meaning
        )
    elif isinstance(option.default, bool):
        trait = Bool(option.default, help=meaning)
    elif isinstance(option.default, int):
        trait = Int(option.default, min=0, help=meaning)
    else:
        trait = Unicode(option.default, help=meaning)
    return trait.tag(config=True)


_Settings: Any = type(
    "_Settings", (HasTraits,), {option.keyword: _trait(option) for option in SETTINGS}
)


@magics_class
class MergeMagic(Magics, _Settings):  # type: ignore[misc]  # traits are made from the table of options
    """Defaults of ``%%merge``; ``%config MergeMagic`` lists them,
    ``%config MergeMagic.era = "current"`` sets one.
    """

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell=shell)
        # An engine of the user's has a Spark of its own.
        self.spark_start = Prestart(shell, lambda: bool(self.prestart and not self.engine))
        self.observe(self._prestart_changed, "prestart")

    @validate("show")
    def _known_parts(self, proposal: Mapping[str, Any]) -> str:
        try:
            check_parts(proposal["value"] or None)
        except RowMergeError as error:
            raise TraitError(f"{error.message}. {error.hint}") from None
        return str(proposal["value"])

    def _prestart_changed(self, change: Mapping[str, Any]) -> None:
        if not change["new"]:
            self.spark_start.end()

    @no_var_expand
    @line_cell_magic
    def merge(self, line: str, cell: str | None = None) -> Any:
        """Run SQL statements, and show what happened; a line returns the last result."""
        guard = StatementGuard(free=True, outlasts=cell is not None and ends_with_cell(self.shell))
        with cell_front_end(self._engine_name(line), rowmerge_nb.__all__):
            result = guard.run(lambda: self._guarded(line, cell, guard))
        if cell is not None:
            return None
        transformer.show_once(self.shell, result)
        return result

    def _guarded(self, line: str, cell: str | None, guard: StatementGuard) -> Any:
        first_line = 1 if cell is None else 2
        try:
            return guard.part(lambda: self._dispatch(parse_line(line), cell, guard))
        except RowMergeError as error:
            # An undo that is refused points at the result before it, which has the old values.
            if error.result is not None and error.result.trace.kind != "UNDO":
                self._assign(error.result, parse_line(line))
            at = first_line if error.cell_line is None else error.cell_line
            bundle = _bundle_of_error(error, at, timings=self.timings)
            if error.result is None:
                show(bundle)
            else:
                _show_report(bundle, error.result, parse_line(line), at)
            # `from None` hides the engine's internals; __context__ still has them.
            raise without_traceback(error, at) from None

    def _dispatch(self, use: MagicUse, cell: str | None, guard: StatementGuard) -> Any:
        if is_translation(use) and not use.has("help"):
            self._translate(use, cell)
            return None
        command = command_of(use.rest) if cell is None else ""
        if command == "connect" and not use.has("help"):
            self._connect(use)
            return None
        if command:
            use = with_options_behind(use)
        check_command_options(command, use)
        if (
            use.has("help")
            or command == "help"
            or (cell is None and not use.rest and not use.values and not use.quiet_name)
        ):
            show(text_bundle(help_text()))
            return None
        if command:
            self._command(command, use)
            return self.shell.user_ns["_merge"] if command == "undo" else None
        if cell is None:
            return self._run(use.rest, use, 1, guard)
        if STATEMENT.match(use.rest):
            # The statement begins behind the options.
            return self._run(f"{use.rest}\n{cell}", replace(use, rest=""), 1, guard)
        return self._run(cell, use, 2, guard)

    def _run(self, source: str, use: MagicUse, first_line: int, guard: StatementGuard) -> Any:
        if first_line > 1 and use.rest:
            raise RowMergeError.invalid(
                f"'{use.rest}' follows the options; statements begin on the cell's second line",
                hint="%merge help lists the options",
            )
        parts = use.values.get("show", self.show) or None
        check_parts(parts)
        rendered = render(source, self.shell.user_ns)
        # The parser and the engine are imported while Java starts.
        runs = (
            not use.has("explain")
            and not use.has("dry-run")
            and _RUN.match(rendered.text) is not None
        )
        engine = self._engine(use, start=runs)
        from rowmerge_nb.sql.parser.statement_reader import split_statements

        statements = split_statements(rendered.text)
        if not statements:
            raise RowMergeError(
                "The cell has no statement",
                code="SYNTAX_ERROR",
                hint="Write one below the line of %%merge, or after %merge",
            )
        check_clashes(use)
        check_number_of_statements(use, len(statements))
        options = self._options(use, rendered.text)
        cell, bundles = _Cell(rendered, first_line, parts), list[Bundle]()
        number = 1

        def complete(error: RowMergeError) -> None:
            text, offset = statements[number - 1]
            if use.has("layouts"):
                # The statements run together, and the error has the text of its own.
                text, offset = next((s for s in statements if s[0] == error.statement), (text, 0))
            _note_line(error, cell, text, offset)
            error.hint = self._engine_hint(error, engine) or error.hint
            planned = any(map(use.has, (*PLANNED, "layouts")))
            report = "" if planned else _what_ran(number, len(statements), error.changed)
            error.hint = " ".join(filter(None, [_ended(error.hint, report), report])) or None

        def run_all() -> None:
            nonlocal number
            if use.has("layouts"):
                self._run_one(engine, rendered.text, 0, use, options, cell, bundles)
                return
            for text, offset in statements:
                guard.check()
                self._run_one(engine, text, offset, use, options, cell, bundles)
                guard.hold()
                guard.check()
                if number < len(statements):
                    number += 1
                    guard.next_statement()

        guard.part(run_all, complete)
        return self.shell.user_ns["_merge"]

    def _engine_hint(self, error: RowMergeError, engine: Engine) -> str | None:
        if not isinstance(error, AnalysisError) or error.missing_catalog is None:
            return None
        from rowmerge_nb.engine.engine import Engine

        return next(
            (
                f"The engine in the variable {key} has it: write %%merge --engine {key}."
                for key, value in self.shell.user_ns.items()
                if isinstance(value, Engine) and value is not engine and not key.startswith("_")
                for connection in value.catalogs()
                if connection.name == error.missing_catalog
            ),
            None,
        )

    def _assign(self, result: Any, use: MagicUse) -> None:
        for name in ("_merge", use.values.get("output"), use.quiet_name):
            if name:
                self.shell.user_ns[name] = result

    def _run_one(
        self,
        engine: Engine,
        text: str,
        offset: int,
        use: MagicUse,
        options: Mapping[str, Any],
        cell: _Cell,
        bundles: list[Bundle],
    ) -> None:
        whole_cell = cell.first_line > 1 and self.progress
        tasks = getattr(engine, "running_tasks", lambda: None)
        rows = getattr(engine, "running_rows", lambda: None)
        with CellProgress(
            self.shell, lambda: show_all(bundles), whole_cell=whole_cell, tasks=tasks, rows=rows
        ) as progress:
            result = self._statement(engine, text, use, {**options, "progress": progress})
        self._assign(result, use)
        if use.quiet_name:
            return
        inserted = cell.rendered.inserted(offset, offset + len(text))
        at = 1 if inserted else cell.rendered.source_line(offset) + cell.first_line - 1
        report = self._bundle(result, use, cell.parts, at)
        bundles.append(_show_report(report, result, use, at))

    def _statement(
        self, engine: Engine, text: str, use: MagicUse, options: Mapping[str, Any]
    ) -> Result | Comparison | StoreComparison | Audit | Lab | Layouts:
        if use.has("audit"):
            audit_options = _for_audit(use, options)
            return engine.audit(statement=text, **audit_options)
        if use.has("lab"):
            arguments = _for_lab(use, options)
            return engine.lab(text, **arguments)
        if use.has("layouts"):
            return engine.layouts(None, text, **_for_layouts(use, options))
        if use.has("compare"):
            return engine.compare(text, **_for_comparison(use, options))
        if use.has("explain"):
            return engine.explain(text, **options)
        only_here = {
            option.keyword: use.values[option.name] if option.values else True
            for option in STATEMENT_OPTIONS.values()
            if use.has(option.name) and not option.is_setting
        }
        return engine.run(text, **only_here, **options)

    def _bundle(self, result: Any, use: MagicUse, parts: str | None, first_line: int) -> Bundle:
        if any(map(use.has, ("compare", "audit", "lab", "layouts"))):
            return dict(result._repr_mimebundle_())
        if use.has("explain"):
            return plan_bundle(result, use.values["explain"])
        return result_bundle(
            result, parts=parts, timings=self.timings, max_rows=self.max_rows, first_line=first_line
        )

    def _options(self, use: MagicUse, text: str) -> dict[str, Any]:
        from rowmerge_nb.engine.spark.frames import is_frame

        settings = {
            option.keyword: use.values.get(option.name) or self._configured(option.keyword)
            for option in STATEMENT_OPTIONS.values()
            if option.is_setting
        }
        words = set(re.findall(r"\w+", text.lower()))
        # Other values that the cell names are no sources; the error says how they become some.
        frames = {
            name: value
            for name, value in self.shell.user_ns.items()
            if not name.startswith("_") and (is_frame(value) or name.lower() in words)
        }
        return {**settings, "namespace": frames}

    def _configured(self, name: str) -> str | None:
        value = getattr(self, name)
        return value if value != self.traits()[name].default_value else None

    def _engine_name(self, line: str) -> str:
        try:
            return str(parse_line(line).values.get("engine", self.engine))
        except RowMergeError:
            return str(self.engine)

    def _engine(self, use: MagicUse, *, start: bool = False) -> Engine:
        from rowmerge_nb.default import default_engine

        name = use.values.get("engine", self.engine)
        if not name:
            return default_engine(start=start)
        from rowmerge_nb.engine.engine import Engine

        engine = self.shell.user_ns.get(name)
        # Not isinstance: tests use doubles with the same methods.
        if (
            engine is None
            or isinstance(engine, type)
            or not all(hasattr(engine, method) for method in ("run", "explain"))
        ):
            engines = [
                key
                for key, value in self.shell.user_ns.items()
                if isinstance(value, Engine) and not key.startswith("_")
            ]
            raise RowMergeError.invalid(
                f"The variable '{name}' does not hold an engine",
                hint=(
                    f"There are: {', '.join(engines)}"
                    if engines
                    else f"Make one: {name} = rowmerge_nb.Engine()"
                ),
            )
        return engine  # type: ignore[no-any-return]

    def _command(self, name: str, use: MagicUse) -> None:
        if name == "tables":
            show(_tables_bundle(self._engine(use)))
        elif name == "options":
            show(self._options_bundle())
        elif name == "undo":
            self._undo(use)
        elif use.has("orphans"):
            show(
                orphans_bundle(
                    self._engine(use).orphans(remove=use.has("remove")), removed=use.has("remove")
                )
            )
        else:
            from rowmerge_nb.machine import doctor

            if use.has("prepare"):
                show(
                    text_bundle(
                        "Creating the class cache if it does not exist; this takes a minute ..."
                    )
                )
            checks = [
                [check.name, check.state, check.detail, check.advice]
                for check in doctor(prepare=use.has("prepare"))
            ]
            problems = sum(check[1] == "failed" for check in checks)
            show(
                grid_bundle(
                    ["part", "state", "found", "advice"],
                    checks,
                    plural(problems, "problem") if problems else "No problems",
                )
            )

    def _connect(self, use: MagicUse) -> None:
        text = use.rest.partition(" ")[2].strip()
        if secrets := secrets_of_text(text):
            show(text_bundle(password_notice(self.shell, secrets)))
        line = parse_connect(text)
        use = replace(use, values={**use.values, **(line.options or {})})
        if use.has("help"):
            show(text_bundle(help_text()))
            return
        if excess := sorted(set(use.values) - {"engine", "password"}):
            refuse_with("%merge connect", excess[0])
        engine = self._engine(use)
        if is_listing(line):
            if use.has("password"):
                refuse_with("%merge connect without a store", "password")
            show(catalogs_bundle(engine))
        else:
            request = request_of(line, ask=use.has("password"))
            show(connected_bundle(engine.open_connection(request)))

    def _translate(self, use: MagicUse, cell: str | None) -> None:
        from rowmerge_nb.engine.sessions.foreign_translation import DIALECTS

        use, dialect = translation_use(use)
        if excess := sorted(set(use.values) - {"output", "engine"}):
            refuse_with("%merge translate", excess[0])
        behind = use.rest
        source = behind if cell is None else f"{behind}\n{cell}" if behind else cell
        if not dialect or not source.strip():
            raise RowMergeError.invalid(
                f"%merge translate has no {'statement' if dialect else 'dialect'}",
                hint=f"Write %merge translate DIALECT STATEMENT; DIALECT is one of"
                f" {', '.join(DIALECTS)}.",
            )
        text = render(source, self.shell.user_ns).text
        translation = self._engine(use).translate(text, dialect=dialect.lower())
        for name in filter(None, (use.values.get("output"), use.quiet_name)):
            self.shell.user_ns[name] = translation
        if not use.quiet_name:
            differences = "".join(f"\n- {sentence}" for sentence in translation.differences)
            show(text_bundle(f"{translation.sql}\n{differences}".rstrip()))

    def _undo(self, use: MagicUse) -> None:
        if excess := sorted(set(use.values) - {"engine"}):
            refuse_with("%merge undo", excess[0])
        engine, table = self._engine(use), use.rest.partition(" ")[2]
        result = engine.undo(table or None)
        self.shell.user_ns["_merge"] = result
        if use.quiet_name:
            self.shell.user_ns[use.quiet_name] = result
        else:
            show(
                result_bundle(
                    result, parts=None, timings=self.timings, max_rows=self.max_rows, first_line=1
                )
            )

    def _options_bundle(self) -> Bundle:
        rows = []
        for name, trait in sorted(self.traits(config=True).items()):
            value, default = getattr(self, name), trait.default_value
            rows.append([name, str(value), str(default), trait.help])
        return grid_bundle(
            ["option", "value", "default", "meaning"],
            rows,
            "%config MergeMagic.NAME = VALUE sets one",
        )

    def for_completion(self, options: str) -> tuple[Any, bool]:
        """Return the engine whose tables are completed after a line of options, or None, and
        whether its dialect is extended.

        No engine is created.
        """
        from rowmerge_nb.default import existing_engine

        try:
            values = parse_line(options).values
        except RowMergeError:
            # The line is incomplete.
            values = {}
        name = values.get("engine", self.engine)
        return self.shell.user_ns.get(name) if name else existing_engine(), values.get(
            "dialect", self.dialect
        ) == "extended"


# What IPython shows of the magics: %merge? and Shift-Tab.
MergeMagic.merge.__doc__ = docstring()

_RUN: Final = re.compile(
    r"(?is)(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:merge|insert|update|delete|create|select|with|values|table|truncate|drop|call)\b"
)
"""How a text begins whose first statement is run, not explained."""


def _bundle_of_error(error: RowMergeError, first_line: int, *, timings: bool) -> Bundle:
    try:
        return error_bundle(
            error, first_line, parts=getattr(error, "cell_parts", None), timings=timings
        )
    except Exception as failure:  # noqa: BLE001 - what became of the change must be shown, whatever fails in drawing it
        return text_bundle(f"{error}\nThe report could not be drawn: {error_text(failure)}")


def _show_report(bundle: Bundle, result: Any, use: MagicUse, first_line: int) -> Bundle:
    """Show a report, with the explorer if the cell asks for it; return the report as shown."""
    if not use.has("explore") and not use.has("predict"):
        show(bundle)
        return bundle
    explorer, trouble = None, ""
    trace = result.trace
    # A statement without a target has no row to follow; its error says why.
    if trace.kind in ROW_CHANGES and (trace.error is None or trace.settings.paradigm):
        try:
            explorer = result.explore(predict=use.has("predict"), first_line=first_line)
        except RowMergeError as error:
            trouble = f"No explorer: {error.message}. {error.hint or ''}".strip()
    if explorer is not None and use.has("predict"):
        explorer._ipython_display_()
        bundle = folded(bundle)
    show(bundle)
    if explorer is not None and not use.has("predict"):
        show_beneath_report(explorer)
    if trouble:
        show(text_bundle(trouble))
    return bundle


def _for_comparison(use: MagicUse, options: Mapping[str, Any]) -> dict[str, Any]:
    from rowmerge_nb.engine.reruns.compared_runs import DECIDED

    by, names = comparison_of(use.values["compare"])
    left_out = {"verify", *DECIDED.get(by, ())}
    supported = {
        name: value for name, value in options.items() if name not in left_out or use.has(name)
    }
    return {**supported, "by": by, **({by: list(names)} if names else {})}


def _for_lab(use: MagicUse, options: Mapping[str, Any]) -> dict[str, Any]:
    from rowmerge_nb.engine.reruns.lab.lab_run import REFUSED

    supported = {name: value for name, value in options.items() if name not in REFUSED}
    return {**supported, **lab_arguments(use.values["lab"])}


def _for_layouts(use: MagicUse, options: Mapping[str, Any]) -> dict[str, Any]:
    from rowmerge_nb.engine.reruns.lab.lab_run import REFUSED

    supported = {name: value for name, value in options.items() if name not in REFUSED}
    return {**supported, "layouts": layout_names(use.values["layouts"])}


def _for_audit(use: MagicUse, options: Mapping[str, Any]) -> dict[str, Any]:
    from rowmerge_nb.engine.reruns.audit.audit_run import REFUSED

    before, after = states_of(use.values["audit"])
    supported = {
        name: value for name, value in options.items() if name not in REFUSED or use.has(name)
    }
    return {**supported, "before": before, "after": after}


def _ended(hint: str | None, follows: str) -> str | None:
    return hint + "." if hint and follows and not hint.endswith((".", "?", "!")) else hint


def _note_line(error: RowMergeError, cell: _Cell, text: str, offset: int) -> None:
    """Store on the error its statement, the cell line of its first line, and the shown parts."""
    error.__dict__["cell_parts"] = cell.parts
    error.statement = error.statement or text
    rendered, end = cell.rendered, offset + len(text)
    if rendered.inserted(offset, end) or error.statement not in {
        rendered.text,
        rendered.text[offset:end],
    }:
        # The statement is the text of an inserted value, or the error is in the text of an option.
        error.cell_line = 1
        return
    line = error.shown[0] or 1
    at = offset
    for _ in range(line - 1):
        at = rendered.text.find("\n", at) + 1 or at
    error.cell_line = rendered.source_line(at) - line + cell.first_line


def _what_ran(number: int, total: int, changed: bool | None) -> str:
    complete = number if changed else number - 1
    before = {0: "", 1: "Statement 1 of this cell ran and stays"}.get(
        complete, f"Statements 1 to {complete} of this cell ran and stay"
    )
    unrun = total - number
    after = (
        f"statement {total} did not run"
        if unrun == 1
        else f"statements {number + 1} to {total} did not run"
        if unrun
        else ""
    )
    sentence = "; ".join(filter(None, [before, after]))
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""


def _tables_bundle(engine: Engine) -> Bundle:
    rows = [
        [name, connector, "" if count is None else f"{count:,}", paradigm, ", ".join(columns)]
        for name, connector, columns, count, paradigm in engine.tables()
    ]
    if not rows:
        return text_bundle(
            "There are no tables yet: CREATE TABLE in a %%merge cell creates one;"
            " Engine.register registers a DataFrame."
        )
    views = sum(row[1] == "view" for row in rows)
    counts = ((len(rows) - views, "table"), (views, "view"))
    caption = ", ".join(plural(count, word) for count, word in counts if count)
    return grid_bundle(["table", "store", "rows", "paradigm", "columns"], rows, caption, right={2})


def register(shell: InteractiveShell) -> MergeMagic:
    """Register the magics with a shell; problems in ``[tool.rowmerge_nb]`` are warnings."""
    magic = MergeMagic(shell)
    problems = _apply_project_defaults(magic)
    shell.register_magics(magic)
    matcher.register(shell, magic.for_completion)
    transformer.register(shell)
    debugging.register(shell)
    call_errors.register(shell)
    magic.spark_start.register()
    for problem in problems:
        warnings.warn(problem, stacklevel=2)
    return magic


def _apply_project_defaults(magic: MergeMagic) -> list[str]:
    try:
        defaults, file = project_defaults(Path.cwd())
    except SetupError as error:
        prepare_default_engine(None)
        return [f"{error.message}; its settings are not used."]
    problems = []
    if file is not None and CATALOGS in defaults:
        declared = declared_catalogs(defaults.pop(CATALOGS), file)
        problems += declared.problems(file)
        prepare_default_engine(declared.connect)
    else:
        prepare_default_engine(None)
    traits = magic.traits(config=True)
    for name, value in defaults.items():
        key = name.replace("-", "_")
        if key not in traits:
            problems.append(
                f"{_where(file)} has no option '{name}'. Options are:"
                f" {', '.join(sorted([*traits, CATALOGS]))}."
            )
            continue
        # IPython's own configuration takes precedence.
        if key in magic.config.get("MergeMagic", {}):
            continue
        try:
            magic.set_trait(key, value)
        except Exception as error:  # noqa: BLE001 - whatever a trait says of a value
            problems.append(
                f"{_where(file)}: {name} = {value!r} is not possible and is ignored: {error}"
            )
    return problems


def _where(file: Path | None) -> str:
    return str(file) if file and file.name == OWN_FILE else f"[tool.rowmerge_nb] in {file}"


def unregister(shell: InteractiveShell) -> None:
    magic = shell.magics_manager.registry.get("MergeMagic")
    if magic is not None:
        magic.spark_start.unregister()
        # %config would find this magic before one that is registered later.
        shell.configurables[:] = [each for each in shell.configurables if each is not magic]
    for magic_type in ("line", "cell"):
        shell.magics_manager.magics[magic_type].pop("merge", None)
    matcher.unregister(shell)
    transformer.unregister(shell)
    debugging.unregister(shell)
    call_errors.unregister(shell)
    prepare_default_engine(None)
