"""The cost of functions and casts compared with Spark's nearest own and DuckDB's."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from benchmarks.parsing import Tables
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.sql.analyzer.analysis import QueryAnalysis
from rowmerge_nb.sql.analyzer.statements.statement import analyze
from rowmerge_nb.sql.functions.all_functions import MOMENTS
from rowmerge_nb.sql.functions.foreign_names import FUNCTIONS as FOREIGN
from rowmerge_nb.sql.functions.overloads import listed
from rowmerge_nb.sql.parser.statement_reader import parse
from rowmerge_nb.sql.spark.query_printer import print_query
from rowmerge_nb.sql.typed.cast_rules import can_cast, is_cast_supported
from rowmerge_nb.sql.typed.type_rules import zoned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.sql.functions.overloads import Overload

__all__ = ["functions"]

FEW: Final = 10_000
"""The rows of the first run of a call."""

LONG: Final = 0.5
"""Seconds of the first run above which a call is measured only over those rows; half of it allows
ten times the rows. A late run lowers it.
"""

LONGEST: Final = 10.0
"""Seconds after which an engine's work on a call is stopped."""

VIEWS: Final = ("few_samples", "some_samples", "all_samples")

SAMPLES: Final = {
    "boolean": ("bo", "id % 3 = 0"),
    "tinyint": ("ti", "CAST(id % 5 + 1 AS TINYINT)"),
    "smallint": ("si", "CAST(id % 7 + 1 AS SMALLINT)"),
    "integer": ("it", "CAST(id % 9 + 1 AS INT)"),
    "bigint": ("bi", "id % 11 + 1"),
    "decimal(18,2)": ("de", "CAST(id * 0.37BD AS DECIMAL(18,2))"),
    "real": ("re", "CAST(rand(1) * 1000 AS FLOAT)"),
    "double": ("db", "rand(2) * 1000"),
    "varchar": ("tx", "concat('name ', id, IF(id % 2 = 0, ' even', ' odd'))"),
    "varchar(20)": ("tb", "concat('name ', id)"),
    "char(12)": ("ch", "rpad(concat('name ', id), 12, ' ')"),
    "varbinary": ("vb", "encode(concat('name ', id), 'UTF-8')"),
    "date": ("da", "date_add(DATE '2020-01-01', CAST(id % 3000 AS INT))"),
    "time(6)": ("tm", "time_from_micros(id * 86399 % 86400000000)"),
    "timestamp(6)": (
        "ts",
        "CAST(timestamp_micros(1577836800000000 + id * 61000001) AS TIMESTAMP_NTZ)",
    ),
    "timestamp(6) with time zone": ("tz", "timestamp_micros(1577836800000000 + id * 61000001)"),
    "uuid": ("uu", "concat('12345678-1234-4234-8234-', lpad(id, 12, '0'))"),
    "json": ("js", "concat('{\"a\":', id, ',\"b\":[1,2]}')"),
    "array(bigint)": ("ar", "array(id, 3L, id % 10)"),
    "array(double)": ("ad", "array(id + 0.5D, 3D, id % 10 + 0D)"),
    "array(varchar)": ("at", "array(concat('a', id), 'b')"),
    "array(array(bigint))": ("aa", "array(array(id, 3L), array(id % 10))"),
    "array(row(varchar, bigint))": (
        "ao",
        "array(named_struct('field0', concat('a', id), 'field1', id))",
    ),
    "map(varchar, bigint)": ("mp", "map(concat('a', id), id, 'b', 2L)"),
    "map(varchar, double)": ("md", "map(concat('a', id), id + 0.5D, 'b', 2D)"),
    "interval day to second": ("iv", "make_dt_interval(0, 0, 0, CAST(id AS DECIMAL(18,3)))"),
    "interval year to month": ("iy", "make_ym_interval(0, CAST(id % 100 AS INT))"),
    "number": ("nt", "CAST(id AS STRING)"),
    "figures": ("ft", "CAST(rand(3) * 1000 AS STRING)"),
    "moment": (
        "mt",
        "date_format(timestamp_micros(1577836800000000 + id * 61000001), 'yyyy-MM-dd HH:mm:ss')",
    ),
    "day": ("dt", "CAST(date_add(DATE '2020-01-01', CAST(id % 3000 AS INT)) AS STRING)"),
    "hexadecimal": ("hx", "hex(CAST(id AS STRING))"),
    "base 64": ("b6", "base64(encode(CAST(id AS STRING), 'UTF-8'))"),
    "list": ("jl", "concat('[', id, ',2,3]')"),
    "url": ("ur", "concat('https://host.example:80/p/', id, '?a=', id, '#f')"),
}
"""Columns by type or by the content of a text, and the Spark SQL that fills them from a number."""

