"""A plugin of our own, written in Java (``java/shelf``), and copies of it with planted bugs."""

from __future__ import annotations

import subprocess
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

JAVA = Path(__file__).parent / "java"
SOURCES = JAVA / "shelf"
_LIBRARIES = ("trino-spi", "slice", "jackson-annotations")
"""What a plugin is compiled against; Trino's engine provides the same classes."""
_NEEDED = ("jackson-module-blackbird", "jackson-databind", "jackson-core")
"""Trino's JSON of handles looks up their classes in the plugin; Airlift maps them to others."""


class ShelfBuild:
    """The plugin's classes, compiled once, and jars of them.

    Args:
        trino: the folder with the jars of Trino's engine.
        java: the folder of a JDK.
        folder: where to write.
    """

    def __init__(self, trino: Path, java: Path, folder: Path) -> None:
        self._javac = java / "bin" / "javac"
        if not self._javac.exists():
            pytest.skip(f"{java} has no javac")
        self._libraries = [jar for name in _LIBRARIES for jar in trino.glob(f"{name}-*.jar")]
        self.needed_jars = [jar for name in _NEEDED for jar in trino.glob(f"{name}-2*.jar")]
        self._folder = folder
        self._classes = folder / "classes"
        self._compile(JAVA.glob("*/*.java"), self._classes)

    def jar(self, plugin: Path, *patches: Patch) -> Path:
        """Write the plugin's jar into a folder, with patches of its sources; return the folder."""
        changed = self._folder / f"changed-{len(list(self._folder.iterdir()))}"
        changed.mkdir()
        for file in {patch.file for patch in patches}:
            text = (SOURCES / file).read_text(encoding="utf-8")
            for patch in patches:
                text = patch.apply(text) if patch.file == file else text
            (changed / file).write_text(text, encoding="utf-8")
        if patches:
            self._compile(changed.glob("*.java"), changed / "classes")
        classes = {
            file.relative_to(root): file
            for root in (self._classes, changed / "classes")
            for file in root.rglob("*.class")
        }
        plugin.mkdir(parents=True, exist_ok=True)
        new_jar = plugin / "shelf.new"
        with zipfile.ZipFile(new_jar, "w") as jar:
            for name, file in classes.items():
                jar.write(file, name)
        new_jar.replace(plugin / "shelf.jar")
        return plugin

    def _compile(self, files: Iterable[Path], classes: Path) -> None:
        path = ":".join(map(str, [self._classes, *self._libraries]))
        options = ["-proc:none", "-nowarn", "-XX:TieredStopAtLevel=1"]
        java_options = [f"-J{option}" if option[1] == "X" else option for option in options]
        subprocess.run(
            [self._javac, *java_options, "-d", classes, "-cp", path, *files],
            check=True,
            stderr=subprocess.DEVNULL,
        )


class Patch:
    """A replacement in one source file of the plugin.

    Args:
        file: its name.
        old: the text to replace, which must be in the file once.
        new: the text instead of it.
    """

    def __init__(self, file: str, old: str, new: str) -> None:
        self.file = file
        self._old = old
        self._new = new

    def apply(self, text: str) -> str:
        """Return a source with the replacement."""
        assert text.count(self._old) == 1, f"{self.file} has not once: {self._old}"
        return text.replace(self._old, self._new)

    @property
    def line(self) -> int:
        """The line of the replacement."""
        return line_of(self.file, self._old)


@cache
def line_of(file: str, text: str) -> int:
    """Return the line of a text in a source file."""
    before, found, _ = (SOURCES / file).read_text(encoding="utf-8").partition(text)
    assert found, f"{file} does not have: {text}"
    return before.count("\n") + 1


def troubles() -> list[Patch]:
    """Return patches that call ``Trouble.at`` in each phase of a statement."""
    return [
        _trouble("beginMerge", "ShelfMetadata.java", "        return new ShelfMergeHandle("),
        _trouble(
            "createMergeSink", "ShelfPageSinkProvider.java", "        ShelfMergeHandle merge ="
        ),
        _trouble("storeMergedRows", "ShelfMergeSink.java", "        Block operations ="),
        _trouble("finish", "ShelfMergeSink.java", "        Optional<String> file ="),
        _trouble("finishMerge", "ShelfMetadata.java", "        TableState read ="),
        Patch(
            "ShelfMetadata.java",
            "        store.commit(read.with(fragments.stream().map(Fragment::of).toList()));\n",
            "        store.commit(read.with(fragments.stream().map(Fragment::of).toList()));\n"
            '        Trouble.at("committed");\n',
        ),
        Patch(
            "ShelfConnector.java",
            "    public void commit(ConnectorTransactionHandle transaction) {\n",
            "    public void commit(ConnectorTransactionHandle transaction) {\n"
            '        Trouble.at("commit");\n',
        ),
    ]


def _trouble(place: str, file: str, line: str) -> Patch:
    return Patch(file, line, f'        Trouble.at("{place}");\n{line}')
