"""Spark clusters of this machine: a standalone one and a Connect server, whose Python does not find the package."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from rowmerge_nb.engine.spark.java.runtime import find_java, make_java_home

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
DRIVER = "tests.clusters.driver"
LOOPBACK = "127.0.0.1"
PATIENCE = 90.0
SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


def foreign_python(folder: Path) -> Path:
    """Create a Python with all libraries of this one that does not find the package: without `site`, it sees no editable install."""
    program = folder / "python"
    libraries = sysconfig.get_path("platlib")
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{libraries}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{sys.executable}" -S "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    look = "import pyspark, pyarrow, importlib.util as u, sys; sys.exit(u.find_spec('rowmerge_nb') is not None)"
    subprocess.run([program, "-c", look], cwd=folder, env=_environment(folder), check=True)
    return program


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, cores: int = 1) -> Iterator[str]:
    """Start a master and workers; return the master's address, ``spark://127.0.0.1:port``."""
    environment = _cluster_environment(folder)
    spark_class = str(SPARK_HOME / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    with ExitStack() as running:
        master = [
            spark_class,
            f"{deploy}.master.Master",
            "--host",
            LOOPBACK,
            "--port",
            "0",
            "--webui-port",
            "0",
        ]
        address = running.enter_context(_server(master, folder, "master", environment)).said(
            r"Starting Spark master at (spark://\S+)"
        )
        started = []
        for number in range(1, workers + 1):
            # One host each: Spark never copies a task to the host that already runs it.
            worker = [
                spark_class,
                f"{deploy}.worker.Worker",
                "--host",
                f"127.0.0.{number}",
                "--webui-port",
                "0",
            ]
            worker += [
                "--cores",
                str(cores),
                "--memory",
                "1g",
                "--work-dir",
                str(folder / f"work{number}"),
                address,
            ]
            started.append(
                running.enter_context(_server(worker, folder, f"worker{number}", environment))
            )
        for server in started:
            server.said("Successfully registered with master")
        yield address


@contextmanager
def connect_server(folder: Path, master: str = "local[2,4]", **settings: str) -> Iterator[str]:
    """Start a Spark Connect server; return its address, ``sc://127.0.0.1:port``."""
    # Like master and workers, it is one of Spark's daemons.
    environment = _cluster_environment(folder) | {
        "SPARK_DAEMON_MEMORY": "1g",
        "SPARK_DAEMON_JAVA_OPTS": f"{SMALL_JAVA} -Xss8m",
    }
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **settings,
    }
    server = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master]
    server += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    server += [
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "spark-internal",
    ]
    with _server(server, folder, "connect", environment) as started:
        started.said("Spark Connect server started at")
        yield f"sc://{LOOPBACK}:{port}"


def _cluster_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a cluster's processes, without the Python paths of this process."""
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "java"
    if not home.exists():
        make_java_home(find_java(), home)
    python = folder / "python"
    program = python if python.exists() else foreign_python(folder)
    return _environment(folder) | {
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_JAVA_OPTS": f"{SMALL_JAVA} -Dspark.master.rest.enabled=false",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": str(program),
    }


def _environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder)}


@dataclass
class _Server:
    """A running program and its output."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self, pattern: str) -> str:
        """Wait for output that matches; return the first group of the pattern, or the whole match."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            if found := re.search(pattern, self.log.read_text("utf-8", "replace")):
                return found[1] if found.re.groups else found[0]
            time.sleep(0.1)
        text = self.log.read_text("utf-8", "replace")
        raise RuntimeError(
            f"'{pattern}' was not said ({self.process.poll()}); the log ends with: {text[-3000:]}"
        )


@contextmanager
def _server(
    command: list[str], folder: Path, name: str, environment: dict[str, str]
) -> Iterator[_Server]:
    """Run a program until the block ends."""
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)
        try:
            yield _Server(process, log)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                # A task that is no longer awaited may hold Java; the tests do not check its end.
                process.kill()
                process.wait(30)


class ClusterDriver:
    """A process with a Spark session on a cluster, which executes orders through `driver.Driver`."""

    def __init__(self, address: str, folder: Path, **settings: str) -> None:
        self.log = folder / "driver.log"
        # By its own path: executors on this machine inherit the environment, and must not find the package through it.
        run = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); runpy.run_module({DRIVER!r}, run_name='__main__', alter_sys=True)"
        command = [sys.executable, "-c", run, address, str(folder), json.dumps(settings)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # It has its own current directory, like every executor.
        (folder / "here").mkdir(exist_ok=True)
        self._errors = self.log.open("w")
        self._process = subprocess.Popen(
            command,
            cwd=folder / "here",
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> ClusterDriver:
        return self

    def order(self, order: str, **arguments: Any) -> None:
        """Send an order."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"order": order, **arguments}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"The driver has ended: {self.log.read_text('utf-8', 'replace')[-3000:]}"
            )
        answer = json.loads(line)
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer["answer"]

    def ask(self, order: str, **arguments: Any) -> Any:
        """Send an order and wait for the answer."""
        self.order(order, **arguments)
        return self.answer()

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()
            self._errors.close()
            if self._process.stdout is not None:
                self._process.stdout.close()


def executors(folder: Path) -> list[int]:
    """Return the process numbers of the executors started by workers in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
            if b"CoarseGrainedExecutorBackend" in line and str(folder).encode() in line:
                found.append(int(entry.name))
    return sorted(found)
