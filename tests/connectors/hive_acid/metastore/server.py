"""A private Hive Metastore 3.1.3: downloaded by Maven, with an embedded Derby database, run by Java 8 to 17."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HIVE = "3.1.3"
MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>metastore</artifactId><version>1</version><dependencies>
{dependencies}
</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
LIBRARIES = [
    ("org.apache.hive", "hive-standalone-metastore", HIVE, "<exclusions>{}</exclusions>"),
    ("org.apache.hadoop", "hadoop-client-api", "3.3.6", ""),
    ("org.apache.hadoop", "hadoop-client-runtime", "3.3.6", ""),
    ("commons-logging", "commons-logging", "1.2", ""),
]
NOWHERE = ("org.pentaho", "jdk.tools")
SUPERSEDED = ("hadoop-*-2.*.jar", "log4j-1.2.17.jar", "slf4j-log4j12-*.jar")
OPENED = ("lang", "lang.reflect", "net", "nio", "util", "util.concurrent")
SETTINGS = {
    "metastore.warehouse.dir": "file://{warehouse}",
    "javax.jdo.option.ConnectionURL": "jdbc:derby:directory:{folder}/database;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
    # The default ones need classes of a whole Hive.
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    "metastore.thrift.uris": "thrift://127.0.0.1:{port}",
    "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
    "hive.support.concurrency": "true",
}


@contextmanager
def private_metastore(folder: Path) -> Iterator[str]:
    """Start a metastore in a folder and return its address; a cache in the user's home keeps the downloads of Maven."""
    home = _downloaded(
        Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        / "rowmerge_nb"
        / f"metastore-{HIVE}"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    conf = folder / "conf"
    conf.mkdir(parents=True)
    values = {"warehouse": folder / "warehouse", "folder": folder, "port": port}
    rows = [
        f"<property><name>{k}</name><value>{v.format(**values)}</value></property>"
        for k, v in SETTINGS.items()
    ]
    (conf / "metastore-site.xml").write_text(
        f"<configuration>{''.join(rows)}</configuration>", encoding="utf-8"
    )
    package = "org.apache.hadoop.hive.metastore"
    command = [
        _java(),
        "-Xmx512m",
        "-cp",
        f"{conf}:{home / 'lib'}/*",
        f"-Dderby.stream.error.file={folder}/derby.log",
    ]
    command += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
    tool = [*command, f"{package}.tools.MetastoreSchemaTool", "-dbType", "derby", "-initSchema"]
    environment = os.environ | {"METASTORE_HOME": str(home)}
    with (folder / "log").open("w") as log:
        subprocess.run(tool, cwd=folder, env=environment, stdout=log, stderr=log, check=True)
        server = subprocess.Popen(
            [*command, f"{package}.HiveMetaStore", "-p", str(port)],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(server, port, folder / "log")
            yield f"thrift://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"The metastore did not start; its log ends with: {log.read_text()[-2000:]}")


def _downloaded(home: Path) -> Path:
    if (home / "scripts").is_dir():
        return home
    making = home.with_name(f"{home.name}-{os.getpid()}")
    making.mkdir(parents=True)
    excluded = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>"
        for group in NOWHERE
    )
    rows = [
        DEPENDENCY.format(group, name, version, more.format(excluded))
        for group, name, version, more in LIBRARIES
    ]
    (making / "pom.xml").write_text(POM.format(dependencies="\n".join(rows)), encoding="utf-8")
    maven = ["mvn", "-q", "-B"]
    copied = f"org.apache.hive:hive-standalone-metastore:{HIVE}:tar.gz:bin"
    # Without the classes of ORC tables, which are in hive-exec, no table may be transactional.
    for goal in (
        [f"{MAVEN}:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"],
        [f"{MAVEN}:copy", f"-Dartifact=org.apache.hive:hive-exec:{HIVE}", "-DoutputDirectory=lib"],
        [f"{MAVEN}:copy", f"-Dartifact={copied}", "-DoutputDirectory=."],
    ):
        subprocess.run([*maven, *goal], cwd=making, check=True)
    for pattern in SUPERSEDED:
        for library in (making / "lib").glob(pattern):
            library.unlink()
    archive = next(making.glob("*-bin.tar.gz"))
    shutil.unpack_archive(archive, making / "unpacked", filter="data")
    next((making / "unpacked").glob("*/scripts")).rename(making / "scripts")
    shutil.rmtree(making / "unpacked")
    archive.unlink()
    making.rename(home)
    return home


def _java() -> str:
    """Return a Java that runs Hadoop 3."""
    places = [
        Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java",
        Path(shutil.which("java") or "/"),
    ]
    places += sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    for place in places:
        if place.is_file():
            text = subprocess.run(
                [place, "-version"], capture_output=True, text=True, check=False
            ).stderr
            found = re.search(r'version "(?:1\.)?(\d+)', text)
            if found is not None and 8 <= int(found[1]) <= 17:
                return str(place)
    raise RuntimeError(
        "No Java between 8 and 17 was found, which Hive 3 needs; JAVA_HOME may name one"
    )
