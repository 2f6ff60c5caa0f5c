"""Faults of the machine while the real engine runs; `python -m proof.trials.system` has more trials."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proof.trials.points.stores import STORES
from proof.trials.system.trials import FAULTS
from tests.proof.points_support import skip_without_server

SINCE = "REPLACE,EVOLUTION,PROPERTIES,optimize,expire_snapshots,optimize_manifests,undo,restore,compact-minor,compact-major,MERGE"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("store", [name for name, kind in STORES.items() if kind.survives])
def test_a_fault_of_the_machine_leaves_the_store_as_before_or_as_after(
    store: str, fault: str
) -> None:
    skip_without_server(store)
    command = [
        sys.executable,
        "-m",
        "proof.trials.system",
        "--stores",
        store,
        "--statements",
        SINCE,
        "--faults",
        fault,
    ]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    sys.stdout.write(ended.stdout)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-3000:]}"
