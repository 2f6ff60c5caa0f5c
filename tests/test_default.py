"""`rowmerge_nb.run` in a program, and in notebooks without magics."""

from __future__ import annotations

import pandas as pd
import pytest

import rowmerge_nb as rm
from rowmerge_nb import default

news = pd.DataFrame({"id": [1]})
_hidden = news


@pytest.fixture
def options(monkeypatch):
    calls = []

    class Engine:
        def run(self, sql, **options):
            calls.append(options)

    monkeypatch.setattr(default, "default_engine", Engine)
    return calls


def test_the_callers_frames_are_sources(options):
    local = news
    rm.run("SELECT 1", era="current")
    assert options[0]["era"] == "current"
    frames = options[0]["namespace"]
    assert frames["local"] is frames["news"] is local
    assert "_hidden" not in frames
    assert "pd" not in frames


def test_a_namespace_replaces_the_callers_frames(options):
    rm.run("SELECT 1", namespace={})
    assert options[0]["namespace"] == {}
