"""Statements for a Trino server, by its client protocol."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from rowmerge_nb.base.errors import SetupError

__all__ = ["TrinoAnswer", "TrinoClient", "TrinoError"]

_SECONDS: Final = 120
_PAUSE: Final = 0.1
_BUSY: Final = frozenset({502, 503, 504})
"""Status codes after which a client retries."""


class TrinoError(Exception):
    """Trino's error of a failed statement."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code: str = error.get("errorName", "")
        self.message: str = error.get("message", "")
        super().__init__(f"{self.code}: {self.message}")


@dataclass(frozen=True)
class TrinoAnswer:
    """The result of a statement: its rows as JSON, and the number of changed rows."""

    rows: list[list[Any]]
    count: int | None


class TrinoClient:
    """Sends statements to a server, one after the other.

    Args:
        url: the server and a writable catalog: ``http://user@127.0.0.1:8080/iceberg``.

    >>> TrinoClient("http://me@127.0.0.1:8080/iceberg").catalog
    'iceberg'
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.catalog = parts.path.strip("/")
        if (
            parts.scheme not in {"http", "https"}
            or not parts.hostname
            or not self.catalog
            or "/" in self.catalog
        ):
            raise SetupError(
                f"Not the URL of a catalog of a Trino server: {url}",
                hint="It is written like http://user@127.0.0.1:8080/iceberg.",
            )
        address = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
        self._statements = f"{parts.scheme}://{address}/v1/statement"
        self._headers = {
            "X-Trino-User": unquote(parts.username or "rowmerge"),
            "X-Trino-Catalog": self.catalog,
            "X-Trino-Time-Zone": "UTC",
            # Without it, timestamps are truncated to milliseconds.
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
            "Content-Type": "text/plain; charset=utf-8",
        }

    def use(self, schema: str) -> None:
        """Set the schema of unqualified names."""
        self._headers["X-Trino-Schema"] = schema

    def run(self, sql: str) -> TrinoAnswer:
        """Run a statement to its end.

        Raises:
            TrinoError: it failed.
            SetupError: the server is not reachable.
        """
        rows: list[list[Any]] = []
        answer = self._asked(self._statements, sql.encode())
        while True:
            rows += answer.get("data", ())
            if "error" in answer:
                raise TrinoError(answer["error"])
            if "nextUri" not in answer:
                return TrinoAnswer(rows, answer.get("updateCount"))
            answer = self._asked(answer["nextUri"])

    def _asked(self, url: str, body: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(url, body, self._headers)  # noqa: S310 - http or https, as the constructor has seen
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - as above
                    return json.load(answer)  # type: ignore[no-any-return]
            except urllib.error.HTTPError as error:
                if error.code not in _BUSY:
                    raise
                time.sleep(_PAUSE)
            except urllib.error.URLError as error:
                raise SetupError(
                    f"No Trino server answers at {self._statements}: {error.reason}",
                    hint="Start one, or leave --trino out.",
                ) from error
