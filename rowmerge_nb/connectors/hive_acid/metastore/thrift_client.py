"""Connections, errors and heartbeats of a Hive Metastore."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from rowmerge_nb.base.errors import ConnectorError, RowMergeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TIMEOUT_MILLISECONDS: Final = 60_000
_DEFAULT_PORT: Final = "9083"
_ENDED: Final = (ttypes.NoSuchTxnException, ttypes.TxnAbortedException, ttypes.NoSuchLockException)
LOST: Final = (TTransportException, ConnectionError, TimeoutError)
"""Errors of a lost answer: the call may have taken effect."""
AGAIN: Final = "Run the statement again."


def conflict(message: str) -> ConnectorError:
    return ConnectorError(message, code="TRANSACTION_CONFLICT", hint=AGAIN)


class MetastoreClients:
    """Opens one connection per call, which is never stale.

    Args:
        uri: ``thrift://host:port``; several, separated by commas, are tried in order.

    >>> MetastoreClients("thrift://hms:9083,thrift://standby").addresses
    (('hms', 9083), ('standby', 9083))
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.addresses = tuple(_address(part.strip()) for part in uri.split(","))

    @contextmanager
    def connected(self, request: str) -> Iterator[Any]:
        transport = self._open()
        try:
            yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        except _ENDED as error:
            raise conflict(_words(error)) from error
        except LOST as error:
            raise self._unreachable(error) from error
        except TException as error:
            raise ConnectorError(
                f"The Hive Metastore {self.uri} refuses to {request}: {_words(error)}",
                code="HIVE_METASTORE_ERROR",
                hint="Its log says more."
                + (
                    " Its version may lack this call."
                    if isinstance(error, TApplicationException)
                    else ""
                ),
            ) from error
        except RowMergeError:
            raise
        except Exception as error:
            # Answers of another or a damaged service raise any error, in the decoder or in code
            # that uses them.
            raise ConnectorError(
                f"The Hive Metastore {self.uri} was asked to {request}, and its answer"
                f" is invalid: {error!r}",
                code="HIVE_METASTORE_ERROR",
                hint=(
                    "Check that the address is that of its Thrift service, and that"
                    " the statement's values are within its limits."
                ),
            ) from error
        finally:
            transport.close()

    def _open(self) -> Any:
        failures: list[Exception] = []
        for host, port in self.addresses:
            socket = TSocket(host, port)
            socket.setTimeout(_TIMEOUT_MILLISECONDS)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except (TTransportException, OSError) as error:
                failures.append(error)
                continue
            return transport
        raise self._unreachable(failures[-1]) from failures[-1]

    def _unreachable(self, error: Exception) -> ConnectorError:
        return ConnectorError(
            f"The Hive Metastore {self.uri} does not answer: {_words(error)}",
            code="HIVE_METASTORE_ERROR",
            hint=(
                "Check that the metastore is running and that host and port are those of its Thrift"
                " service."
            ),
        )


def _address(uri: str) -> tuple[str, int]:
    host, _, port = uri.removeprefix("thrift://").rstrip("/").partition(":")
    if not uri.startswith("thrift://") or not host or not (port or _DEFAULT_PORT).isdigit():
        raise ConnectorError.invalid(
            f"The address of a metastore is thrift://host:port, not {uri!r}",
            hint="Write HiveAcidConnector(metastore='thrift://localhost:9083').",
        )
    return host, int(port or _DEFAULT_PORT)


def _words(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", None) or error).split())


class Heartbeats:
    """Keeps transactions alive in a metastore, which otherwise aborts them after some minutes."""

    def __init__(self, beat: Callable[[int], None], seconds: float) -> None:
        self._beat = beat
        self._seconds = seconds
        self._alive: set[int] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, transaction: int) -> None:
        with self._changed:
            self._alive.add(transaction)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="hive-metastore-heartbeat", daemon=True
                )
                self._thread.start()

    def end(self, transaction: int) -> None:
        with self._changed:
            self._alive.discard(transaction)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._alive:
                    self._changed.wait(self._seconds)
                if not self._alive:
                    self._thread = None
                    return
                alive = sorted(self._alive)
            for transaction in alive:
                try:
                    self._beat(transaction)
                except ConnectorError as error:
                    # The commit of an ended transaction raises; an unreachable server may come
                    # back.
                    if error.code == "TRANSACTION_CONFLICT":
                        self.end(transaction)
