"""The output of scripts/demo, and the page that it writes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rowmerge_nb import Engine, demo

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_documents_statement_runs_on_pages() -> None:
    with Engine() as engine:
        engine.run_script(demo.SETUP)
        plan = str(engine.run(f"EXPLAIN {demo.STATEMENT}"))
    assert "The nodes below run in the task" in plan


def test_the_demo_prints_little_and_names_the_page(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "page.html"
    monkeypatch.setattr(sys, "argv", ["demo", "--output", str(page)])
    demo.main()
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= 60
    assert f"Open {page} in a browser" in printed
    first = page.read_text(encoding="utf-8").partition("<section>")[0]
    assert "The same MERGE ran twice on five customers and six rows" in first