WORDS: Final = frozenset(
    {"number", "figures", "moment", "day", "hexadecimal", "base 64", "list", "url"}
)
ZONED_COLUMN: Final = "zz"

TYPES_OF_VARIABLES: Final = {"K": "varchar", "V": "bigint"}
COLUMN: Final = {name: column for name, (column, _) in SAMPLES.items()}

ARGUMENTS: Final = {
    "char2hexint": ["tx"],
    "date_add": ["'day'", "bi", "ts"],
    "date_diff": ["'hour'", "ts", "CAST('2021-01-01' AS timestamp(6))"],
    "date_format": ["ts", "'%Y-%m-%d %H:%i'"],
    "date_parse": ["mt", "'%Y-%m-%d %H:%i:%s'"],
    "date_trunc": ["'month'", "ts"],
    "format_datetime": ["ts", "'yyyy-MM-dd HH:mm'"],
    "parse_datetime": ["mt", "'yyyy-MM-dd HH:mm:ss'"],
    "from_iso8601_date": ["dt"],
    "from_iso8601_timestamp": ["replace(mt, ' ', 'T')"],
    "from_unixtime": ["db"],
    "at_timezone": ["tz", "'Europe/Berlin'"],
    "with_timezone": ["ts", "'Europe/Berlin'"],
    "timezone": ["tz"],
    "timezone_hour": [ZONED_COLUMN],
    "timezone_minute": [ZONED_COLUMN],
    "from_hex": ["hx"],
    "from_base64": ["b6"],
    "from_base64url": ["b6"],
    "from_base": ["nt", "10"],
    "json_parse": ["jl"],
    "json_array_length": ["jl"],
    "json_array_contains": ["jl", "2"],
    "json_array_get": ["jl", "1"],
    "parse_duration": ["concat(nt, ' s')"],
    "split_to_map": ["'k=' || tx", "','", "'='"],
    "split_to_multimap": ["'k=' || tx", "','", "'='"],
    "url_extract_parameter": ["ur", "'a'"],
    "luhn_check": ["nt"],
    "chr": ["bi + 64"],
    "codepoint": ["CAST(substr(tx, 1, 1) AS varchar(1))"],
    "date": ["ts"],
    "width_bucket": ["db", "0E0", "1E3", "10"],
}
"""Arguments of functions that do not accept every value of their types."""

