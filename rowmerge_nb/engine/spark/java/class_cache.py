"""The cache of the classes that Spark's Java loads: with it Java starts with half the work.

Java can write the classes of a run, parsed and verified, into a file that later starts map into their memory: an AOT cache (Java 25 and
newer) or a shared archive (17 to 24). The file fits one Java, one Spark and one set of options, which its name is made from. A damaged one
kills Java, so that nothing is named to Java whose length and checksum are not those in the seal beside it, which is written last.

::

    ~/.cache/rowmerge_nb/class-caches/     $XDG_CACHE_HOME, where that is set
        configuration/                     always empty: Spark's configuration directory, since it stands first on the class path
        lock                               held by the process that makes a cache
        NAME/                              one cache, made beside and renamed
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
"""The variable that turns caches off."""

MAKING: Final = "making-"
"""What the names of unfinished caches begin with."""

_FORMAT: Final = 1
"""A change of what is recorded makes the caches of before caches of something else."""

_AOT_VERSION: Final = 25
_MOST_CACHES: Final = 3
_PIECE: Final = 1 << 22
_COMPRESSED_POINTERS: Final = 32 << 30
_OFF: Final = ("off", "0", "no", "false")
_JAVA_SETTINGS: Final = ("spark.driver.memory", "spark.driver.extraJavaOptions")
_OTHER_SPARKS: Final = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT")
_OPTION_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
_CLASS_PATH_VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_PREPEND_CLASSES")
_CLASS_PATH_SETTINGS: Final = ("spark.driver.extraClassPath", "spark.driver.defaultJavaOptions")
_AGENTS: Final = ("-javaagent", "-agentlib", "-agentpath")
_OWN_CACHES: Final = ("-XX:AOT", "-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-XX:+AutoCreateSharedArchive", "-Xshare")


@dataclass(frozen=True)
class NoClassCache:
    """Java is started without a cache.

    Args:
        reason: why, a part of a sentence.
        advice: what to do for one; ``""`` if nothing.
    """

    reason: str
    advice: str = ""


@dataclass(frozen=True)
class ClassCache:
    """The cache that one Java may use with one Spark and one set of options; it need not be there.

    Args:
        home: the directory of all caches.
        name: its name: a hash of everything that it must fit.
        java_version: Java's feature version.
        spark: the directory of Spark's jars.
    """

    home: Path
    name: str
    java_version: int
    spark: Path

    @property
    def directory(self) -> Path:
        """Where it lies, if it was made."""
        return self.home / self.name

    @property
    def configuration(self) -> Path:
        """The empty directory that stands first on Spark's class path."""
        return self.home / "configuration"

    @property
    def failure(self) -> Path:
        """The file that tells why it could not be made, or that Java died of it; as long as it is there, it is made on demand only."""
        return self.home / f"{self.name}.log"

    @property
    def size(self) -> int:
        """How many bytes it has on disk; 0 where it is not there."""
        with suppress(OSError):
            return (self.directory / "classes").stat().st_size
        return 0

    def use_options(self) -> str:
        """Return the options of a Java that uses it; what does not fit after all, Java does without, and says nothing."""
        silently = "-Xlog:aot*=off" if self.java_version >= _AOT_VERSION else "-Xlog:cds*=off"
        # What a crash leaves is not for the directory that a user works in.
        crash = f"-XX:ErrorFile={shlex.quote(str(self.home / 'crash.log'))} -XX:-CreateCoredumpOnCrash"
        return f"{self._read_option(self.directory)} {silently} {crash}"

    def record_options(self, directory: Path) -> str:
        """Return the options of a Java that writes it into a directory when it ends."""
        name = "AOTCacheOutput" if self.java_version >= _AOT_VERSION else "ArchiveClassesAtExit"
        return f"-XX:{name}={_file_in(directory)}"

    def prove_options(self, directory: Path) -> str:
        """Return the options of a Java that does not start unless it can use what is in a directory, and finds no fault with it."""
        strictly = "-XX:AOTMode=on" if self.java_version >= _AOT_VERSION else "-Xshare:on"
        return f"{self._read_option(directory)} {strictly} -XX:+UnlockDiagnosticVMOptions -XX:+VerifySharedSpaces"

    def _read_option(self, directory: Path) -> str:
        name = "AOTCache" if self.java_version >= _AOT_VERSION else "SharedArchiveFile"
        return f"-XX:{name}={_file_in(directory)}"

    def trouble(self) -> NoClassCache | None:
        """Return why it cannot be used; None if it can. It is read as a whole, some hundred megabytes."""
        try:
            with opened_own_directory(self.home), opened_own_directory(self.directory):
                seal = _read_seal(self.directory)
                # Spark's class path begins with it, and a Java whose class path is another one does without the cache.
                if any(self.configuration.iterdir()):
                    return NoClassCache(f"'{self.configuration}' must be empty, and is not", "Remove what is in it.")
                sound = seal == {**seal, **self._seal_of(self.directory)}
        except FileNotFoundError:
            return NoClassCache("there is none yet")
        except (OSError, ValueError) as error:
            return NoClassCache(f"'{self.directory}' cannot be used: {error}")
        return None if sound else NoClassCache(f"'{self.directory}' is damaged, or another's")

    def seal(self, directory: Path) -> None:
        """Write the seal of a new cache, which lies in a directory of its own yet; its last file."""
        made = datetime.now(UTC).isoformat(timespec="seconds")
        seal = {**self._seal_of(directory), "spark": str(self.spark), "made": made}
        with (directory / "classes").open("rb") as classes, (directory / "seal.json").open("x") as file:
            os.fsync(classes.fileno())
            json.dump(seal, file, indent=1)
            file.flush()
            os.fsync(file.fileno())

    def made(self) -> str:
        """Return when it was made, as ISO 8601 has it."""
        return str(_read_seal(self.directory).get("made", ""))

    def mark_used(self) -> None:
        """Note that it is used now: the caches that were not used for longest are the first to go."""
        with suppress(OSError):
            os.utime(self.directory / "seal.json")

    def remove(self) -> None:
        """Remove it; a Java that uses it is not disturbed."""
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
    """Find out which cache a Java may use, or why none.

    Args:
        java: the runtime.
        conf: a user's settings of Spark.
        environ: the variables that Java and Spark are started with.

    Raises:
        SetupError: INVALID_ARGUMENTS, the variable ROWMERGE_CLASS_CACHE has a value that it cannot have.
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
        return NoClassCache(f"what it would have to fit cannot be looked at: {error}")


def java_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return those of a user's settings that a cache has to fit.

    >>> java_settings({"spark.master": "spark://there", "spark.driver.memory": "4g"})
    {'spark.driver.memory': '4g'}
    """
    return {name: str(conf[name]) for name in _JAVA_SETTINGS if name in conf}


