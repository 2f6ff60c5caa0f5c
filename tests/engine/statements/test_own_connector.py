"""A keyed connector written in a notebook cell merges through Spark tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rowmerge_nb.testing.examples import price_store

CELL = Path(price_store.__file__)


def test_the_connector_fits_in_sixty_lines() -> None:
    text = CELL.read_text()
    cell = text[text.index("# The cell begins here.") : text.index("# The cell ends here.")]
    assert sum(1 for line in cell.splitlines()[1:] if line.strip()) <= 60


@pytest.mark.spark
def test_classes_defined_in_main_reach_the_tasks() -> None:
    run = subprocess.run(
        [sys.executable, str(CELL)], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip().endswith(
        "{'INSERT': 1, 'UPDATE': 1, 'DELETE': 1, 'none': 0} {1: 9.5, 3: 8.0, 4: 1.5}"
    )