SPARK: Final = {
    "arbitrary": "any_value({0})",
    "cardinality": "size({0})",
    "chr": "char({0})",
    "codepoint": "ascii({0})",
    "contains": "array_contains({0}, {1})",
    "date_add": "timestampadd(DAY, {1}, {2})",
    "date_diff": "timestampdiff(HOUR, {1}, {2})",
    "date_format": "date_format({0}, 'yyyy-MM-dd HH:mm')",
    "date_parse": "to_timestamp_ntz({0}, 'yyyy-MM-dd HH:mm:ss')",
    "format_datetime": "date_format({0}, 'yyyy-MM-dd HH:mm')",
    "from_hex": "unhex({0})",
    "from_base64": "unbase64({0})",
    "from_utf8": "decode({0}, 'UTF-8')",
    "is_nan": "isnan({0})",
    "json_format": "{0}",
    "json_parse": "parse_json({0})",
    "at_timezone": "from_utc_timestamp({0}, {1})",
    "with_timezone": "to_utc_timestamp({0}, {1})",
    "parse_datetime": "to_timestamp({0}, 'yyyy-MM-dd HH:mm:ss')",
    "from_iso8601_date": "CAST({0} AS DATE)",
    "from_iso8601_timestamp": "CAST({0} AS TIMESTAMP)",
    "from_unixtime": "timestamp_seconds({0})",
    "reverse": "reverse({0})",
    "strpos": "instr({0}, {1})",
    "to_base64": "base64({0})",
    "to_hex": "hex({0})",
    "to_utf8": "encode({0}, 'UTF-8')",
    "to_unixtime": "unix_micros(CAST({0} AS TIMESTAMP)) / 1000000D",
    "truncate": "CAST({0} AS BIGINT)",
    "url_decode": "url_decode({0})",
    "url_encode": "url_encode({0})",
    **{
        f"url_extract_{part}": f"parse_url({{0}}, '{word}')"
        for part, word in {
            "fragment": "REF",
            "host": "HOST",
            "path": "PATH",
            "protocol": "PROTOCOL",
            "query": "QUERY",
        }.items()
    },
    "url_extract_parameter": "parse_url({0}, 'QUERY', {1})",
    "year_of_week": "extract(YEAROFWEEK FROM {0})",
    "yow": "extract(YEAROFWEEK FROM {0})",
}
"""Spark's nearest own function, if the name differs and `foreign_names` does not know it."""


@dataclass(frozen=True)
class Example:
    """A call or a cast to measure, in Trino's words, and its arguments."""

    text: str
    name: str
    arguments: tuple[str, ...]
    is_aggregate: bool = False
    target: Type | None = None
    suffix: str = ""


@dataclass(frozen=True)
class Timing:
    """The seconds of a call, and the view of rows used."""

    seconds: float
    view: str


@dataclass
class Clock:
    """Times queries of Spark and DuckDB; a timed query is not timed again."""

    spark: Any
    duck: Any
    rows: dict[str, int] = field(default_factory=dict)
    longest_first: float = LONG
    timings: dict[tuple[str, str | None], Timing | str] = field(default_factory=dict)

    def of_spark(self, query: str, view: str | None = None) -> Timing | str:
        """Return the time of a query over a view, by default over as many rows as are quick,
        or an error.
        """

        def run(rows: str) -> None:
            frame = self.spark.sql(
                query.replace("v_samples", f"v_{rows}").replace("samples_by_name", rows)
            )
            with _stopped(self.spark.sparkContext.cancelAllJobs):
                frame.write.format("noop").mode("overwrite").save()

        return self._timed(f"spark {query}", run, view)

    def of_duckdb(self, expression: str, view: str) -> Timing | str:
        """Return the time of an expression over a view, or an error."""

        def run(rows: str) -> None:
            with _stopped(self.duck.interrupt):
                self.duck.execute(
                    f"SELECT max(hash(x)) FROM (SELECT {expression} AS x FROM {rows})"
                )

        return self._timed(f"duckdb {expression}", run, view)

    def _timed(self, key: str, run: Callable[[str], None], view: str | None) -> Timing | str:
        if (key, view) not in self.timings:
            try:
                self.timings[key, view] = self._timing(run, view)
            except Exception as error:  # noqa: BLE001 - whatever an engine refuses is not measured, and the table says why
                self.timings[key, view] = str(error).split("\n")[0][:100]
        return self.timings[key, view]

    def _timing(self, run: Callable[[str], None], view: str | None) -> Timing:
        first = _seconds(lambda: run(VIEWS[0]))
        if view is None:
            view = VIEWS[(first <= self.longest_first) + (first <= self.longest_first / 2)]
        # The second run has Spark's compiled code.
        return Timing(_seconds(lambda: run(view)), view)