def _name(java: Java, spark: Path, conf: Mapping[str, str], environ: Mapping[str, str]) -> str:
    with os.scandir(spark) as entries:
        jars = sorted((entry.name, state.st_size, int(state.st_mtime)) for entry in entries for state in [entry.stat()])
    release = java.home / "release"
    fits = {
        "format": _FORMAT,
        "java": [str(java.home.resolve()), java.version, release.read_text("utf-8", "replace") if release.is_file() else ""],
        "spark": [str(spark), jars],
        "options": java_options(available_cores(), conf),
        "variables": [environ.get(name, "") for name in _OPTION_VARIABLES],
        "wide pointers": _bytes(driver_memory(conf)) >= _COMPRESSED_POINTERS,
    }
    return hashlib.sha256(json.dumps(fits, sort_keys=True).encode()).hexdigest()[:20]


def _refusal(java: Java, conf: Mapping[str, str], environ: Mapping[str, str]) -> NoClassCache | None:
    switch = environ.get(VARIABLE, "") or "on"
    if switch.lower() in _OFF:
        return NoClassCache(f"turned off by the variable {VARIABLE}")
    if switch.lower() != "on":
        raise SetupError(
            f"The variable {VARIABLE} is '{switch}'",
            code="INVALID_ARGUMENTS",
            hint="It can be off; without it, or with on, Java uses a cache of its classes.",
        )
    for name in _OTHER_SPARKS:
        if environ.get(name):
            return NoClassCache(f"the variable {name} says that Java is not started here")
    if java.version < _AOT_VERSION and not (java.home / "lib" / "server" / "classes.jsa").is_file():
        return NoClassCache(f"the Java {java.version} of {java.home} has no archive of its own classes", "A Java 25 needs none.")
    given = [java_options(available_cores(), conf), *(environ.get(name, "") for name in _OPTION_VARIABLES)]
    for option in _AGENTS:
        if any(option in text for text in given):
            return NoClassCache(f"Java is started with {option}")
    for option in _OWN_CACHES:
        if any(option in text for text in given):
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
    """Return the directory of all caches, which need not be there.

    >>> cache_home({"XDG_CACHE_HOME": "/var/cache/ann"})
    PosixPath('/var/cache/ann/rowmerge_nb/class-caches')
    """
    # What is relative is to be ignored, says the specification of these directories.
    base, home = Path(environ.get("XDG_CACHE_HOME", "")), Path(environ.get("HOME", ""))
    if not base.is_absolute():
        if not home.is_absolute():
            return NoClassCache("there is no home directory")
        base = home / ".cache"
    if ":" in str(base):
        return NoClassCache(f"'{base}' has a colon, which parts the entries of a class path")
    return base / "rowmerge_nb" / "class-caches"


def remove_superfluous(home: Path, keep: str) -> None:
    """Remove what a maker that died has left, caches whose Spark is gone, and those not used for longest beyond three.

    Args:
        home: the directory of all caches; its lock is held.
        keep: the name of the cache that stays in any case.
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
    """Remove a cache's directory: its seal first, so that nobody trusts what is left."""
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
    """Read an amount of memory as Spark does; what cannot be read is 0, and Spark will say so.

    >>> _bytes("2g") == 2 << 30, _bytes("512m") == 512 << 20, _bytes("much")
    (True, True, 0)
    """
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    text = memory.strip().lower().removesuffix("b")
    unit = units.get(text[-1:], 20 if text.isdigit() else None)
    number = text.rstrip("kmgt")
    return int(number) << unit if unit is not None and number.isdigit() else 0
