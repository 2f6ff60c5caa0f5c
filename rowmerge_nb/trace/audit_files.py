"""Saving an audit and opening it again: a JSON file that only its owner can read, since it holds rows. Needs no Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.errors import RowMergeError, error_text
from rowmerge_nb.trace.audit import Audit
from rowmerge_nb.trace.files import checked_file, read_file, write_private
from rowmerge_nb.trace.schema import TraceSchemaError, decoded_as, encoded

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMAT", "load_audit", "save_audit"]

FORMAT: Final = "rowmerge_nb audit 1"


def save_audit(audit: Audit, path: str | Path) -> None:
    """Write an audit to a file, all of it or nothing; see `Audit.save`."""
    # In ASCII: a text may hold half a character that UTF-8 has no form for.
    write_private(path, json.dumps({FORMAT: encoded(audit)}).encode("ascii"), "The audit")


def load_audit(path: str | Path) -> Audit:
    """Open a saved audit.

    Args:
        path: the file that `Audit.save` has written.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if there is no such file, or if it is not an audit of this format; the message names the place
            in it.

    >>> import tempfile, os
    >>> from rowmerge_nb.trace.audit import AuditCounts
    >>> file = os.path.join(tempfile.mkdtemp(), "orders.audit")
    >>> counts = AuditCounts(3, 2, 1, 0, 1, 0, 0, 0)
    >>> Audit("DELETE FROM t WHERE id = 1", "DELETE", "m.s.t", "version 1", "version 2", counts, (), (("id", "bigint"),)).save(file)
    >>> load_audit(file).sentence, oct(os.stat(file).st_mode & 0o777)
    ('AGREES: m.s.t holds the 2 rows that this DELETE leaves.', '0o600')
    """
    try:
        content = json.loads(read_file(checked_file(path)).decode("utf-8"))
        return _shown(decoded_as(_of_this_format(content), Audit))
    except TraceSchemaError as error:
        wrong = str(error)
    except OSError as error:
        wrong = error.strerror or str(error)
    except RecursionError:
        wrong = "it is nested too deeply"
    except ValueError as error:
        wrong = f"it is cut short, or is something else than an audit ({error})"
    msg = f"'{path}' cannot be opened as an audit: {wrong}"
    raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=f"Write one with audit.save(...); this version reads '{FORMAT}'.")


def _shown(audit: Audit) -> Audit:
    """See that a report can be made of an audit: every part may be as it should be, and the parts not go together."""
    from rowmerge_nb.report.audit import audit_bundle

    try:
        audit_bundle(audit)
    except Exception as error:
        wrong = f"its parts do not go together: {error_text(error)[:200]}"
        raise TraceSchemaError(path="$", wrong=wrong) from error
    return audit


def _of_this_format(content: Any) -> Any:
    """Give what is kept under the format's name."""
    keys = list(content) if isinstance(content, dict) else []
    if keys == [FORMAT]:
        return content[FORMAT]
    start = FORMAT[: FORMAT.rindex(" ")]
    key = next((key for key in keys if key.startswith(start)), None)
    wrong = f"it is of the format '{key[:80]}'" if key is not None else "it is something else than an audit"
    raise TraceSchemaError(path="$", wrong=wrong)
