"""The process that forks Python workers, and the environment of these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

from rowmerge_nb.engine.spark.worker import without_archives

SPARK = Path(pyspark.__file__).parent
INSTALLED = str(SPARK.parent)
ARCHIVES = [str(SPARK / "python" / "lib" / "pyspark.zip"), str(SPARK / "jars" / "spark-core.jar")]


def test_sparks_own_archives_are_omitted_if_its_pyspark_is_installed(tmp_path: Path) -> None:
    users = str(tmp_path / "users.zip")
    assert without_archives(["", *ARCHIVES, users, INSTALLED], str(SPARK)) == ["", users, INSTALLED]


@pytest.mark.parametrize(
    "libraries", [[], ["pyspark"], ["py4j"], ["pyspark", "py4j"]], ids="-".join
)
def test_they_stay_with_no_pyspark_or_another_one(tmp_path: Path, libraries: list[str]) -> None:
    for library in libraries:
        (tmp_path / library).mkdir()
        (tmp_path / library / "__init__.py").touch()
    path = [*ARCHIVES, str(tmp_path)]
    assert without_archives(path, str(SPARK)) == path
    assert without_archives(path, "") == path


def test_a_worker_has_spark_from_its_installation_and_the_modules_of_tasks_before_its_first_request(
    spark: Any,
) -> None:
    def look(pages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc
        import sys

        loaded = [
            name
            for name in ("pyspark.worker", "rowmerge_nb.engine.tasks.merge_passes")
            if name in sys.modules
        ]
        places = [str(sys.modules[name].__file__) for name in loaded]
        archives = [
            entry
            for entry in {*sys.path, *sys.path_importer_cache}
            if "pyspark" in entry and entry.endswith((".zip", ".jar"))
        ]
        list(pages)
        yield pa.RecordBatch.from_pydict(
            {
                "places": [places],
                "archives": [archives],
                "frozen": [gc.get_freeze_count()],
                "collects": [gc.isenabled()],
            }
        )

    (row,) = (
        spark.range(1)
        .repartition(1)
        .mapInArrow(
            look, "places array<string>, archives array<string>, frozen bigint, collects boolean"
        )
        .collect()
    )
    assert [Path(place).name for place in row.places] == ["worker.py", "merge_passes.py"]
    assert Path(row.places[0]).parent.resolve() == SPARK.resolve()
    assert row.archives == []
    assert row.collects
    assert row.frozen > 10_000
