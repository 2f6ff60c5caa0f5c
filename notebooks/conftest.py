"""Which notebooks are tested, and in which kernel."""

from __future__ import annotations

import functools
import importlib.util
import queue
from typing import Any

import pytest

_PLUGIN_NOTEBOOK = "13_a_trino_plugin.ipynb"


@functools.cache
def _missing_plugin() -> str:
    """Return what the notebook of a plugin lacks here; nothing is downloaded by a test."""
    if importlib.util.find_spec("jpype") is None:
        return "JPype is not installed (the extra trino)"
    from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates
    from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets

    if JarSets().find(Coordinates("io.trino", "trino-iceberg", "483")) is None:
        return "the cache of Maven coordinates has no trino-iceberg 483"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the notebook with the reason."""
    for item in items:
        if item.path.name == _PLUGIN_NOTEBOOK and (reason := _missing_plugin()):
            item.add_marker(pytest.mark.skip(reason=reason))


_CLEANUP = """
def clean_up():
    import sys
    from rowmerge_nb import default
    from rowmerge_nb.engine.spark import spark_session
    shell = get_ipython()
    # Spark lives until the last session ends.
    if not hasattr(spark_session, "kept_session"):
        spark_session.kept_session = spark_session.create_session()
    if (engine := default.existing_engine()) is not None:
        engine.close()
    if "rowmerge_nb" in shell.extension_manager.loaded:
        shell.extension_manager.unload_extension("rowmerge_nb")
    if "pandas" in sys.modules:
        sys.modules["pandas"].reset_option("^display")
    shell.reset(new_session=False)
clean_up()
"""
"""Leaves a kernel as it was at its start, except for Spark and loaded modules."""

_idle: list[Any] = []
"""The kernel that the next notebook of this process takes over."""


def pytest_configure(config: pytest.Config) -> None:
    """Let the notebooks of a process share a kernel, except with ``--long``: Java starts once."""
    if not config.pluginmanager.has_plugin("nbval") or config.getoption("--long", default=False):
        return
    from nbval import plugin
    from nbval.kernel import RunningKernel

    class SharedKernel(RunningKernel):  # type: ignore[misc]
        def stop(self) -> None:
            try:
                cleanup = self.execute_cell_input(_CLEANUP)
                self.await_reply(cleanup, timeout=60)
                self.await_idle(cleanup, 60)
            except (queue.Empty, RuntimeError):
                self.end()
            else:
                _idle[:] = [self]

        def end(self) -> None:
            super().stop()

    def kernel(*arguments: Any, **options: Any) -> SharedKernel:
        return _idle.pop() if _idle else SharedKernel(*arguments, **options)

    plugin.RunningKernel = kernel


def pytest_unconfigure() -> None:
    """End the kernel."""
    for kernel in _idle:
        kernel.end()
