"""Directories in the shared temporary directory: our own are swept, others are not touched, despite any resemblance."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from rowmerge_nb.base import private as module
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.private import PREFIX, PrivateDirectory, sweep
from rowmerge_nb.connectors.memory.reading import SplitStore
from rowmerge_nb.spi.handles import SchemaTableName

ROOT = Path(__file__).resolve().parents[1]
AS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs to be root, to give a directory to another user"
)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary directory of a machine with other users."""
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def left_behind(place: Path, name: str = "dead") -> Path:
    """Create the leftovers of a killed process."""
    folder = place / f"{PREFIX}{name}"
    folder.mkdir(mode=0o700)
    (folder / "lock").write_bytes(module._MARK)
    (folder / "java" / "bin").mkdir(parents=True)
    (folder / "java" / "bin" / "java").symlink_to("/bin/sh")
    (folder / "spark.log").write_text("x")
    return folder


def test_leftovers_of_a_dead_process_are_removed_and_those_of_a_living_one_stay(
    shared: Path,
) -> None:
    dead, alive = left_behind(shared), PrivateDirectory()
    sweep()
    assert list(shared.iterdir()) == [alive.path]
    assert not dead.exists()
    alive.remove()
    assert list(shared.iterdir()) == []


def test_a_directory_emptied_by_a_cleaner_is_no_longer_intact_and_is_removed_at_the_end(
    shared: Path,
) -> None:
    own = PrivateDirectory()
    assert own.is_intact
    (own.path / "lock").unlink()
    (own.path / "spark").mkdir()
    assert not own.is_intact
    own.remove()
    assert not own.path.exists()
    assert not own.is_intact


def test_an_entry_in_place_of_a_directory_that_a_cleaner_removed_is_left_alone(
    shared: Path, tmp_path: Path
) -> None:
    own, another = PrivateDirectory(), tmp_path / "another"
    another.mkdir()
    (another / "letter").write_text("mine")
    (own.path / "lock").unlink()
    own.path.rmdir()
    own.path.symlink_to(another)
    assert not own.is_intact
    own.remove()
    assert (another / "letter").read_text() == "mine"


def test_a_temporary_directory_removed_by_a_cleaner_is_recreated(shared: Path) -> None:
    PrivateDirectory().remove()
    shared.rmdir()
    own = PrivateDirectory()
    assert own.path.parent == shared
    own.remove()


def test_the_directory_of_a_process_that_is_killed_is_swept_by_the_next_one(shared: Path) -> None:
    code = "import sys, time; from rowmerge_nb.base.private import *; print(PrivateDirectory().path, flush=True); time.sleep(600)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(shared)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        sweep()
        assert path.is_dir()
        process.send_signal(signal.SIGKILL)
    sweep()
    assert not path.exists()


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_link_planted_as_the_lock_has_no_file_emptied(
    shared: Path, tmp_path: Path, kind: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(module._MARK)
    folder = left_behind(shared)
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(precious) if kind == "symbolic" else (folder / "lock").hardlink_to(
        precious
    )
    sweep()
    assert precious.read_bytes() == module._MARK
    assert (folder / "spark.log").exists()


def test_a_link_planted_as_the_directory_is_not_followed(shared: Path, tmp_path: Path) -> None:
    target = left_behind(tmp_path)
    (shared / f"{PREFIX}link").symlink_to(target)
    sweep()
    assert (target / "spark.log").exists()
    assert (shared / f"{PREFIX}link").is_symlink()


@AS_ROOT
def test_a_directory_of_another_user_is_left_alone(shared: Path) -> None:
    folder = left_behind(shared)
    os.chown(folder, 65534, 65534)
    sweep()
    assert (folder / "spark.log").exists()


@AS_ROOT
def test_a_lock_of_another_user_is_left_alone(shared: Path) -> None:
    folder = left_behind(shared)
    os.chown(folder / "lock", 65534, 65534)
    sweep()
    assert (folder / "spark.log").exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o750, 0o705])
def test_a_directory_accessible_to_other_users_is_left_alone(shared: Path, mode: int) -> None:
    folder = left_behind(shared)
    folder.chmod(mode)
    sweep()
    assert (folder / "spark.log").exists()


@pytest.mark.parametrize("content", [b"", b"something of mine", module._MARK + b"and more"])
def test_a_directory_of_our_prefix_without_our_mark_is_left_alone(
    shared: Path, content: bytes
) -> None:
    folder = left_behind(shared)
    (folder / "lock").write_bytes(content)
    sweep()
    assert (folder / "lock").read_bytes() == content
    (folder / "lock").unlink()
    sweep()
    assert (folder / "spark.log").exists()


