"""An unmodified connector plugin of Trino, written in Java, as a store of this engine.

The plugin runs in processes of its own: one for metadata, and one that Spark's tasks share.
"""

from __future__ import annotations

import importlib.util
import os
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from rowmerge_nb.base.arguments import checked, checked_name
from rowmerge_nb.base.errors import ConnectorError, SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.shared.arguments import is_names
from rowmerge_nb.connectors.shared.properties import property_text
from rowmerge_nb.connectors.trino.host_process import PROGRAM, HostEnd
from rowmerge_nb.connectors.trino.java_homes import find_java_home
from rowmerge_nb.connectors.trino.java_sources import JavaSources
from rowmerge_nb.connectors.trino.plugin_hosts import PluginHosts
from rowmerge_nb.connectors.trino.plugin_source import PluginJars, read_catalog_file
from rowmerge_nb.connectors.trino.trino_metadata import TrinoMetadata
from rowmerge_nb.connectors.trino.trino_partitioning import TrinoNodePartitioningProvider
from rowmerge_nb.connectors.trino.trino_scans import TrinoPageSourceProvider, TrinoSplitManager
from rowmerge_nb.connectors.trino.trino_sinks import TrinoPageSinkProvider
from rowmerge_nb.connectors.trino.trino_transactions import TrinoTransaction
from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.transactions import NumberedTransactionHandle, Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from rowmerge_nb.spi.handles import ConnectorTransactionHandle
    from rowmerge_nb.trace.raised import CodeLines

Path = str | os.PathLike[str]


