"""Install commands of optional libraries, which depend on how the package was installed."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.base import extras
from rowmerge_nb.base.extras import install_command


class Installed:
    def __init__(self, origin: dict[str, Any] | None) -> None:
        self._origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._origin is None else json.dumps(self._origin)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'rowmerge-nb[trino]'"),
        ({"url": "file:///gone/folder", "dir_info": {}}, "pip install 'rowmerge-nb[trino]'"),
        (
            {"url": "file://{here}", "dir_info": {}},
            "pip install 'rowmerge-nb[trino] @ file://{here}'",
        ),
        (
            {"url": "file://{here}", "dir_info": {"editable": True}},
            "pip install -e '{here}[trino]'",
        ),
        (
            {"url": "file:///a/b.whl", "archive_info": {}},
            "pip install 'rowmerge-nb[trino] @ file:///a/b.whl'",
        ),
        (
            {"url": "https://host/repo.git", "vcs_info": {"vcs": "git"}},
            "pip install 'rowmerge-nb[trino] @ git+https://host/repo.git'",
        ),
    ],
)
def test_an_extra_depends_on_the_origin_of_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: dict[str, Any] | None, command: str
) -> None:
    if origin is not None:
        origin = {**origin, "url": origin["url"].replace("{here}", str(tmp_path))}
    monkeypatch.setattr(extras, "distribution", lambda _: Installed(origin))
    assert install_command("trino") == command.replace("{here}", str(tmp_path))


def test_a_package_that_is_used_from_a_folder_is_installed_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str) -> None:
        raise PackageNotFoundError

    monkeypatch.setattr(extras, "distribution", missing)
    assert install_command("lab") == "pip install 'rowmerge-nb[lab]'"