@contextmanager
def _stopped(stop: Callable[[], object]) -> Iterator[None]:
    """Call ``stop`` every second once the context exceeds its time: work may begin late."""
    is_over = threading.Event()

    def watch() -> None:
        seconds = LONGEST
        while not is_over.wait(seconds):
            stop()
            seconds = 1.0

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _seconds(run: Any) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def functions(rows: int, words: Sequence[str], seconds: float = 600) -> None:
    """Print the times of every function and cast, the measured rows, and the
    ratios.

    Args:
        rows: the maximum number of rows; slow calls get a hundredth or a tenth of a million.
        words: parts of the calls to measure; all if empty.
        seconds: after this time, no further function is measured.
    """
    import duckdb

    from rowmerge_nb.engine.spark.spark_session import create_session, stop_session

    session = create_session(cores=2)
    session.sparkContext.setLogLevel("OFF")
    try:
        with duckdb.connect() as duck, tempfile.TemporaryDirectory() as folder:
            clock = Clock(session, duck)
            _fill(clock, rows, folder)
            names = _spark_names(session), _duckdb_names(duck)
            chosen = [
                example
                for example in _examples()
                if not words or any(word in example.text.lower() for word in words)
            ]
            ends, lines = time.monotonic() + seconds, []
            for number, example in enumerate(chosen):
                left = ends - time.monotonic()
                if left < 0:
                    break
                clock.longest_first = min(LONG, left / (len(chosen) - number) / 2)
                lines.append(_line(clock, example, *names))
            print(
                "| function | rows | s | Spark's own | ratio | DuckDB's |"
                "\n| --- | ---: | ---: | ---: | ---: | ---: |"
            )
            for _, line in sorted(lines, key=lambda entry: -entry[0]):
                print(line)
            if unmeasured := chosen[len(lines) :]:
                print(
                    f"After {seconds:.0f} s, {len(unmeasured)} calls from {unmeasured[0].text} were not measured."
                )
    finally:
        stop_session(session)


def _fill(clock: Clock, rows: int, folder: str) -> None:
    columns = ", ".join(f"{text} AS {name}" for name, text in SAMPLES.values())
    zone = f"named_struct('instant', tz, 'zone', 'Europe/Berlin') AS {ZONED_COLUMN}"
    clock.rows = dict(zip(VIEWS, (min(FEW, rows), min(10 * FEW, rows), rows), strict=True))
    for view, number in clock.rows.items():
        samples = clock.spark.sql(
            f"SELECT *, {zone} FROM (SELECT {columns} FROM range(0, {number}, 1, 2))"
        ).cache()
        samples.count()
        samples.createOrReplaceTempView(view)
        numbered = (f"c{place}" for place in range(len(samples.columns)))
        samples.toDF(*numbered).createOrReplaceTempView(f"v_{view}")
        path = f"{folder}/{view}"
        samples.drop("tm", "iv", "iy", ZONED_COLUMN).write.parquet(path)
        clock.duck.execute(f"CREATE TABLE {view} AS SELECT * FROM read_parquet('{path}/*.parquet')")


def _examples() -> Iterator[Example]:
    seen = set()
    for kind, overload in listed():
        arguments = _arguments(overload)
        suffix = " OVER (PARTITION BY bi ORDER BY it)" if kind == "window" else ""
        text = f"{overload.name}({', '.join(arguments)}){suffix}"
        if text not in seen:
            seen.add(text)
            yield Example(text, overload.name, tuple(arguments), kind == "aggregate", suffix=suffix)
    for name in MOMENTS:
        text = f"{name}({', '.join(ARGUMENTS[name])})"
        if text not in seen:
            yield Example(text, name, tuple(ARGUMENTS[name]))
    yield from _casts()


CASTS: Final = (
    *("boolean", "tinyint", "smallint", "integer", "bigint", "decimal(18,2)", "decimal(38,10)"),
    *("real", "double", "varchar", "varchar(40)", "char(40)", "varbinary", "date", "time(3)"),
    *("timestamp(3)", "timestamp(3) with time zone", "uuid", "json", "array(varchar)"),
    "map(varchar,varchar)",
)
TEXTS: Final = {
    "boolean": "IF(bo, 'true', 'false')",
    **dict.fromkeys(("tinyint", "smallint"), "CAST(si AS varchar)"),
    **dict.fromkeys(("integer", "bigint"), "nt"),
    **dict.fromkeys(("decimal(18,2)", "decimal(38,10)", "real", "double"), "ft"),
    "date": "dt",
    "time(3)": "substr(mt, 12)",
    **dict.fromkeys(("timestamp(3)", "timestamp(3) with time zone"), "mt"),
    "uuid": "uu",
}
"""The texts as arguments of casts, by target."""


