"""The cache of classes that Spark's Java loads, which halves Java's start time.

It is an AOT cache (Java 25 and newer) or a shared archive (17 to 24) for one Java, one Spark and
one set of options. A damaged file kills Java, so length and checksum are compared with the seal,
which is written last.

::

    ~/.cache/rowmerge_nb/class-caches/     or under $XDG_CACHE_HOME
        configuration/                     always empty: Spark's configuration directory, first on the class path
        lock                               held while a cache is created
        NAME/                              one cache, created elsewhere and renamed
            classes                        the file that Java maps
            seal.json                      its name, length, checksum and Spark
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.private import opened_own_directory
from rowmerge_nb.engine.spark.java.java_options import available_cores, driver_memory, java_options

if TYPE_CHECKING:
    from rowmerge_nb.engine.spark.java.runtime import Java

VARIABLE: Final = "ROWMERGE_CLASS_CACHE"
"""The environment variable that disables caches."""

MAKING: Final = "making-"
"""The prefix of unfinished caches."""

_FORMAT: Final = 1
"""Incremented when the recorded statements change, to invalidate older caches."""

_AOT_VERSION: Final = 25
_MOST_CACHES: Final = 3
_PIECE: Final = 1 << 22
_COMPRESSED_POINTERS: Final = 32 << 30
_OFF: Final = ("off", "0", "no", "false")
_JAVA_SETTINGS: Final = ("spark.driver.memory", "spark.driver.extraJavaOptions")
_OTHER_SPARKS: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT")
_OPTION_VARIABLES: Final = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "SPARK_SUBMIT_OPTS",
    "PYSPARK_SUBMIT_ARGS",
)
_CLASS_PATH_VARIABLES: Final = (
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_PREPEND_CLASSES",
)
_CLASS_PATH_SETTINGS: Final = ("spark.driver.extraClassPath", "spark.driver.defaultJavaOptions")
_AGENTS: Final = ("-javaagent", "-agentlib", "-agentpath")
_OWN_CACHES: Final = (
    "-XX:AOT",
    "-XX:SharedArchiveFile",
    "-XX:ArchiveClassesAtExit",
    "-XX:+AutoCreateSharedArchive",
    "-Xshare",
)


@dataclass(frozen=True)
class NoClassCache:
    reason: str
    advice: str = ""


@dataclass(frozen=True)
class ClassCache:
    """The cache for one Java, one Spark and one set of options; it may not exist."""

    home: Path
    name: str
    java_version: int
    spark: Path

    @property
    def directory(self) -> Path:
        return self.home / self.name

    @property
    def configuration(self) -> Path:
        """The empty first directory of Spark's class path."""
        return self.home / "configuration"

    @property
    def failure(self) -> Path:
        """The log of a failed creation or crash; while it exists, the cache is created on request
        only.
        """
        return self.home / f"{self.name}.log"

    @property
    def size(self) -> int:
        with suppress(OSError):
            return (self.directory / "classes").stat().st_size
        return 0

    def use_options(self) -> str:
        """Return Java's options to use the cache; an unsuitable one is silently ignored."""
        silently = "-Xlog:aot*=off" if self.java_version >= _AOT_VERSION else "-Xlog:cds*=off"
        # Keep crash files out of the user's working directory.
        crash = (
            f"-XX:ErrorFile={shlex.quote(str(self.home / 'crash.log'))} -XX:-CreateCoredumpOnCrash"
        )
        return f"{self._read_option(self.directory)} {silently} {crash}"

    def record_options(self, directory: Path) -> str:
        """Return Java's options to write the cache when it ends."""
        name = "AOTCacheOutput" if self.java_version >= _AOT_VERSION else "ArchiveClassesAtExit"
        return f"-XX:{name}={_file_in(directory)}"

    def prove_options(self, directory: Path) -> str:
        """Return Java's options to fail unless the cache is valid."""
        strictly = "-XX:AOTMode=on" if self.java_version >= _AOT_VERSION else "-Xshare:on"
        return (
            f"{self._read_option(directory)} {strictly} -XX:+UnlockDiagnosticVMOptions"
            " -XX:+VerifySharedSpaces"
        )

    def _read_option(self, directory: Path) -> str:
        name = "AOTCache" if self.java_version >= _AOT_VERSION else "SharedArchiveFile"
        return f"-XX:{name}={_file_in(directory)}"

    def trouble(self) -> NoClassCache | None:
        """Return why the cache cannot be used, or None.

        Reads the whole file, some hundred megabytes.
        """
        try:
            with opened_own_directory(self.home), opened_own_directory(self.directory):
                seal = _read_seal(self.directory)
                # It is first on the class path, and Java ignores a cache of another class path.
                if any(self.configuration.iterdir()):
                    return NoClassCache(
                        f"'{self.configuration}' must be empty", "Remove its contents."
                    )
                sound = seal == {**seal, **self._seal_of(self.directory)}
        except FileNotFoundError:
            return NoClassCache("there is none yet")
        except (OSError, ValueError) as error:
            return NoClassCache(f"'{self.directory}' cannot be used: {error}")
        return None if sound else NoClassCache(f"'{self.directory}' is damaged, or another's")

    def seal(self, directory: Path) -> None:
        """Write the seal of a new cache, as the last file."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        seal = {**self._seal_of(directory), "spark": str(self.spark), "made": created}
        with (
            (directory / "classes").open("rb") as classes,
            (directory / "seal.json").open("x") as file,
        ):
            os.fsync(classes.fileno())
            json.dump(seal, file, indent=1)
            file.flush()
            os.fsync(file.fileno())

    def created_at(self) -> str:
        return str(_read_seal(self.directory).get("made", ""))

    def mark_used(self) -> None:
        """Record the use: the least recently used caches are removed."""
        with suppress(OSError):
            os.utime(self.directory / "seal.json")

    def remove(self) -> None:
        remove_cache(self.directory)

    def _seal_of(self, directory: Path) -> dict[str, object]:
        length, checksum = 0, 0
        with (directory / "classes").open("rb") as file:
            while piece := file.read(_PIECE):
                length += len(piece)
                checksum = zlib.crc32(piece, checksum)
        return {"name": self.name, "length": length, "crc32": checksum}


def class_cache_of(
    java: Java, conf: Mapping[str, str] | None = None, environ: Mapping[str, str] = os.environ
) -> ClassCache | NoClassCache:
    """Return the cache that a Java may use, or the reason for none; INVALID_ARGUMENTS,
    ROWMERGE_CLASS_CACHE.
    """
    conf = {name: str(value) for name, value in (conf or {}).items()}
    if refusal := _refusal(java, conf, environ):
        return refusal
    home, spark = cache_home(environ), _jars()
    if isinstance(home, NoClassCache):
        return home
    if spark is None:
        return NoClassCache("PySpark has no directory of jars")
    try:
        return ClassCache(home, _name(java, spark, conf, environ), java.version, spark)
    except OSError as error:
        return NoClassCache(f"what it must match cannot be inspected: {error}")


def java_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the user's settings that a cache must fit.

    >>> java_settings({"spark.master": "spark://there", "spark.driver.memory": "4g"})
    {'spark.driver.memory': '4g'}
    """
    return {name: str(conf[name]) for name in _JAVA_SETTINGS if name in conf}


