"""The amount of memory: of the machine, and within the limit of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowmerge_nb.engine.spark import memory
from rowmerge_nb.engine.spark.memory import all_memory, free_memory, room_for_source

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("files", "free", "total"),
    [
        ({"meminfo": "MemTotal: 9 kB\nMemAvailable: 4 kB\n"}, 4096, 9216),
        (
            {
                "meminfo": "MemTotal: 900 kB\nMemAvailable: 400 kB\n",
                "memory.max": "9000",
                "memory.current": "8000",
                "memory.stat": "inactive_file 500",
            },
            1500,
            9000,
        ),
        (
            {
                "meminfo": "MemTotal: 9 kB\nMemAvailable: 4 kB\n",
                "memory.max": "max",
                "memory.current": "8000",
            },
            4096,
            9216,
        ),
        (
            {
                "meminfo": "MemTotal: 99 kB",
                "memory/memory.limit_in_bytes": "9000",
                "memory/memory.usage_in_bytes": "8000",
            },
            1000,
            9000,
        ),
        (
            {
                "meminfo": "MemTotal: 99 kB",
                "self/cgroup": "0::/hub/ann/kernel\n",
                "memory.max": "max",
                "memory.current": "9000",
                "hub/ann/memory.max": "7000",
                "hub/ann/memory.current": "5000",
                "hub/ann/kernel/memory.max": "max",
                "hub/ann/kernel/memory.current": "4000",
            },
            2000,
            7000,
        ),
        (
            {
                "meminfo": "MemTotal: 99 kB",
                "self/cgroup": "4:cpu,cpuacct:/\n3:memory:/job\n",
                "memory/memory.limit_in_bytes": "90000",
                "memory/memory.usage_in_bytes": "8000",
                "memory/job/memory.limit_in_bytes": "9000",
                "memory/job/memory.usage_in_bytes": "2000",
            },
            7000,
            9000,
        ),
    ],
)
def test_the_memory_is_that_of_the_machine_and_of_the_container(
    tmp_path: Path, files: dict[str, str], free: int, total: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert (free_memory(tmp_path, tmp_path), all_memory(tmp_path, tmp_path)) == (free, total)


def test_the_system_is_asked_without_a_file_and_free_memory_is_unknown(tmp_path: Path) -> None:
    assert free_memory(tmp_path, tmp_path) is None
    assert (all_memory(tmp_path, tmp_path) or 0) > 1 << 20


def test_the_tasks_of_a_machine_share_an_eighth_of_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "all_memory", lambda: 24 << 30)
    monkeypatch.setenv("ROWMERGE_CORES", "2")
    room_for_source.cache_clear()
    try:
        assert room_for_source() == 3 << 29
    finally:
        room_for_source.cache_clear()
