"""Sessions on a PostgreSQL server, independent of settings by role, database and environment.

A statement that writes to a user's table runs its triggers, rules and defaults, which expect the
role's own settings. These are restored for that statement, so its SQL qualifies all names,
including operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.conninfo import SAFE_PATH
from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.connectors.jdbc.database import DatabaseSession

if TYPE_CHECKING:
    from rowmerge_nb.connectors.jdbc.database import Store

LOCK_SECONDS: Final = 30

_MEANING: Final = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "quote_all_identifiers": "off",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "xmloption": "content",
}
"""Settings that change the meaning of SQL or of returned texts; code of a user's table gets the
role's own.
"""
_SESSION: Final = {
    "client_encoding": "UTF8",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    # The same order of rows every time: no shared scans, no parallel workers, no omitted rows.
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "gin_fuzzy_search_limit": "0",
    # A session is idle while Spark works.
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
}
"""Settings of the whole session, if the server has them."""
_OWN_PATH: Final = re.compile(r"(?:-c\s*|--)search[_-]path=((?:\\.|\S)*)")
_USUAL_PATH: Final = '"$user", public'


class PostgresSession(DatabaseSession):
    """A session whose statements mean the same for every role."""

    def __init__(self, store: Store, connection: Any, options: str) -> None:
        super().__init__(store, connection)
        self._options = options

    def prepare(self) -> None:
        # A pooler may have dropped the options of the connection string.
        self.execute(
            f"SELECT pg_catalog.set_config('search_path', {quoted_text(SAFE_PATH)}, false)",
            "Connecting",
        )
        # Waits for locks must end.
        settings = {**_MEANING, **_SESSION, "lock_timeout": f"{LOCK_SECONDS}s"}
        values = ", ".join(
            f"({quoted_text(name)}, {quoted_text(value)})" for name, value in settings.items()
        )
        # A query needs one round trip, and ignores settings that the server does not have.
        self.execute(
            f"SELECT set_config(s.name, v.value, false) FROM pg_settings s JOIN (VALUES {values})"
            " v(name, value) ON v.name = s.name",
            "Connecting",
        )

    @cached_property
    def _own_path(self) -> str:
        paths = _OWN_PATH.findall(self._options)
        if paths:
            return re.sub(r"\\(.)", r"\1", paths[-1])
        rows = self.query(
            "SELECT c.setting FROM pg_db_role_setting s, unnest(s.setconfig) AS c(setting) WHERE"
            " s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname ="
            " current_database())) AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname ="
            " session_user)) AND c.setting LIKE 'search\\_path=%' ORDER BY s.setrole <> 0 DESC,"
            " s.setdatabase <> 0 DESC LIMIT 1",
            "Asking for the search path",
        )
        return str(rows[0]["setting"]).partition("=")[2] if rows else _USUAL_PATH

    def use_own_settings(self) -> None:
        """Restore the role's settings, until the transaction ends or they are reset."""
        names = ", ".join(map(quoted_text, ("search_path", *_MEANING)))
        self.execute(
            f"SELECT set_config(name, CASE name WHEN 'search_path' THEN {quoted_text(self._own_path)}"
            f" ELSE reset_val END, true) FROM pg_settings WHERE name IN ({names})"
        )

    @contextmanager
    def own_settings(self) -> Iterator[None]:
        self.use_own_settings()
        yield
        # After an error nothing must be reset: the settings end with the transaction or savepoint.
        settings = (("search_path", SAFE_PATH), *_MEANING.items())
        self.execute(
            "SELECT"
            f" {', '.join(f'pg_catalog.set_config({quoted_text(n)}, {quoted_text(v)}, true)' for n, v in settings)}"
        )
