"""The file of a lab's results: a header, and a line for each run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.trace.lab import LabRun, run_of_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.trace.lab import LabPoint

FORMAT: Final = 1


class LabFile:
    """The runs of a lab, which a later call continues.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for a file of other runs, or one that cannot be read.
    """

    def __init__(self, path: Path | None, header: Mapping[str, Any]) -> None:
        self._path = path
        self._header = {"rowmerge_nb_lab": FORMAT, **header}
        self.runs: dict[LabPoint, LabRun] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            text = path.read_text("utf-8")
            # The last line of a process that was killed may be incomplete.
            lines, end = text.split("\n")[:-1], text.rpartition("\n")[2]
            header = json.loads(lines[0])
            runs = [run_of_json(json.loads(line)) for line in lines[1:]]
        except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
            raise RowMergeError.invalid(
                f"The file '{path}' has no results of a lab: {error}",
                hint="Give another file, or one that does not exist.",
            ) from error
        if header != self._header:
            names = [name for name in self._header if header.get(name) != self._header[name]]
            raise RowMergeError.invalid(
                f"The file '{path}' has results of another lab: it differs in {', '.join(names)}",
                hint="Give another file, or the same statement and rows.",
            )
        self.runs = {run.point: run for run in runs}
        if end:
            path.write_text(text[: -len(end)], "utf-8")

    def add(self, run: LabRun) -> None:
        self.runs[run.point] = run
        if self._path is None:
            return
        is_new = not self._path.exists()
        try:
            with self._path.open("a", encoding="utf-8") as file:
                if is_new:
                    file.write(f"{json.dumps(self._header)}\n")
                file.write(f"{json.dumps(run.as_json())}\n")
        except OSError as error:
            raise RowMergeError(
                f"The results cannot be written to '{self._path}': {error.strerror or error}",
                code="PERMISSION_DENIED",
                hint="Give a file in a folder that exists and can be written.",
            ) from error