def test_a_pipe_is_not_waited_for_and_other_oddities_stay(shared: Path) -> None:
    folder = left_behind(shared)
    (folder / "lock").unlink()
    os.mkfifo(folder / "lock")
    os.mkfifo(shared / f"{PREFIX}pipe")
    (shared / f"{PREFIX}file").write_text("x")
    (left_behind(shared, "other") / "lock").unlink()
    (shared / f"{PREFIX}other" / "lock").mkdir()
    before = sorted(shared.rglob("*"))
    sweep()
    assert sorted(shared.rglob("*")) == before


def test_links_inside_a_dead_directory_are_removed_and_their_targets_stay(
    shared: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("x")
    folder = left_behind(shared)
    (folder / "home").symlink_to(tmp_path / "home")
    sweep()
    assert not folder.exists()
    assert (tmp_path / "home" / "letter").exists()


def test_a_directory_in_the_making_is_not_swept(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process sweeps after every step: the mark is written under the lock."""
    steps = [(module.os, "open"), (module.fcntl, "flock"), (module.os, "write")]
    true = {name: getattr(owner, name) for owner, name in steps}
    swept = []

    def followed(name: str):
        def step(*args, **kwargs):
            given = true[name](*args, **kwargs)
            with monkeypatch.context() as undone:
                for owner, other in steps:
                    undone.setattr(owner, other, true[other])
                sweep()
            swept.append(name)
            return given

        return step

    for owner, name in steps:
        monkeypatch.setattr(owner, name, followed(name))
    made = PrivateDirectory()
    monkeypatch.undo()
    assert swept == ["open", "flock", "write"]
    assert (made.path / "lock").read_bytes() == module._MARK
    made.remove()


def test_a_process_that_was_forked_off_leaves_the_directory_to_its_maker(shared: Path) -> None:
    made = PrivateDirectory()
    made._process += 1
    made.remove()
    assert made.path.is_dir()
    made._process -= 1
    made.remove()
    made.remove()
    assert not made.path.exists()


def large() -> pa.Table:
    return pa.table({"a": pa.array(range(200_000))})


def test_files_of_memory_tables_are_in_a_private_directory_and_are_removed_with_their_store(
    shared: Path,
) -> None:
    store = SplitStore()
    (split,) = store.splits(SchemaTableName("default", "t"), 1, large())
    (folder,) = shared.iterdir()
    assert Path(split.path).parent == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    sweep()
    assert Path(split.path).exists()
    store.close()
    assert list(shared.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [(28, "GENERIC_INSUFFICIENT_RESOURCES"), (30, "PERMISSION_DENIED"), (13, "PERMISSION_DENIED")],
)
def test_an_unwritable_temporary_directory_is_reported(
    shared: Path, monkeypatch, number: int, code: str
) -> None:
    def refused(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.tempfile, "mkdtemp", refused)
    with pytest.raises(SetupError) as caught:
        SplitStore().splits(SchemaTableName("default", "t"), 1, large())
    assert caught.value.code == code
    assert f"'{shared}' cannot be written: {os.strerror(number)}" in caught.value.message
    assert "TMPDIR" in caught.value.hint


def test_a_disk_that_fills_up_in_the_middle_keeps_no_part_of_the_rows(
    shared: Path, monkeypatch
) -> None:
    def refused(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", refused)
    store = SplitStore()
    with pytest.raises(SetupError, match="No space left"):
        store.splits(SchemaTableName("default", "t"), 1, large())
    (folder,) = shared.iterdir()
    assert [entry.name for entry in folder.iterdir()] == ["lock"]
    store.close()


def test_a_directory_that_cannot_be_removed_whole_is_found_again(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = PrivateDirectory()
    (directory.path / "rows.arrow").write_text("x")
    (directory.path / "java").mkdir()
    real = os.unlink
    with monkeypatch.context() as broken:

        def unlink(path: object, **more: object) -> None:
            if "rows" in str(path):
                raise OSError(5, "Input/output error")
            real(path, **more)

        broken.setattr(os, "unlink", unlink)
        directory.remove()
    assert (directory.path / "rows.arrow").exists()
    sweep()
    assert list(shared.iterdir()) == []


def test_a_directory_whose_making_is_interrupted_is_removed(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> int:
        path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_create_lock", interrupted)
    with pytest.raises(KeyboardInterrupt):
        PrivateDirectory()
    assert list(shared.iterdir()) == []
