"""Sessions on a PostgreSQL server: what they set, whatever the role, the database and the environment have set.

Everything that this connector sends is read with a search path of the server's own names. A statement that writes to a user's table also runs code
of that table: triggers, rules, defaults. That code is read as in any other session of the role, so its search path and other settings are restored
for the time of the statement. The text of such a statement therefore spells out the schemas of all names, operators included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.conninfo import SAFE_PATH
from rowmerge_nb.connectors.jdbc.database import Session, literal

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
"""What changes the meaning of SQL, or of the texts that come back; code of a user's table gets the role's own."""
_SESSION: Final = {
    "client_encoding": "UTF8",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    # One order of rows every time: no sharing of scans, no parallel workers. Nothing is left out.
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "gin_fuzzy_search_limit": "0",
    # A session is idle while Spark works.
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
}
"""What holds for the whole session. Servers that do not have a setting are not asked for it."""
_OWN_PATH: Final = re.compile(r"(?:-c\s*|--)search[_-]path=((?:\\.|\S)*)")
_USUAL_PATH: Final = '"$user", public'


class PostgresSession(Session):
    """A session whose statements mean the same for every role.

    Args:
        store: the database.
        connection: the driver's connection, which commits by itself.
        options: the options of the connection string or the environment.
    """

    def __init__(self, store: Store, connection: Any, options: str) -> None:
        super().__init__(store, connection)
        self._options = options

    def prepare(self) -> None:
        """Set what this connector relies on."""
        # A pooler may have left out the options of the connection string.
        self.execute(f"SELECT pg_catalog.set_config('search_path', {literal(SAFE_PATH)}, false)", "Connecting")
        # Waiting for others has an end.
        settings = {**_MEANING, **_SESSION, "lock_timeout": f"{LOCK_SECONDS}s"}
        values = ", ".join(f"({literal(name)}, {literal(value)})" for name, value in settings.items())
        # By a query, so that there is one round trip, and names that this server does not have are passed over.
        self.execute(
            f"SELECT set_config(s.name, v.value, false) FROM pg_settings s JOIN (VALUES {values}) v(name, value) ON v.name = s.name",
            "Connecting",
        )

    @cached_property
    def _own_path(self) -> str:
        """The search path that the role has in other sessions: of the connection, of role and database, or the usual one."""
        written = _OWN_PATH.findall(self._options)
        if written:
            return re.sub(r"\\(.)", r"\1", written[-1])
        rows = self.query(
            "SELECT c.setting FROM pg_db_role_setting s, unnest(s.setconfig) AS c(setting) "
            "WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) "
            "AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user)) AND c.setting LIKE 'search\\_path=%' "
            "ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1",
            "Asking for the search path",
        )
        return str(rows[0]["setting"]).partition("=")[2] if rows else _USUAL_PATH

    def use_own_settings(self) -> None:
        """Restore the settings of the role for the code of a user's table, until the transaction ends or they are taken back."""
        names = ", ".join(map(literal, ("search_path", *_MEANING)))
        self.execute(
            f"SELECT set_config(name, CASE name WHEN 'search_path' THEN {literal(self._own_path)} ELSE reset_val END, true) "
            f"FROM pg_settings WHERE name IN ({names})"
        )

    @contextmanager
    def own_settings(self) -> Iterator[None]:
        """Run a statement with the settings of the role; its names must all be spelled out. An open transaction is needed."""
        self.use_own_settings()
        yield
        # After an error nothing is to be taken back: the settings end with the transaction, or with its savepoint.
        taken = (("search_path", SAFE_PATH), *_MEANING.items())
        self.execute(f"SELECT {', '.join(f'pg_catalog.set_config({literal(n)}, {literal(v)}, true)' for n, v in taken)}")