def _name(java: Java, spark: Path, conf: Mapping[str, str], environ: Mapping[str, str]) -> str:
    with os.scandir(spark) as entries:
        jars = sorted(
            (entry.name, state.st_size, int(state.st_mtime))
            for entry in entries
            for state in [entry.stat()]
        )
    release = java.home / "release"
    fits = {
        "format": _FORMAT,
        "java": [
            str(java.home.resolve()),
            java.version,
            release.read_text("utf-8", "replace") if release.is_file() else "",
        ],
        "spark": [str(spark), jars],
        "options": java_options(available_cores(), conf),
        "variables": [environ.get(name, "") for name in _OPTION_VARIABLES],
        "wide pointers": _bytes(driver_memory(conf)) >= _COMPRESSED_POINTERS,
    }
    return hashlib.sha256(json.dumps(fits, sort_keys=True).encode()).hexdigest()[:20]


def _refusal(
    java: Java, conf: Mapping[str, str], environ: Mapping[str, str]
) -> NoClassCache | None:
    switch = environ.get(VARIABLE, "") or "on"
    if switch.lower() in _OFF:
        return NoClassCache(f"turned off by the variable {VARIABLE}")
    if switch.lower() != "on":
        raise SetupError.invalid(
            f"The variable {VARIABLE} is '{switch}'",
            hint="It may be off. If it is on or not set, Java uses a cache of its classes.",
        )
    for name in _OTHER_SPARKS:
        if environ.get(name):
            return NoClassCache(f"the variable {name} prevents Java from starting here")
    if java.version < _AOT_VERSION and not (java.home / "lib" / "server" / "classes.jsa").is_file():
        return NoClassCache(
            f"the Java {java.version} of {java.home} has no archive of its own classes",
            "A Java 25 needs none.",
        )
    option_texts = [
        java_options(available_cores(), conf),
        *(environ.get(name, "") for name in _OPTION_VARIABLES),
    ]
    for option in _AGENTS:
        if any(option in text for text in option_texts):
            return NoClassCache(f"Java is started with {option}")
    for option in _OWN_CACHES:
        if any(option in text for text in option_texts):
            return NoClassCache(f"Java is started with {option}, a cache that is not ours")
    for name in _CLASS_PATH_SETTINGS:
        if conf.get(name):
            return NoClassCache(f"Spark's setting {name} changes what Java loads")
    for name in _CLASS_PATH_VARIABLES:
        if environ.get(name):
            return NoClassCache(f"the variable {name} changes what Java loads")
    if "class-path" in environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return NoClassCache("the variable PYSPARK_SUBMIT_ARGS changes what Java loads")
    return None