def _casts() -> Iterator[Example]:
    for name, column in COLUMN.items():
        if name in WORDS:
            continue
        for target_name in CASTS:
            source, target = parse_type(name), parse_type(target_name)
            if source != target and can_cast(source, target) and is_cast_supported(source, target):
                value = (
                    TEXTS.get(target_name, column) if source.base in {"varchar", "char"} else column
                )
                yield Example(f"CAST({value} AS {target_name})", "cast", (value,), target=target)
    for target_name in (
        "varchar",
        "date",
        "time(3)",
        "timestamp(3)",
        "timestamp(3) with time zone",
    ):
        yield Example(
            f"CAST({ZONED_COLUMN} AS {target_name})",
            "cast",
            (ZONED_COLUMN,),
            target=parse_type(target_name),
        )
    yield Example("sum(CAST(db AS decimal(18,2)))", "sum", ("CAST(db AS decimal(18,2))",), True)


def _arguments(overload: Overload) -> list[str]:
    fixed = ARGUMENTS.get(overload.name)
    if fixed and len(fixed) == len(overload.parameters):
        return fixed
    url = overload.name.startswith("url_extract")
    values = []
    for place, pattern in enumerate(overload.parameters):
        value = "ur" if url else _value(pattern, place)
        values.append(value)
    return values


def _value(pattern: str, place: int) -> str:
    if pattern.startswith("function"):
        return _lambda(pattern)
    if place and pattern.startswith("varchar"):
        return "'e'"
    if place and pattern in {"bigint", "integer"}:
        return "2"
    name = re.sub(r"\((?:x|p|y|6)\)", "", pattern)
    name = {
        "decimal(p,s)": "decimal(18,2)",
        "decimal(q,t)": "decimal(18,2)",
        "char": "char(12)",
        "time": "time(6)",
        "timestamp": "timestamp(6)",
        "timestamp with time zone": "timestamp(6) with time zone",
        "varchar(1)": "varchar",
        "varchar(z)": "varchar",
        "array(array(E))": "array(array(bigint))",
        "array(row(K,V))": "array(row(varchar, bigint))",
        "map(varchar,double)": "map(varchar, double)",
    }.get(name, name)
    if re.fullmatch(r"map\(\w+,\w+\)", name):
        name = "map(varchar, bigint)"
    if re.fullmatch(r"array\([A-Z]\d?\)", name):
        name = "array(bigint)"
    if re.fullmatch(r"[A-Z]|any", name):
        name = TYPES_OF_VARIABLES.get(name, "bigint")
    return COLUMN[name]


def _lambda(pattern: str) -> str:
    *parameters, result = re.split(r",(?![^(]*\))", pattern[len("function(") : -1])
    names = ("x", "y", "z")[: len(parameters)]
    body = {"boolean": f"{names[0]} IS NOT NULL", "integer": "0"}.get(result.strip(), names[0])
    return f"({', '.join(names)}) -> {body}"


def _line(
    clock: Clock, example: Example, in_spark: set[str], in_duckdb: set[str]
) -> tuple[float, str]:
    try:
        ours = clock.of_spark(_printed(example.text))
    except RowMergeError as error:
        reason = str(error).splitlines()[0][:90]
        return -1.0, f"| `{example.text}` | | not measured: {reason} | | | |"
    if isinstance(ours, str):
        return -1.0, f"| `{example.text}` | | not measured: {ours} | | | |"
    spark = _own(clock, example, in_spark, ours.view)
    duck = _duckdb(clock, example, in_duckdb, ours.view)
    ratio = ours.seconds / spark.seconds if spark else 0.0
    ratio_text = f"{ratio:.1f}" if spark else ""
    cells = (_cell(ours), _cell(spark), ratio_text, _cell(duck))
    line = f"| `{example.text}` | {clock.rows[ours.view]:,} | {' | '.join(cells)} |"
    return ratio or ours.seconds / 100, line


