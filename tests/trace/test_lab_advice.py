"""Advice follows from the numbers of the runs, and contains them."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.trace.lab import Lab, LabPoint, LabRun, LabStep
from rowmerge_nb.trace.lab_advice import break_even


def run(store: str, share: float, written: int | None, read: int | None, **point: Any) -> LabRun:
    values: dict[str, Any] = {
        "locality": 0.0,
        "partitioned_by": "",
        "buckets": 0,
        "sorted": True,
        "files": 1,
        "statements": 1,
        "compact_every": 0,
        **point,
    }
    step = LabStep(
        rows_changed=round(share * 1000),
        files_read=1,
        bytes_read=1000,
        files_written=1,
        bytes_written=written,
        full_read_files=1,
        full_read_bytes=read,
        files_to_merge=0,
        bytes_to_merge=0,
        compaction_bytes=None,
        writers=2,
        busiest_writer_rows=90,
        mean_writer_rows=50.0,
        seconds=0.1,
    )
    return LabRun(
        point=LabPoint(store, share, **values),
        loaded_rows=1000,
        loaded_files=1,
        loaded_bytes=10_000,
        steps=(step,),
    )


def lab(*runs: LabRun) -> Lab:
    return Lab(statement="MERGE", rows=1000, runs=runs, planned=len(runs), seconds=1.0)


def test_the_share_from_which_a_store_moves_fewer_bytes_is_named_with_its_numbers() -> None:
    sentences = lab(
        run("delta", 0.01, 10_000, 10_000),
        run("iceberg", 0.01, 600, 10_600),
        run("delta", 0.5, 10_000, 10_000),
        run("iceberg", 0.5, 6000, 16_000),
    ).advice
    assert sentences[0] == (
        "From 50 % of changed rows on, delta moves fewer bytes than iceberg by 1 statement and one"
        " full read: at 50 %, it writes 10,000 and reads 10,000, against 6,000 and 16,000. There,"
        " delta has paid for its writes after 0.67 full reads."
    )


def test_a_store_that_is_always_ahead_is_named_so() -> None:
    sentences = lab(run("a", 0.1, 100, 1000), run("b", 0.1, 900, 1100)).advice
    assert sentences[0].startswith("At all measured shares, a moves fewer bytes than b")
    assert "paid" not in sentences[0], "b also leaves more to read"


def test_break_even_is_more_written_by_less_read() -> None:
    assert break_even(run("a", 0.1, 100, 1000), run("b", 0.1, 300, 900)) == 2.0
    assert break_even(run("a", 0.1, 100, 1000), run("b", 0.1, 300, 1000)) is None
    assert break_even(run("a", 0.1, None, 1000), run("b", 0.1, 300, 900)) is None


def test_compactions_partitions_and_uneven_writers_have_sentences() -> None:
    sentences = lab(
        run("a", 0.1, 100, 1000, compact_every=0), run("a", 0.1, 1100, 900, compact_every=1)
    ).advice
    assert sentences[0] == (
        "With a compaction after every 1 statement, a full read after 1 statement reads 900 bytes"
        " instead of 1,000, and 1,100 bytes are written instead of 100."
    )
    assert sentences[-1].startswith("Writers are most uneven for a: 10 % of the rows")
    assert "90 rows, the mean is 50" in sentences[-1]
    sentences = lab(run("a", 0.1, 100, 1000, partitioned_by="p"), run("a", 0.1, 1100, 900)).advice
    assert "partitioned by p: 100 bytes in 1 file; most if it is not partitioned" in sentences[0]


def test_amplifications_are_ratios_to_the_loaded_table() -> None:
    one = run("a", 0.1, 3000, 12_000)
    assert one.write_amplification == 3000 / (100 * 10)
    assert one.read_amplification() == 1.2
    assert one.skew == 1.8
    assert run("memory", 0.1, None, None).write_amplification is None


def test_the_page_names_the_extra_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    page = lab(run("a", 0.1, 100, 1000))
    bundle = page._repr_mimebundle_()
    assert "[lab]" in bundle["text/html"]
    assert "<svg" not in bundle["text/html"]
    with pytest.raises(SetupError, match=re.escape(install_command("lab"))):
        page.save_pictures("pictures")


def test_a_refused_run_has_its_words_and_no_numbers() -> None:
    refused = LabRun(point=run("a", 0.1, 1, 1).point, refusal="NOT_SUPPORTED: no buckets")
    page = lab(refused)
    assert page.advice == ()
    assert "a: NOT_SUPPORTED: no buckets" in str(page)
    assert page.to_pandas().refusal.tolist() == ["NOT_SUPPORTED: no buckets"]
    assert "<svg" not in page._repr_mimebundle_()["text/html"]
