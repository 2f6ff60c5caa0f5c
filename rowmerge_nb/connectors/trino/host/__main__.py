"""The program of a host process.

``python -m rowmerge_nb.connectors.trino.host --socket PATH --settings FILE``

When it listens, it prints one line of JSON: ``{"ready": {...}}`` or ``{"error": {...}}``. It ends
when its standard input ends, so it never outlives the process that started it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from rowmerge_nb.connectors.trino.host.java_errors import describe_error
from rowmerge_nb.connectors.trino.host.jvm import start_java
from rowmerge_nb.connectors.trino.host.plugin_loading import (
    PluginSettings,
    load_plugin,
    release_hint,
)
from rowmerge_nb.connectors.trino.host.serving import HostServer


def main() -> None:
    parser = argparse.ArgumentParser(prog="rowmerge_nb.connectors.trino.host")
    parser.add_argument("--socket", required=True, help="the path of the Unix socket")
    parser.add_argument("--settings", required=True, help="a JSON file with the plugin's settings")
    arguments = parser.parse_args()
    # An interrupt of the notebook reaches its whole process group; the driver decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Java writes to standard output too; the driver reads one line of ours there.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    settings = None
    try:
        settings = PluginSettings(**json.loads(Path(arguments.settings).read_text("utf-8")))
        start_java(settings.java_home, settings.engine, settings.java_options)
        server = HostServer(load_plugin(settings))
        ready = server.hello()
        listener = server.listen(arguments.socket)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the driver reports it
        described = describe_error(error)
        if settings is not None and not described.get("hint"):
            described["hint"] = release_hint(settings)
        _print(output, {"error": described})
        os._exit(1)
    _print(output, {"ready": ready})
    threading.Event().wait()
    listener.close()


def _print(output: Any, message: dict[str, Any]) -> None:
    output.write(json.dumps(message) + "\n")
    output.flush()


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
