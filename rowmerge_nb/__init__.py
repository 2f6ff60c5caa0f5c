"""Row-level SQL MERGE on Spark in Jupyter, executed as Trino executes it, and shown step by step.

::

    %load_ext rowmerge_nb          # in a notebook: the magics %%merge and %merge

    import rowmerge_nb as rm       # in a program
    engine = rm.Engine()
    engine.register("accounts", frame)
    print(engine.run("MERGE INTO accounts USING ..."))

This page lists the public API. Names are loaded at first use: importing the package starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.lazy import at_first_use

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from rowmerge_nb.base.errors import AnalysisError as AnalysisError
    from rowmerge_nb.base.errors import ConnectorError as ConnectorError
    from rowmerge_nb.base.errors import DuplicateMatchError as DuplicateMatchError
    from rowmerge_nb.base.errors import ExecutionError as ExecutionError
    from rowmerge_nb.base.errors import ParseError as ParseError
    from rowmerge_nb.base.errors import RowMergeError as RowMergeError
    from rowmerge_nb.base.errors import SetupError as SetupError
    from rowmerge_nb.base.errors import StatementInterrupted as StatementInterrupted
    from rowmerge_nb.connectors.delta.delta_connector import DeltaConnector as DeltaConnector
    from rowmerge_nb.connectors.hive_acid.hive_connector import (
        HiveAcidConnector as HiveAcidConnector,
    )
    from rowmerge_nb.connectors.iceberg.iceberg_connector import (
        IcebergConnector as IcebergConnector,
    )
    from rowmerge_nb.connectors.jdbc.postgresql.postgres_connector import (
        PostgresConnector as PostgresConnector,
    )
    from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import (
        SqliteConnector as SqliteConnector,
    )
    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector as MemoryConnector
    from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector as TrinoConnector
    from rowmerge_nb.default import audit as audit
    from rowmerge_nb.default import default_engine as default_engine
    from rowmerge_nb.default import lab as lab
    from rowmerge_nb.default import layouts as layouts
    from rowmerge_nb.default import restore as restore
    from rowmerge_nb.default import run as run
    from rowmerge_nb.default import undo as undo
    from rowmerge_nb.engine.api.result import Result as Result
    from rowmerge_nb.engine.engine import Engine as Engine
    from rowmerge_nb.engine.observers.observer import ObservedStatement as ObservedStatement
    from rowmerge_nb.engine.observers.observer import Observer as Observer
    from rowmerge_nb.machine import doctor as doctor
    from rowmerge_nb.replays.run import replay as replay
    from rowmerge_nb.spi.connector import Connector as Connector
    from rowmerge_nb.spi.operations import Era as Era
    from rowmerge_nb.spi.operations import Operation as Operation
    from rowmerge_nb.spi.operations import RowChangeParadigm as RowChangeParadigm
    from rowmerge_nb.trace.record import Record as Record
    from rowmerge_nb.trace.saved.audits import load_audit as load_audit
    from rowmerge_nb.trace.saved.records import load_record as load_record
    from rowmerge_nb.trace.saved.traces import load_trace as load_trace
    from rowmerge_nb.trace.saved.traces import save_trace as save_trace
    from rowmerge_nb.trace.trace import Trace as Trace
    from rowmerge_nb.trace.trino_query import trino_query as trino_query

__version__ = "0.1.0"

_HOMES = {
    "AnalysisError": "errors",
    "Connector": "spi.connector",
    "ConnectorError": "errors",
    "DuplicateMatchError": "errors",
    "Engine": "engine.engine",
    "Era": "spi.operations",
    "ExecutionError": "errors",
    "HiveAcidConnector": "connectors.hive_acid.hive_connector",
    "DeltaConnector": "connectors.delta.delta_connector",
    "IcebergConnector": "connectors.iceberg.iceberg_connector",
    "MemoryConnector": "connectors.memory.memory_connector",
    "ObservedStatement": "engine.observers.observer",
    "Observer": "engine.observers.observer",
    "Operation": "spi.operations",
    "ParseError": "errors",
    "PostgresConnector": "connectors.jdbc.postgresql.postgres_connector",
    "Record": "trace.record",
    "Result": "engine.api.result",
    "RowChangeParadigm": "spi.operations",
    "RowMergeError": "errors",
    "SetupError": "errors",
    "SqliteConnector": "connectors.jdbc.sqlite.sqlite_connector",
    "StatementInterrupted": "errors",
    "Trace": "trace.trace",
    "TrinoConnector": "connectors.trino.trino_connector",
    "audit": "default",
    "default_engine": "default",
    "doctor": "machine",
    "lab": "default",
    "layouts": "default",
    "load_audit": "trace.saved.audits",
    "load_record": "trace.saved.records",
    "load_trace": "trace.saved.traces",
    "replay": "replays.run",
    "restore": "default",
    "run": "default",
    "save_trace": "trace.saved.traces",
    "trino_query": "trace.trino_query",
    "undo": "default",
}

__all__ = sorted([*_HOMES, "load_ipython_extension", "unload_ipython_extension"])  # noqa: PLE0605 - one list of names, not two


__getattr__, __dir__ = at_first_use(__name__, _HOMES)


def load_ipython_extension(ipython: InteractiveShell) -> None:
    """Register the magics: ``%load_ext rowmerge_nb``."""
    from rowmerge_nb.notebook.magics import register

    register(ipython)


def unload_ipython_extension(ipython: InteractiveShell) -> None:
    """Unregister the magics: ``%unload_ext rowmerge_nb``."""
    from rowmerge_nb.notebook.magics import unregister

    unregister(ipython)
