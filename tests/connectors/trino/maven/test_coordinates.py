"""Maven coordinates: accepted forms, and texts of errors."""

from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.maven.coordinates import is_coordinates, parse_coordinates


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("iceberg", "is not group:artifact:version"),
        ("io.trino:trino-iceberg", "is not group:artifact:version"),
        ("io.trino:trino-iceberg:jar:483", "is not group:artifact:version"),
        ("io.trino:trino iceberg:483", "is not group:artifact:version"),
        ("..:trino-iceberg:483", "is not group:artifact:version"),
        ("io.trino:..:483", "is not group:artifact:version"),
        (483, "maven = 483 is not group:artifact:version"),
        ("io.trino:trino-iceberg:48*", "does not name one version"),
        ("io.trino:trino-iceberg:[480,)", "does not name one version"),
        ("io.trino:trino-iceberg:LATEST", "does not name one version"),
        ("io.trino:trino-iceberg:../483", "does not name one version"),
        ("io.trino:trino-iceberg:..", "does not name one version"),
        ("io.trino:trino-iceberg:484-SNAPSHOT", "is a snapshot, whose jars change"),
    ],
)
def test_other_forms_are_errors(text, words):
    with pytest.raises(SetupError) as caught:
        parse_coordinates(text)
    assert words in caught.value.message
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert caught.value.hint


def test_a_version_may_have_letters():
    assert parse_coordinates("org.acme:plugin:1.2-rc.1").version == "1.2-rc.1"


def test_a_file_with_colons_in_its_name_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_coordinates("a:b:1")
    (tmp_path / "a:b:1").touch()
    assert not is_coordinates("a:b:1")
