"""Saved audits: JSON files, readable only by their owner."""

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
    # ASCII, because a text may hold a lone surrogate, which UTF-8 cannot encode.
    write_private(path, json.dumps({FORMAT: encoded(audit)}).encode("ascii"), "The audit")


def load_audit(path: str | Path, *, most_bytes: int | None = None) -> Audit:
    """Open a file written by `Audit.save`; see `load_trace`.

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
