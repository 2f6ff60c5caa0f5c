"""Hidden files that the driver writes into stores, so that tasks can verify that they see the same
store.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from rowmerge_nb.connectors.shared.orphans import has_died, orphaned_path, this_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.spi.connector import Orphan

PREFIX: Final = ".rowmerge_nb-mark-"


@dataclass(frozen=True)
class Mark:
    """A file in a store's directory; its content identifies statement and process."""

    path: Path
    content: str

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def put_mark(directory: Path, query_id: str) -> Mark | None:
    mark = Mark(directory / f"{PREFIX}{uuid4().hex}", f"{query_id}\n{this_process()}\n")
    try:
        mark.path.write_text(mark.content, encoding="utf-8")
    except OSError:
        with suppress(OSError):
            mark.remove()
        return None
    return mark


def orphaned_marks(directory: Path, *, remove: bool) -> Iterator[Orphan]:
    for path in sorted(directory.glob(f"{PREFIX}*")):
        with suppress(OSError, ValueError):
            statement, process = path.read_text(encoding="utf-8").splitlines()
            if has_died(process):
                orphan = orphaned_path(path, statement, process)
                if remove:
                    path.unlink(missing_ok=True)
                yield orphan
