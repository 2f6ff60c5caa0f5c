"""Saved audits: an opened audit has the saved content, and every other file is one error with its position."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import RowMergeError, Trace, load_audit, save_trace
from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.trace.audit import Audit, AuditCounts, AuditedRow, Cause, Explanation, RowFate
from rowmerge_nb.trace.saved.audits import FORMAT

ROW = {
    "id": 1,
    "day": dt.date(2026, 5, 1),
    "price": Decimal("1.10"),
    "raw": b"\x00",
    "list": (1, None),
    "half": "\ud800",
    "n": 0.5,
}
AUDIT = Audit(
    statement="DELETE FROM t WHERE id = 1",
    kind="DELETE",
    table="memory.default.t",
    before="version 1",
    after="version 2",
    counts=AuditCounts(3, 3, 0, 0, 1, 0, 0, 1),
    clauses=(),
    columns=tuple((name, "varchar") for name in ROW),
    rows=(
        AuditedRow(
            {"id": 1},
            RowFate.STILL_THERE,
            (ROW,),
            (),
            (ROW,),
            causes=(Cause.TIME_ZONE,),
            remark="by two hours",
        ),
    ),
    told=1,
    explanations=(Explanation(Cause.TIME_ZONE, "timestamps are shifted", 1, 1),),
    notices=("Something.",),
    seconds={"evaluate": 1.5},
)


def refused(path: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        load_audit(path)
    assert caught.value.code == "INVALID_ARGUMENTS"
    return caught.value


def changed(path: Path, change: Any) -> Path:
    AUDIT.save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content)))
    return path


def test_an_audit_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    AUDIT.save(tmp_path / "t.audit")
    again = load_audit(str(tmp_path / "t.audit"))
    assert again == AUDIT
    assert again.seconds == AUDIT.seconds
    assert str(again) == str(AUDIT)
    assert (tmp_path / "t.audit").stat().st_mode & 0o077 == 0


def test_an_audit_is_opened_without_spark(tmp_path: Path) -> None:
    AUDIT.save(tmp_path / "t.audit")
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import rowmerge_nb as rm; audit = rm.load_audit(sys.argv[1]); print(audit); audit.to_pandas(); audit._repr_mimebundle_()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "t.audit"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "DIFFERS" in done.stdout


def test_a_file_cut_short_anywhere_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "t.audit"
    AUDIT.save(path)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        assert "it is truncated" in refused(path).message


def test_no_file_a_directory_and_no_path_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.audit").message
    assert "cannot be opened as an audit" in refused(tmp_path).message
    assert "is not the path of a file" in refused(7).message
    with pytest.raises(RowMergeError, match="The audit cannot be saved"):
        AUDIT.save(tmp_path / "no" / "t.audit")


def test_another_version_and_another_thing_s_file_are_named(tmp_path: Path) -> None:
    path = changed(tmp_path / "t.audit", lambda content: {"rowmerge_nb audit 9": content[FORMAT]})
    error = refused(path)
    assert "of the format 'rowmerge_nb audit 9'" in error.message
    assert error.hint == f"Write one with audit.save(...); this version reads '{FORMAT}'."
    save_trace(
        Trace(statement="DROP TABLE t", kind="DROP TABLE", state=StatementState.FINISHED), path
    )
    assert "is not an audit" in refused(path).message
    path.write_bytes(b"\x80\x04cos\nsystem\n(S'exit'\ntR.")
    assert "is not an audit" in refused(path).message


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("told", "1", "$.told"),
        ("counts", None, "$.counts"),
        ("rows", {"is": "tuple", "items": [1]}, "$.rows[0]"),
        ("explanations", [], "$.explanations"),
        ("strange", 1, "$.strange"),
    ],
)
def test_a_misplaced_part_is_named(name: str, value: Any, place: str, tmp_path: Path) -> None:
    def change(content: Any) -> Any:
        content[FORMAT]["fields"][name] = value
        return content

    assert f"{place}: " in refused(changed(tmp_path / "t.audit", change)).message


def test_deeply_nested_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.audit"
    path.write_text("[" * 200_000)
    assert refused(path)