def _cell(timing: Timing | None) -> str:
    return "" if timing is None else f"{timing.seconds:.2f}"


def _printed(text: str) -> str:
    columns = Tables([])
    columns.columns = (
        *(ColumnMetadata(column, _type(name)) for name, column in COLUMN.items()),
        ColumnMetadata(ZONED_COLUMN, zoned(parse_type("timestamp(6) with time zone"))),
    )
    analysis = analyze(parse(f"SELECT {text} AS x FROM samples"), columns)
    assert isinstance(analysis, QueryAnalysis)
    assert analysis.tree is not None
    return print_query(analysis.tree)


def _type(name: str) -> Type:
    return parse_type("varchar" if name in WORDS else name)


def _own(clock: Clock, example: Example, names: set[str], view: str) -> Timing | None:
    text = _foreign(example, SPARK, names, spark=True)
    timing = clock.of_spark(f"SELECT {text} AS x FROM samples_by_name", view) if text else None
    return None if isinstance(timing, str) else timing


def _duckdb(clock: Clock, example: Example, names: set[str], view: str) -> Timing | None:
    text = _foreign(example, {}, names, spark=False)
    timing = clock.of_duckdb(text, view) if text else None
    return None if isinstance(timing, str) else timing


def _foreign(example: Example, templates: dict[str, str], names: set[str], *, spark: bool) -> str:
    """Return the call of another engine's nearest function, or nothing."""
    arguments = [_as_foreign(argument, spark=spark) for argument in example.arguments]
    if example.target is not None:
        value = f"{arguments[0]}.instant" if arguments[0] == ZONED_COLUMN else arguments[0]
        if example.target.base == "char":
            return f"rpad({value}, {example.target.parameters[0]}, ' ')"
        return _as_foreign(f"CAST({value} AS {example.target})", spark=spark)
    if example.name in templates:
        return templates[example.name].format(*arguments)
    own = next(
        (
            name
            for name in (
                example.name,
                *(f for f, words in FOREIGN.items() if words.partition("(")[0] == example.name),
            )
            if name in names
        ),
        None,
    )
    return f"{own}({', '.join(arguments)}){example.suffix}" if own else ""


def _as_foreign(text: str, *, spark: bool) -> str:
    words = {
        "varchar": "STRING" if spark else "VARCHAR",
        "varbinary": "BINARY" if spark else "BLOB",
        "real": "FLOAT",
        r"timestamp with time zone|timestamp\(\d\) with time zone": "TIMESTAMP"
        if spark
        else "TIMESTAMPTZ",
        r"timestamp\(\d\)": "TIMESTAMP_NTZ" if spark else "TIMESTAMP",
        r"time\(\d\)": "TIME",
        "json|uuid": "STRING" if spark else "VARCHAR",
        "integer": "INT",
    }
    for word, own in words.items():
        text = re.sub(rf"(?<=AS )(?:{word})(?=\))", own, text)
    if spark:
        text = re.sub(r"(array|map)\((.*)\)(?=\))", _nested, text)
    return re.sub(r"(?<=AS )varchar\((\d+)\)", "STRING" if spark else "VARCHAR", text)


def _nested(match: re.Match[str]) -> str:
    inner = match[2].replace("varchar", "STRING")
    return f"{match[1].upper()}<{inner}>"


def _spark_names(session: Any) -> set[str]:
    return {row[0].rpartition(".")[2] for row in session.sql("SHOW ALL FUNCTIONS").collect()}


def _duckdb_names(duck: Any) -> set[str]:
    return {
        name for (name,) in duck.execute("SELECT function_name FROM duckdb_functions()").fetchall()
    }