class TrinoConnector(Connector):
    """A connector plugin of Trino.

    Java starts with the first statement. Rebuilt jars are used by the next statement.

    Args:
        name: the name of the plugin's connector factory, as ``connector.name`` in a catalog
            file: ``"iceberg"``.
        plugin: the folder with the plugin's jars, or several folders and jars.
        trino: the folder with the jars of trino-main, the ``lib`` of a server, or Maven
            coordinates such as ``"io.trino:trino-main:483"``; with ``maven``, by default the
            version that the plugin was built with.
        maven: instead of ``plugin``, the plugin's Maven coordinates, such as
            ``"io.trino:trino-iceberg:483"``. Its jars are downloaded once, into a cache.
        properties: the catalog's properties, as in a catalog file.
        session: the plugin's session properties.
        java: the folder of a JDK 25 or later, or of 17 to 22 for versions of Trino before 436; by
            default the one that the variables TRINO_JAVA_HOME and JAVA_HOME name, or an installed
            one.
        java_options: further options of Java, such as ``"-Xmx2g"``.
        plugin_class: the class that implements Trino's Plugin, if several do.
        sources: the plugin's source text, for the lines in reports of errors: a jar of sources or
            a folder, or several of them.
        processes: 2, for metadata and for tasks, as on a coordinator and a worker; or 1 for a
            plugin that keeps its rows in memory and works on a server of one node only.

    Raises:
        SetupError: there are no such jars or no such JDK, or JPype is not installed.

    >>> TrinoConnector("iceberg", plugin="no/such/folder", trino="lib")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.SetupError: CONFIGURATION_UNAVAILABLE: plugin = '...' is not a folder. Name a folder such as 'trino/plugin/iceberg'.
    """

    name = "trino"
    starts_slowly = True

    _program: ClassVar[str] = PROGRAM

    def __init__(
        self,
        name: str,
        *,
        plugin: Path | Sequence[Path] | None = None,
        trino: Path | None = None,
        maven: str | None = None,
        properties: Mapping[str, Any] | None = None,
        session: Mapping[str, Any] | None = None,
        java: Path | None = None,
        java_options: Sequence[str] = (),
        plugin_class: str | None = None,
        sources: Path | Sequence[Path] | None = None,
        processes: int = 2,
    ) -> None:
        self.connector_name = checked_name(name, "name", "connector factory")
        self.properties = {
            str(key): property_text(value)
            for key, value in checked(properties or {}, "properties", dict, "a dict").items()
        }
        self.session_properties = dict(checked(session or {}, "session", dict, "a dict"))
        if processes not in (1, 2):
            raise SetupError(f"processes = {processes!r} is not 1 or 2", hint="Omit the argument.")
        checked(java_options, "java_options", is_names, "a list of options such as ['-Xmx2g']")
        jars = PluginJars(plugin, trino, maven)
        self._trino_version = jars.trino_version
        self._java = java
        # Before a download, which may be large.
        self._settings: dict[str, Any] = {}
        self._check_machine()
        paths, engine = jars.load()
        self._settings |= {
            "engine": str(engine),
            "plugin": str(paths[0]) if len(paths) == 1 else [str(path) for path in paths],
            "connector": self.connector_name,
            "plugin_class": plugin_class,
            "catalog": self.connector_name,
            "properties": self.properties,
            "java_options": list(java_options),
        }
        self._sources = JavaSources(sources)
        self._transactions = Transactions[TrinoTransaction](self.name)
        self.hosts = PluginHosts(
            self._settings.copy,
            paths,
            count=processes,
            program=self._program,
        )
        self._finalizer = weakref.finalize(self, self.hosts.close)

    @classmethod
    def from_catalog_file(cls, path: Path, **arguments: Any) -> TrinoConnector:
        """Return the connector of a catalog file, such as ``etc/catalog/ice.properties``.

        Raises:
            SetupError: the file is unreadable, or as in the class.
        """
        properties = read_catalog_file(path)
        return cls(properties.pop("connector.name"), properties=properties, **arguments)

    def _check_machine(self) -> None:
        if importlib.util.find_spec("jpype") is None:
            raise SetupError(
                "A plugin of Trino needs JPype, which is not installed",
                hint=f"Run: {install_command('trino')}",
            )
        self._settings["java_home"] = str(find_java_home(self._java, self._trino_version).folder)

    # -- contract

    @property
    def commits_in_finish(self) -> bool:  # type: ignore[override]
        """Whether finish calls take effect at once, as Trino expects of every plugin whose
        ``isSingleStatementWritesOnly`` is true; this starts the plugin.
        """
        return bool(self.hosts.greeting().get("commits_in_finish", True))

    def begin_transaction(self) -> NumberedTransactionHandle:
        """Begin a transaction; the plugin's begins with its first use."""
        return self._transactions.begin(
            lambda number: TrinoTransaction(number, self.hosts, self.session_properties)
        )

    def transaction_of(self, transaction_handle: ConnectorTransactionHandle) -> TrinoTransaction:
        return self._transactions.of(transaction_handle)

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> None:
        number = self._transactions.number(transaction_handle)
        transaction = self._transactions[number]
        transaction.commit(commits_in_finish=self.commits_in_finish)
        self._transactions.pop(number, None)

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        number = self._transactions.number(transaction_handle)
        transaction = self._transactions.pop(number, None)
        if transaction is not None:
            transaction.rollback()

    def abandon(self, transaction_handle: ConnectorTransactionHandle) -> None:
        number = self._transactions.number(transaction_handle)
        if (transaction := self._transactions.pop(number, None)) is not None:
            transaction.abandon()

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> TrinoMetadata:
        transaction = self.transaction_of(transaction_handle)
        return TrinoMetadata(transaction, self.connector_name, self.properties)

    def get_split_manager(self) -> TrinoSplitManager:
        return TrinoSplitManager(self)

    def get_page_source_provider(self) -> TrinoPageSourceProvider:
        return TrinoPageSourceProvider(self.hosts.socket_of_tasks())

    def get_page_sink_provider(self) -> TrinoPageSinkProvider:
        return TrinoPageSinkProvider(self.hosts.socket_of_tasks())

    def get_node_partitioning_provider(self) -> TrinoNodePartitioningProvider:
        return TrinoNodePartitioningProvider(self.hosts.socket_of_tasks())

    def get_table_properties(self) -> Mapping[str, Any]:
        """Return the plugin's table properties; this starts the plugin."""
        return {
            each["name"]: each.get("description") or each.get("type") or ""
            for each in self.hosts.coordinator().hello().get("table_properties") or ()
        }

    def get_source_lines(self, file: str, function: str, line: int) -> CodeLines:
        return self._sources.lines_around(file, function, line)

    def watch_processes(self, *, changes: bool) -> Callable[[], ConnectorError | None]:
        """Return a function that returns the error of an ended process: that of the tasks, or that
        of the coordinator if a table is changed.
        """
        hosts = self.hosts.running
        ends = [HostEnd(host) for host in (hosts if changes else hosts[-1:])]
        return lambda: next(filter(None, (end.find() for end in ends)), None)

    def describe_plugin(self) -> Mapping[str, Any] | None:
        """Return the plugin's class, and the version and features of its SPI, for a test in Java;
        None if the plugin has not started.
        """
        hosts = [host for host in self.hosts.running if host.has_greeted]
        # The start may have failed.
        with suppress(ConnectorError):
            for host in hosts:
                greeting = host.hello()
                return {
                    "plugin_class": greeting["class"],
                    "version": greeting["trino"],
                    "features": greeting["features"],
                }
        return None

    @property
    def keeps_rows_in_process(self) -> bool:
        """Whether tables end with the plugin's process."""
        return self.hosts.is_single

    def debugging(self, port: int, *, coordinator: bool = False) -> AbstractContextManager[None]:
        """Make the calls of tasks, or of the coordinator, in a process with a debugger of Java."""
        return self.hosts.debugging(port, coordinator=coordinator)

    def close(self) -> None:
        self._finalizer()
        self.hosts.close()
