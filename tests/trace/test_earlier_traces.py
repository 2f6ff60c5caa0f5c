"""Traces that earlier versions have saved open, and give the report that they gave then."""

from __future__ import annotations

from pathlib import Path

from rowmerge_nb import load_trace, save_trace
from rowmerge_nb.report.bundle import mime_bundle

HERE = Path(__file__).parent


def test_a_trace_in_the_first_format_gives_the_report_that_it_gave_then(tmp_path: Path) -> None:
    trace = load_trace(HERE / "saved_in_format_1.json")
    assert mime_bundle(trace)["text/plain"] == (HERE / "saved_in_format_1.txt").read_text(encoding="utf-8").rstrip("\n")
    save_trace(trace, tmp_path / "again.json")
    assert load_trace(tmp_path / "again.json") == trace