def cache_home(environ: Mapping[str, str] = os.environ) -> Path | NoClassCache:
    """Return the directory of all caches.

    >>> cache_home({"XDG_CACHE_HOME": "/var/cache/ann"})
    PosixPath('/var/cache/ann/rowmerge_nb/class-caches')
    """
    # The XDG specification ignores relative paths.
    base, home = Path(environ.get("XDG_CACHE_HOME", "")), Path(environ.get("HOME", ""))
    if not base.is_absolute():
        if not home.is_absolute():
            return NoClassCache("there is no home directory")
        base = home / ".cache"
    if ":" in str(base):
        return NoClassCache(f"'{base}' has a colon, which separates the entries of a class path")
    return base / "rowmerge_nb" / "class-caches"


def remove_superfluous(home: Path, keep: str) -> None:
    """Remove unfinished caches, caches of missing Sparks, and the least recently used beyond three,
    except `keep`. The lock of `home` is held.
    """
    used: list[tuple[float, Path]] = []
    for entry in home.iterdir():
        if entry.name.startswith(MAKING):
            remove_cache(entry)
        elif entry.is_dir() and entry.name not in {"configuration", keep}:
            try:
                seal = _read_seal(entry)
                spark_is_there = Path(str(seal["spark"])).is_dir()
                used.append(((entry / "seal.json").stat().st_mtime, entry))
            except (OSError, ValueError, KeyError):
                spark_is_there = False
            if not spark_is_there:
                remove_cache(entry)
    living = sorted((moment, entry) for moment, entry in used if entry.exists())
    for _, entry in living[: max(len(living) - (_MOST_CACHES - 1), 0)]:
        remove_cache(entry)


def remove_cache(directory: Path) -> None:
    """Remove a cache's directory, its seal first."""
    with suppress(OSError):
        (directory / "seal.json").unlink()
    shutil.rmtree(directory, ignore_errors=True)


def _file_in(directory: Path) -> str:
    return shlex.quote(str(directory / "classes"))


def _read_seal(directory: Path) -> Mapping[str, object]:
    seal = json.loads((directory / "seal.json").read_bytes())
    if not isinstance(seal, Mapping):
        raise ValueError("its seal is none")  # noqa: TRY004 - a damaged file, no wrong argument
    return seal


def _jars() -> Path | None:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    jars = Path(spec.submodule_search_locations[0]).resolve() / "jars"
    return jars if jars.is_dir() else None


def _bytes(memory: str) -> int:
    """Parse a Spark memory size; 0 if it is invalid.

    >>> _bytes("2g") == 2 << 30, _bytes("512m") == 512 << 20, _bytes("much")
    (True, True, 0)
    """
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    text = memory.strip().lower().removesuffix("b")
    unit = units.get(text[-1:], 20 if text.isdigit() else None)
    number = text.rstrip("kmgt")
    return int(number) << unit if unit is not None and number.isdigit() else 0
