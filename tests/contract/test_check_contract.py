"""The contract kit in a notebook, without a file or a command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rowmerge_nb import MemoryConnector, RowMergeError
from rowmerge_nb.testing.contract import check_contract

ROOT = Path(__file__).parents[2]

CELLS = """
from rowmerge_nb.testing.contract import check_contract
from tests.contract.test_keyed_cell_contract import TestKeyedCell
from tests.contract.broken_tasks import TestTwoRowsShareARowId

good = check_contract(TestKeyedCell, only="row_ids or exchanged")
print(str(good))
bad = check_contract(TestTwoRowsShareARowId, only="row_ids")
print(str(bad))
print(sorted(bad.to_pandas().columns))
try:
    check_contract(TestKeyedCell, only="nothing_of_this_name")
except Exception as error:
    print(error)
"""


@pytest.mark.not_quick
def test_a_class_of_a_cell_is_checked_and_failures_are_sentences() -> None:
    run = subprocess.run(
        [sys.executable, "-c", CELLS], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "TestKeyedCell: 5 checks passed, 0 failed, 0 skipped"
    assert lines[1] == "TestTwoRowsShareARowId: 2 checks passed, 1 failed, 0 skipped"
    assert lines[2] == "FAILED row ids are unique and never null [plain-documents]"
    assert lines[3] == "    14 rows have 7 row ids"
    assert (
        lines[4]
        == '    again: check_contract(TestTwoRowsShareARowId, only="test_row_ids_are_unique_and_never_null[plain-documents]")'
    )
    assert "['again', 'details', 'message', 'outcome', 'place', 'sentence', 'way']" in lines
    assert lines[-1].startswith("INVALID_ARGUMENTS: No check of TestKeyedCell was run.")


@pytest.mark.not_quick
def test_the_cell_and_the_contract_of_the_documentation_are_checked_in_their_page() -> None:
    cell = (
        (ROOT / "rowmerge_nb" / "testing" / "examples" / "price_store.py")
        .read_text()
        .split("# The cell ends here.")[0]
    )
    page = (ROOT / "docs" / "own-connector.md").read_text()
    assert cell.partition("# The cell begins here.")[2].strip() in page
    kit = (ROOT / "docs" / "contract-kit.md").read_text()
    contract = next(
        block
        for block in re.findall(r"```python\n(.*?)```", kit, re.DOTALL)
        if "check_contract(Shop)" in block
    )
    some = contract.replace(
        "check_contract(Shop)",
        'check_contract(Shop, only="row_ids or travels or merge or empty or statements")',
    )
    run = subprocess.run(
        [sys.executable, "-c", cell + some], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert re.match(r"Shop: \d\d+ checks passed, 0 failed, ", run.stdout), run.stdout


def test_another_class_is_refused_before_pytest_collects_it() -> None:
    for value in (MemoryConnector, MemoryConnector(), 5):
        with pytest.raises(RowMergeError, match="Give a subclass of ConnectorContract"):
            check_contract(value)
