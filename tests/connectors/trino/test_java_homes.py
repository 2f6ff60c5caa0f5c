"""Finding a JDK for a plugin."""

from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino import java_homes
from rowmerge_nb.connectors.trino.java_homes import find_java_home


def jdk(folder, version, modules="java.base jdk.incubator.vector"):
    folder.mkdir()
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    monkeypatch.setattr(java_homes, "_FOLDERS", ())
    monkeypatch.setattr("shutil.which", lambda program: None)
    monkeypatch.delenv("TRINO_JAVA_HOME", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_the_named_jdk_is_used(tmp_path):
    assert find_java_home(jdk(tmp_path / "jdk", "25.0.3")).version == 25


def test_the_first_suitable_jdk_of_the_environment_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("TRINO_JAVA_HOME", str(jdk(tmp_path / "old", "17.0.2")))
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "new", "25")))
    assert find_java_home().folder == tmp_path / "new"


@pytest.mark.parametrize(
    ("version", "modules", "message"),
    [
        ("1.8.0_202", "", "Java 8 in '.*' is too old: Trino needs 25"),
        ("25", "java.base", "lacks the module jdk.incubator.vector"),
    ],
)
def test_an_unsuitable_jdk_is_refused_in_one_sentence(tmp_path, version, modules, message):
    with pytest.raises(SetupError, match=message):
        find_java_home(jdk(tmp_path / "jdk", version, modules))


def test_no_jdk_at_all_is_refused_with_the_next_step(tmp_path):
    with pytest.raises(SetupError, match=r"No JDK 25 was found.*TRINO_JAVA_HOME"):
        find_java_home()
    with pytest.raises(SetupError, match="There is no JDK in"):
        find_java_home(tmp_path)


@pytest.mark.parametrize(
    ("version", "message"),
    [("11", "too old: Trino 380 needs 17 to 22"), ("25", "too new: Trino 380 needs 17 to 22")],
)
def test_a_version_before_merge_needs_an_older_java(tmp_path, monkeypatch, version, message):
    unsuitable = jdk(tmp_path / "unsuitable", version)
    with pytest.raises(SetupError, match=message) as info:
        find_java_home(unsuitable, "380")
    assert "Install a full JDK 17" in info.value.hint
    with pytest.raises(SetupError, match="No JDK 17 to 22 was found, which Trino 380 needs"):
        find_java_home(trino="380")
    monkeypatch.setenv("TRINO_JAVA_HOME", str(unsuitable))
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "jdk", "17.0.2", "java.base")))
    assert find_java_home(trino="380").version == 17
