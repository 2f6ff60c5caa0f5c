"""Checks the English of the project: docstrings, names, sentences, and the subjects of commits.

``[tool.language]`` of pyproject.toml limits the number of findings per rule. Lower a limit after
fixes.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rowmerge_nb"
TESTS = ROOT / "tests"
DOCUMENTED = (PACKAGE, TESTS, ROOT / "proof", ROOT / "benchmarks")
"""Folders whose docstrings and comments are checked."""
LONGEST_SENTENCE = 35
LONGEST_SUBJECT = 65
OPENINGS = frozenset(
    {
        "Give",
        "Gives",
        "Tell",
        "Tells",
        "Say",
        "Says",
        "Bring",
        "See",
        "Have",
        "Do",
        "Does",
        "Is",
        "Are",
        "Has",
    }
)
"""Words that must not open a docstring."""
WORDS = re.compile(
    r"\b(told|tells?|nobody|whoever|somebody|once more|goes by|leave out|leaves out|left"
    r" out|stands|stand|so many|of which there)\b",
    re.IGNORECASE,
)
"""Words to avoid in docstrings, comments and pages."""
MESSAGES = re.compile(rf"{WORDS.pattern}|\bought to\b|\b(is|are) no part of\b", re.IGNORECASE)
"""Words to avoid in messages."""
CODE = re.compile(r"(`+)[^`]+\1")
TEST = re.compile(r"^ *def (test_\w+)", re.MULTILINE)
TEST_WORDS = re.compile(r"_(told|said|nobody|whoever|stands|so_many)(?=_|$)")
"""Words to avoid in names of tests."""
PARTICIPLES = frozenset(
    {
        "alone",
        "answered",
        "asked",
        "begun",
        "beside",
        "brought",
        "built",
        "called",
        "carried",
        "caught",
        "chosen",
        "counted",
        "done",
        "drawn",
        "ended",
        "failed",
        "fallen",
        "filled",
        "former",
        "found",
        "given",
        "gone",
        "got",
        "had",
        "handed",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "missed",
        "named",
        "needed",
        "noted",
        "opened",
        "otherwise",
        "passed",
        "picked",
        "placed",
        "refused",
        "remaining",
        "said",
        "seen",
        "sent",
        "shown",
        "sought",
        "stored",
        "taken",
        "told",
        "tried",
        "wanted",
        "written",
    }
)
"""Names that say what happened, not what they hold. `left` beside `right` is a side."""
VAGUE = frozenset({"kind", "place"})


@dataclass(frozen=True)
class Finding:
    """A violation of a rule."""

    rule: str
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        """Return the position and the text of the finding."""
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.rule}: {self.text}"


def main() -> int:
    """Compare the findings of each rule with its limit; return the exit code.

    Findings of rules named as arguments are printed.
    """
    limits: dict[str, int] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "language"
    ]
    findings = [finding for check in CHECKS for finding in check()]
    counts = Counter(finding.rule for finding in findings)
    print(
        *(finding for finding in findings if finding.rule in sys.argv),
        sep="\n",
        end="\n" if len(sys.argv) > 1 else "",
    )
    broken = [rule for rule in counts if counts[rule] > limits.get(rule, 0)]
    for rule in broken:
        print(
            f"{rule}: {counts[rule]} findings, at most {limits.get(rule, 0)}; scripts/_language.py"
            f" {rule} lists them"
        )
    return int(bool(broken))


def _texts(*folders: Path) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield path, path.read_text()


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for path, text in _texts(PACKAGE):
        yield path, ast.parse(text)


@cache
def _docstrings(*folders: Path) -> list[tuple[Path, int, str]]:
    return [
        (path, node.body[0].lineno, docstring)
        for path, text in _texts(*folders)
        for node in _statements(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if (docstring := ast.get_docstring(node))
    ]


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from _statements(child)


def openings() -> Iterator[Finding]:
    """Yield the docstrings that open with a verb of `OPENINGS`."""
    for path, line, text in _docstrings(*DOCUMENTED):
        first = re.match(r"\w+", text)
        if first and first[0] in OPENINGS:
            yield Finding("openings", path, line, text.partition("\n")[0])


def _sentences(text: str) -> Iterator[str]:
    without_blocks = re.sub(r"::\n(?:[ \t]*\n|[ \t]+\S.*\n?)*", "", text)
    prose = re.sub(r"^\s*(>>>|\.\.\.|\|).*$", "", without_blocks, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n\s*[-*] |\n\s*\w+: |\n#+ ", prose):
        yield from re.split(r"(?<=[.:!?])\s+(?=[A-Z`'\"(*])", " ".join(paragraph.split()))


def _pages() -> Iterator[tuple[Path, int, str]]:
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ):
        yield path, 1, re.sub(r"```.*?```|<\w[^>]*>", "", path.read_text(), flags=re.DOTALL)


def sentences() -> Iterator[Finding]:
    """Yield the sentences of docstrings and pages that are too long."""
    for path, line, text in (*_docstrings(PACKAGE), *_pages()):
        for sentence in _sentences(text):
            if (
                len(re.findall(r"[A-Za-z][\w'-]*", re.sub(r"`[^`]*`", "code", sentence)))
                > LONGEST_SENTENCE
            ):
                yield Finding("sentences", path, line, sentence[:100])


def words() -> Iterator[Finding]:
    """Yield the words of `WORDS` in docstrings, comments and pages."""
    for path, line, text in (*_docstrings(*DOCUMENTED), *_pages()):
        prose = CODE.sub("", text)
        for match in WORDS.finditer(prose):
            yield Finding("words", path, line + prose[: match.start()].count("\n"), match[0])
    for path, text in _texts(*DOCUMENTED):
        for number, written in enumerate(text.splitlines(), 1):
            comment = re.match(r"\s*#(.*)", written)
            for match in WORDS.finditer(comment[1]) if comment else ():
                yield Finding("words", path, number, match[0])


def _sides(tree: ast.Module) -> set[ast.AST]:
    """Return the nodes of functions and classes that name something `right`."""
    return {
        node
        for scope in ast.walk(tree)
        if isinstance(scope, ast.FunctionDef | ast.ClassDef)
        and any(
            "right" in {getattr(node, name, "") for name in ("id", "arg", "attr")}
            for node in ast.walk(scope)
        )
        for node in ast.walk(scope)
    }


def messages() -> Iterator[Finding]:
    """Yield the words of `MESSAGES` in string literals with a blank that are not docstrings."""
    for path, tree in _modules():
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and " " in node.value
                and id(node) not in docstrings
            ):
                for match in MESSAGES.finditer(node.value):
                    yield Finding("messages", path, node.lineno, match[0])


def names() -> Iterator[Finding]:
    """Yield variables and arguments named by a participle or a vague word."""
    for path, text in _texts(PACKAGE):
        tree = ast.parse(text)
        sides = _sides(tree) if "left" in text else set()
        for node in ast.walk(tree):
            name = (
                node.arg
                if isinstance(node, ast.arg)
                else node.id
                if isinstance(node, ast.Name)
                else ""
            )
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
                continue
            if name == "left" and node in sides:
                continue
            if name.strip("_") in PARTICIPLES:
                yield Finding("participles", path, getattr(node, "lineno", 1), name)
            elif name in VAGUE:
                yield Finding("vague", path, getattr(node, "lineno", 1), name)


def tests() -> Iterator[Finding]:
    """Yield the tests whose names have words of `TEST_WORDS`."""
    for path, text in _texts(TESTS):
        for test in TEST.finditer(text):
            for match in TEST_WORDS.finditer(test[1]):
                line = text[: test.start()].count("\n") + 1
                yield Finding("tests", path, line, f"{match[1]} in {test[1]}")


def modules() -> Iterator[Finding]:
    """Yield modules and classes whose names are not unique enough."""
    by_name: dict[str, list[Path]] = {}
    classes: dict[str, list[tuple[Path, int]]] = {}
    for path, tree in _modules():
        by_name.setdefault(path.name, []).append(path)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append((path, node.lineno))
    for name, paths in by_name.items():
        if len(paths) > 2 and name != "__init__.py":
            yield from (Finding("modules", path, 1, name) for path in paths)
    for name, places in classes.items():
        if len(places) > 1 and not name.startswith("_"):
            yield from (Finding("classes", path, line, name) for path, line in places)


def subjects() -> Iterator[Finding]:
    """Yield the unpushed commits whose subject is too long, or not an imperative."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%s", "@{upstream}.."]
    log = subprocess.run(command, capture_output=True, text=True, check=False)
    for subject in log.stdout.splitlines():
        if (
            len(subject) > LONGEST_SUBJECT
            or not re.match(r"[A-Z][a-z]*[^s.:]* ", subject)
            or subject.endswith(".")
        ):
            yield Finding("subjects", ROOT, 1, subject)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    openings,
    sentences,
    words,
    messages,
    names,
    tests,
    modules,
    subjects,
)

if __name__ == "__main__":
    sys.exit(main())
