"""A release from a user's view: built, checked, and installed in an empty environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import rowmerge_nb

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.trial

FIRST_CELLS = """
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance(colors="nocolor")


def run(cell):
    with capture_output() as captured:
        result = shell.run_cell(cell)
    result.raise_error()
    return "\\n".join(output.data.get("text/plain", "") for output in captured.outputs)


run("%load_ext rowmerge_nb")
run('''%%merge
CREATE TABLE accounts (customer VARCHAR, purchases BIGINT);
INSERT INTO accounts VALUES ('Aaron', 5), ('Bill', 7)''')
run("import pandas as pd; news = pd.DataFrame({'customer': ['Aaron', 'Ed'], 'purchases': [6, 7]})")
report = run('''%%merge --explore
MERGE INTO accounts t USING news s ON t.customer = s.customer
WHEN MATCHED THEN UPDATE SET purchases = t.purchases + s.purchases
WHEN NOT MATCHED THEN INSERT VALUES (s.customer, s.purchases)''')
print(report)
print(run("%merge SELECT * FROM accounts ORDER BY customer"))
result = shell.user_ns["_merge"]
merge = run('''%%merge merged <<
MERGE INTO accounts t USING news s ON t.customer = s.customer
WHEN MATCHED THEN UPDATE SET purchases = 0''')
page = Path("merge.html")
shell.user_ns["merged"].save_html(page)
print("PAGE", page.stat().st_size > 50_000, "<script" in page.read_text())
print(run("%merge connect memory AS m"))

import rowmerge_nb
from importlib.metadata import entry_points, version

print("VERSION", version("rowmerge-nb") == rowmerge_nb.__version__)
print("PLACE", Path(rowmerge_nb.__file__).is_relative_to(sys.prefix))
print("STORES", *sorted(entry_points(group="rowmerge_nb.connectors").names))
print("FAILED", *[check for check in rowmerge_nb.doctor(start_spark=False) if check.state == "failed"])
rowmerge_nb.default_engine().close()
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--outdir", folder, ROOT], folder)
    return folder


def run(command: list[object], folder: Path) -> str:
    environment = {
        key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }
    environment |= {
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
        "UV_CONSTRAINT": str(ROOT / "constraints.txt"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "IPYTHONDIR": str(folder / "ipython"),
        "ROWMERGE_CLASS_CACHE": "off",
    }
    answer = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def only(dist: Path, pattern: str) -> Path:
    (path,) = dist.glob(pattern)
    return path


def test_the_metadata_and_the_readme_pass_the_checks_of_an_upload(dist):
    checked = run([sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()], dist)
    assert checked.count("PASSED") == 2
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(name).decode())
    assert (metadata["Name"], metadata["Version"]) == ("rowmerge-nb", rowmerge_nb.__version__)
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith("# rowmerge_nb")


def test_the_archives_have_all_files_of_the_package_and_no_others(dist):
    tracked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "rowmerge_nb").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(only(dist, "*.whl")) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == tracked
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked <= names
    assert {"README.md", "LICENSE", "pyproject.toml", "CITATION.cff", "scripts/test"} <= names
    assert not any(name.startswith((".venv", ".git/", "build/", "dist/")) for name in names)


def install(wheel: Path, venv: Path, folder: Path) -> None:
    """Install a wheel by uv, which takes a third of the time, or by pip if uv cannot."""
    run([sys.executable, "-m", "venv", venv], folder)
    python = venv / "bin" / "python"
    uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--python", python]
    # As in scripts/_environment.py.
    uv += ["--cache-dir", folder / "uv-cache"]
    uv += ["--config-settings-package", "pyspark:--build-option=--compression=stored"]
    try:
        run([*uv, wheel], folder)
    except (OSError, AssertionError):
        run([python, "-m", "pip", "install", "--quiet", wheel], folder)


def package_files(python: Path, folder: Path) -> set[str]:
    """Return the files of the package except those added by its installer."""
    answer = run([python, "-m", "pip", "show", "--files", "rowmerge-nb"], folder)
    files = {line.strip() for line in answer.partition("Files:")[2].splitlines()}
    return {name for name in files if name.startswith("rowmerge_nb/") and "__pycache__" not in name}


def test_a_first_cell_runs_with_only_the_wheel_installed(dist, tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    install(only(dist, "*.whl"), tmp_path / "venv", tmp_path)
    (tmp_path / "cells.py").write_text(FIRST_CELLS)
    out = run([python, "cells.py"], tmp_path)
    assert "MERGE INTO accounts: 1 row inserted, 1 updated" in out
    assert "explorer" in out
    assert [line.split() for line in out.splitlines() if line.startswith(("Aaron", "Bill", "Ed"))][
        -3:
    ] == [["Aaron", "11"], ["Bill", "7"], ["Ed", "7"]]
    assert "Catalog m is connected" in out
    lines = out.splitlines()
    assert "PAGE True True" in lines
    assert "VERSION True" in lines
    assert "PLACE True" in lines
    assert "STORES delta hive_acid iceberg memory postgresql sqlite trino" in lines
    assert "FAILED" in lines

    # The source archive, from which pip builds the same package.
    names = package_files(python, tmp_path)
    assert "rowmerge_nb/py.typed" in names
    source = only(dist, "*.tar.gz")
    run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", source],
        tmp_path,
    )
    assert package_files(python, tmp_path) == names
    assert "True" in run(
        [python, "-c", "import rowmerge_nb as rm; print(rm.Engine().catalogs() != [])"], tmp_path
    )
