"""Saving an audit and opening it again: a JSON file that only its owner can read, since it holds rows. Needs no Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rowmerge_nb.trace.audit import Audit
from rowmerge_nb.trace.saved.files import FileFormat, checked_drawing, read_json, write_private
from rowmerge_nb.trace.saved.schema import decoded_as, encoded

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = "rowmerge_nb audit 1"
AUDIT_FILE: Final = FileFormat(FORMAT, "an audit", "audit.save(...)")


def save_audit(audit: Audit, path: str | Path) -> None:
    """Write an audit to a file, all of it or nothing; see `Audit.save`."""
    # In ASCII: a text may hold half a character that UTF-8 has no form for.
    write_private(path, json.dumps({FORMAT: encoded(audit)}).encode("ascii"), "The audit")


def load_audit(path: str | Path, *, most_bytes: int | None = None) -> Audit:
    """Open a saved audit.

    Args:
        path: the file that `Audit.save` has written.
        most_bytes: the memory that opening may take, in bytes; by default 32 times the size of the file, at least 64 MiB and at most 4 GiB.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if there is no such file, if it would take more memory than it may, or if it is not an audit of this format; the message names the place
            in it.

    >>> import tempfile, os
    >>> from rowmerge_nb.trace.audit import AuditCounts
    >>> file = os.path.join(tempfile.mkdtemp(), "orders.audit")
    >>> counts = AuditCounts(3, 2, 1, 0, 1, 0, 0, 0)
    >>> Audit("DELETE FROM t WHERE id = 1", "DELETE", "m.s.t", "version 1", "version 2", counts, (), (("id", "bigint"),)).save(file)
    >>> load_audit(file).sentence, oct(os.stat(file).st_mode & 0o777)
    ('AGREES: m.s.t holds the 2 rows that this DELETE leaves.', '0o600')
    """
    return AUDIT_FILE.opened(path, _read, most_bytes)


def _read(content: bytes) -> Audit:
    from rowmerge_nb.report.audit_report import audit_bundle

    return checked_drawing(decoded_as(AUDIT_FILE.inside(read_json(content)), Audit), audit_bundle)
