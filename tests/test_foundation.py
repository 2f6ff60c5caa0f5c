"""The package as a whole: its public names, the cost of an import, the promises of the scripts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rowmerge_nb

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("pyspark", "py4j", "pandas", "numpy", "pyarrow", "jinja2", "pygraphviz")


def in_new_process(code: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stderr == ""
    return answer.stdout


@pytest.mark.parametrize("name", rowmerge_nb.__all__)
def test_every_public_name_exists_and_belongs_to_the_package(name):
    assert getattr(rowmerge_nb, name).__module__.startswith("rowmerge_nb")


def test_an_unknown_name_is_refused_as_modules_do():
    with pytest.raises(AttributeError, match="has no attribute 'Enigne'"):
        rowmerge_nb.Enigne  # noqa: B018


def test_dir_lists_the_public_names():
    assert set(rowmerge_nb.__all__) <= set(dir(rowmerge_nb))


def test_import_loads_nothing_heavy():
    out = in_new_process(
        f"import sys; import rowmerge_nb; print([name for name in {HEAVY!r} if name in sys.modules])",
    )
    assert out == "[]\n"


def test_load_ext_loads_nothing_heavy():
    # The shell itself exists before, as in a kernel.
    out = in_new_process(
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell(); before = set(sys.modules)\n"
        "shell.run_line_magic('load_ext', 'rowmerge_nb')\n"
        f"print([name for name in {HEAVY!r} if name in set(sys.modules) - before])"
    )
    assert out == "[]\n"


def test_a_build_reads_the_version_from_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    text = (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'\n__version__ = "{rowmerge_nb.__version__}"\n' in text


def test_constraints_pin_exact_versions_and_name_no_index():
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert [
        line for line in lines if not re.fullmatch(r"[a-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)
    ] == []
    assert lines == sorted(lines)


def test_constraints_pin_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    asked = [
        *project["dependencies"],
        *(entry for extra in project["optional-dependencies"].values() for entry in extra),
    ]
    assert {re.match(r"[a-z0-9-]+", entry)[0] for entry in asked} <= pinned


@pytest.mark.parametrize("script", ["demo", "test", "lint", "bench", "site"])
def test_scripts_are_executable(script):
    assert (ROOT / "scripts" / script).stat().st_mode & 0o111


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_targets_of_links_exist(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if not path.startswith(("http:", "https:")):
            linked = (page.parent / path).resolve() if path else page
            assert linked.exists(), f"{link} in {page.name}"
            if anchor:
                heads = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
                assert anchor in {
                    re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads
                }, link


def test_the_index_of_the_documentation_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [
        page.name
        for page in PAGES
        if page.parent == ROOT / "docs"
        and page.name != "README.md"
        and f"]({page.name})" not in index
    ] == []


@pytest.mark.not_quick
def test_tests_marked_long_and_trials_run_on_request(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_two.py").write_text(
        "import pytest\n\n\ndef test_short(): pass\n\n\n@pytest.mark.long\ndef test_long(): pass\n"
        "\n\n@pytest.mark.trial\ndef test_trial(): pass\n"
    )

    def counts(*options: str) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            *options,
            str(tmp_path),
        ]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
        )
        return done.stdout.splitlines()[-1]

    assert counts().startswith("1 passed, 2 deselected in")
    assert counts("--trials").startswith("1 passed, 2 deselected in")
    assert counts("--long").startswith("3 passed in")


def test_every_file_and_folder_that_the_map_names_is_there_and_every_room_is_on_it() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.]+/)+(?:\w+\.(?:py|json|txt))?)`", text))
    package = ROOT / "rowmerge_nb"
    places = [ROOT, package, package / "connectors", package / "testing", ROOT / "proof" / "trials"]
    assert [
        name for name in sorted(named) if not any((place / name).exists() for place in places)
    ] == []
    rooms = [
        folder
        for top in ("sql", "engine", "report", "connectors")
        for folder in (ROOT / "rowmerge_nb" / top).iterdir()
    ]
    missing = [
        room.name
        for room in rooms
        if (room / "__init__.py").exists() and f"{room.name}/`" not in text
    ]
    assert missing == []


def test_the_readme_is_short_and_shows_a_picture_in_light_and_dark() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 900
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"|!\[[^\]]+\]\(([^)]+)\)', text)
    assert len(pictures) == 3
    for picture in map("".join, pictures):
        assert (ROOT / picture).stat().st_size < 1_000_000
