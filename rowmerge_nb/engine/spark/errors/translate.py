"""Translation of Spark's errors into Trino's words; much of it can only be derived from message
texts.
"""

from __future__ import annotations

import json
import re
from traceback import walk_tb
from typing import Final, TypeVar

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, SetupError, error_text
from rowmerge_nb.base.next_steps import (
    NO_NULLS,
    ONE_ROW_PER_KEY,
    Refusal,
    step_of_message,
)
from rowmerge_nb.engine.spark.errors.cast_formats import format_hint
from rowmerge_nb.engine.tasks.envelope import PROBLEM
from rowmerge_nb.sql.functions.regexp_groups import diagnosis, in_trinos_words
from rowmerge_nb.trace.raised import of_text

T = TypeVar("T", bound=RowMergeError)

_MARKED: Final = re.compile(r"\[\[([A-Z_]+)(?:@(\d+))?\]\] (?:((?s:.*?)) SQLSTATE: \w+|(.*))")
"""A marked error of ours; values in its message may have several lines."""
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")

_TOO_DEEP: Final = re.compile(
    r"^(?:Caused by: |: |.*\): )?java\.lang\.StackOverflowError|\[FAILED_TO_PARSE_TOO_COMPLEX\]",
    re.MULTILINE,
)
_SPLIT: Final = (
    "Split the statement, or move parts of it into a subquery or a separate table."
    " Your own Spark session allows more with spark.driver.extraJavaOptions=-Xss8m."
)

_TYPE_NAMES: Final = {"INT": "integer", "STRING": "varchar", "FLOAT": "real", "BINARY": "varbinary"}

_CODES: Final = {
    "DIVIDE_BY_ZERO": ("DIVISION_BY_ZERO", "Division by zero"),
    "REMAINDER_BY_ZERO": ("DIVISION_BY_ZERO", "Division by zero"),
    "INTERVAL_DIVIDED_BY_ZERO": ("DIVISION_BY_ZERO", "Division by zero"),
    "ARITHMETIC_OVERFLOW": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "A number is out of the range of its type",
    ),
    "BINARY_ARITHMETIC_OVERFLOW": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "A number is out of the range of its type",
    ),
    "INTERVAL_ARITHMETIC_OVERFLOW": ("NUMERIC_VALUE_OUT_OF_RANGE", "An interval is out of range"),
    "CAST_OVERFLOW": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "A number is out of the range of the type it is cast to",
    ),
    "CAST_OVERFLOW_IN_TABLE_INSERT": (
        "NUMERIC_VALUE_OUT_OF_RANGE",
        "A number is out of the range of the column's type",
    ),
    # Casts to decimal report their own errors: this is for sums and quotients.
    "NUMERIC_VALUE_OUT_OF_RANGE": ("NUMERIC_VALUE_OUT_OF_RANGE", "Decimal overflow"),
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": ("NUMERIC_VALUE_OUT_OF_RANGE", "Decimal overflow"),
    "CAST_INVALID_INPUT": ("INVALID_CAST_ARGUMENT", "A value cannot be cast"),
    "CANNOT_PARSE_TIMESTAMP": (
        "INVALID_FUNCTION_ARGUMENT",
        "A text is not a timestamp of the given format",
    ),
    "CONVERSION_INVALID_INPUT": (
        "INVALID_FUNCTION_ARGUMENT",
        "A text does not have the format that the function reads",
    ),
    "DATETIME_OVERFLOW": ("NUMERIC_VALUE_OUT_OF_RANGE", "Timestamp out of range"),
    "DATETIME_FIELD_OUT_OF_BOUNDS": (
        "INVALID_FUNCTION_ARGUMENT",
        "A field of a date or a time is out of range",
    ),
    "INVALID_TIMEZONE": ("NOT_SUPPORTED", "Time zone not supported"),
    "INVALID_FORMAT": (
        "INVALID_FUNCTION_ARGUMENT",
        "Escape character must be followed by '%', '_' or the escape character itself",
    ),
    "NULL_MAP_KEY": ("INVALID_FUNCTION_ARGUMENT", "map key cannot be null"),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": (
        "SUBQUERY_MULTIPLE_ROWS",
        "Scalar sub-query has returned multiple rows",
    ),
    "INVALID_ARRAY_INDEX": ("INVALID_FUNCTION_ARGUMENT", "Array subscript is out of bounds"),
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": (
        "INVALID_FUNCTION_ARGUMENT",
        "Array subscript is out of bounds",
    ),
    "CANNOT_DECODE_URL": ("INVALID_FUNCTION_ARGUMENT", "A text is not URL-encoded"),
    "INVALID_PARAMETER_VALUE": ("INVALID_FUNCTION_ARGUMENT", "A text is not a regular expression"),
    "INVALID_REGEXP_REPLACE": ("INVALID_FUNCTION_ARGUMENT", "Illegal replacement sequence"),
    "DUPLICATED_MAP_KEY": ("INVALID_FUNCTION_ARGUMENT", "Duplicate map keys are not allowed"),
}

_NOT_IN_SPARK: Final = {
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION": (
        (
            "A subquery cannot be an argument here: Spark allows none within"
            " functions that work element by element"
        ),
        "Compute it in the source: USING (SELECT s.*, (SELECT ...) AS x FROM ... s).",
    ),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_EXPRESSION_IN_JOIN_CONDITION": (
        "A row with columns of both sides of a join cannot be the operand of IN (query) here",
        "Write IN with one value, or compare in WHERE, over the joined rows.",
    ),
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": (
        (
            "A function that returns another value each time, like random(), or is"
            " computed in Java, like normalize, is not possible here: Spark allows it in"
            " SELECT and WHERE"
        ),
        "Compute it in the source: FROM (SELECT s.*, random() AS x FROM ... s).",
    ),
    "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION": (
        (
            "A function that returns another value each time, like random(), or is"
            " computed in Java, like normalize, cannot be aggregated here: Spark allows it in"
            " SELECT and WHERE"
        ),
        "Compute it in the source: FROM (SELECT s.*, random() AS x FROM ... s).",
    ),
    "UNSUPPORTED_CORRELATED_REFERENCE_DATA_TYPE": (
        (
            "A subquery that reads a map of an outer query is not supported by this"
            " engine: Spark does not support it"
        ),
        (
            "Pass it the part of the map that it needs: map_values(m) AS v in a"
            " subquery in FROM, and v in the other subquery."
        ),
    ),
    "CallMethodViaReflection should be initialized before eval": (
        (
            "normalize in a comparison with a query is not supported by this engine:"
            " Spark does not know that it is deterministic"
        ),
        "Compute it in a subquery in FROM, and compare its column.",
    ),
    "ACCESSING_OUTER_QUERY_COLUMN_IS_NOT_ALLOWED": (
        "A subquery reads a column of an outer query where Spark does not allow it",
        "Join what the subquery reads, or read the column in its WHERE.",
    ),
    "DUPLICATED_FIELD_NAME_IN_ARROW_STRUCT": (
        (
            "A row with two fields of one name is not supported by this engine: Arrow"
            " does not allow it"
        ),
        (
            "CAST it to a row whose fields have different names. Names without quotes"
            " are case-insensitive."
        ),
    ),
}
"""Trino's features that Spark or Arrow lack, by Spark's condition: message and hint."""

_OF_MAPS: Final = re.compile(r"SET_OPERATION_ON_MAP_TYPE|INVALID_ORDERING_TYPE|MAP_TYPE_INPUT")
"""Spark's conditions for keys with maps; the analyzer rejects other types without an order."""

_NEXT_STEPS: Final = {
    "DIVISION_BY_ZERO": "With NULLIF(divisor, 0), the quotient is NULL.",
    "INVALID_CAST_ARGUMENT": "TRY_CAST returns NULL for such values.",
    "NUMERIC_VALUE_OUT_OF_RANGE": (
        "Use a wider type, or TRY(...), which returns NULL for such values."
    ),
    "SUBQUERY_MULTIPLE_ROWS": (
        "Make the subquery return one row: aggregate it, or narrow its WHERE. IN"
        " compares with several rows."
    ),
}
"""Hints on invalid values, by error code."""


_REPEATED_KEY: Final = re.compile(r"UNIQUE constraint failed|duplicate key value violates")
"""What databases say about a repeated key, below a connector of any kind."""
_USUAL_STEPS: Final = {
    "TABLE_NOT_FOUND": (
        "SHOW TABLES lists the tables. A DataFrame is a source by the name of its"
        " variable; in a program, pass it: namespace={'name': frame}."
    ),
    "SCHEMA_NOT_FOUND": "SHOW SCHEMAS lists the schemas; CREATE SCHEMA makes one.",
    "DUPLICATE_COLUMN_NAME": "Name each column once.",
    "CONSTRAINT_VIOLATION": NO_NULLS,
}
"""Default hints by error code."""

_JAVA_GONE: Final = "Spark's Java process has ended: it crashed, was killed, or ran out of memory"
_NO_ANSWER: Final = re.compile(r"An error occurred while calling \S+")
_SHORT_OF_MEMORY: Final = re.compile(
    r"\[UNABLE_TO_ACQUIRE_MEMORY\] (.+?)\.? SQLSTATE|java\.lang\.OutOfMemoryError(?::"
    r" (.+))?|SparkOutOfMemoryError"
)
_MORE_MEMORY: Final = (
    "Join fewer tables at once, or write fewer literals. To give the toolkit's own"
    " Spark more memory, set the variable ROWMERGE_DRIVER_MEMORY, for example to 4g, before"
    " Spark starts."
)
_RUN_AGAIN: Final = (
    "Run the statement again. To give the toolkit's own Spark more memory, set the"
    " variable ROWMERGE_DRIVER_MEMORY, for example to 4g, before Spark starts."
)
_CONNECT_GONE: Final = re.compile(
    r"INVALID_HANDLE\.SESSION_|StatusCode\.UNAVAILABLE|failed to connect to all addresses",
    re.IGNORECASE,
)


def with_next_step(error: RowMergeError) -> RowMergeError:
    step = None
    if isinstance(error, ExecutionError):
        step = (
            error.next_step
            or (_REPEATED_KEY.search(error.message) and ONE_ROW_PER_KEY)
            or format_hint(error.message)
            or _NEXT_STEPS.get(error.code)
        )
    if step is not None and step not in (error.hint or ""):
        error.hint = " ".join(filter(None, [error.hint, step]))
    error.hint = error.hint or _USUAL_STEPS.get(error.code)
    return error


def java_gone(error: BaseException, step: str) -> ExecutionError | None:
    """Return the error for a dead Java process or Connect server, otherwise None."""
    name = type(error).__name__
    # Py4J reports a connection that ended during a call without a message of Java.
    is_lost = (
        name == "Py4JNetworkError"
        or (name == "Py4JError" and _NO_ANSWER.fullmatch(str(error)) is not None)
        or (
            isinstance(error, ConnectionError)
            and any(
                frame.f_globals.get("__name__", "").startswith("py4j.")
                for frame, _ in walk_tb(error.__traceback__)
            )
        )
    )
    if is_lost:
        # `LazySession.note_failure` adds the cause.
        return _with_cause(ExecutionError(_JAVA_GONE, step=step, hint=_RUN_AGAIN), error)
    if "Connect" in type(error).__name__ and _CONNECT_GONE.search(str(error)):
        return _with_cause(
            ExecutionError(
                "The Spark Connect server, or the session on it, is gone",
                step=step,
                hint=(
                    "Connect again, and pass the new session to a new engine:"
                    " Engine(spark=session)."
                ),
            ),
            error,
        )
    return None


def translate(error: BaseException, step: str) -> RowMergeError:
    if isinstance(error, RowMergeError):
        return error
    if (dead_java := java_gone(error, step)) is not None:
        return dead_java
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - if str() fails, the type is reported
        text = error_text(error)
    if PROBLEM.decode() in text:
        return _with_cause(problem_of(text), error)
    if (unfit := _unfit_worker(text)) is not None:
        return _with_cause(unfit, error)
    ours = (
        _refused_plan(type(error).__name__, text, step)
        or _invalid_value(text, step)
        or _ended(error, text, step)
    )
    return _with_cause(ours, error)


def _refused_plan(type_name: str, text: str, step: str) -> ExecutionError | None:
    """Return the error of a statement that Spark cannot plan, whatever the values are."""
    for condition, (message, hint) in _NOT_IN_SPARK.items():
        if condition in text:
            return ExecutionError(message, code="NOT_SUPPORTED", step=step, hint=hint)
    if _TOO_DEEP.search(text):
        message = (
            "The statement is too large for Spark: its expressions or queries are nested deeper"
            " than the stack of Spark's threads"
        )
        return ExecutionError(message, code="NOT_SUPPORTED", step=step, hint=_SPLIT)
    if type_name == "AnalysisException" and _OF_MAPS.search(text):
        return ExecutionError(
            "Map keys that contain maps are not supported by this engine: Spark does"
            " not support them",
            code="NOT_SUPPORTED",
            step=step,
            hint="Use the entries as the key: array_sort(map_entries(m)) is an array of rows.",
        )
    if type_name in {"ParseException", "AnalysisException"}:
        # An error before execution is a bug in the SQL that we print; it does not depend on the
        # user's rows.
        return ExecutionError(
            f"Spark refused the plan: {text.strip().splitlines()[0]}",
            step=step,
            hint="This is an error of rowmerge_nb; please report it.",
        )
    return None


def _invalid_value(text: str, step: str) -> ExecutionError | None:
    # The rest quotes our SQL, which contains the texts of errors that did not happen.
    marked = _MARKED.search(text.partition("\n== SQL")[0])
    if marked:
        code, origin, message, line = marked.groups()
        message = line if message is None else message
        ours = Refusal(code, message, step_of_message(message)).error(step)
        ours.origin = None if origin is None else int(origin)
        ours.raised = of_text(text)
        return ours
    for condition in _CONDITION.findall(text):
        name = condition.split(".")[0]
        if name in _CODES:
            code, message = _CODES[name]
            return ExecutionError(_with_detail(message, name, text), code=code, step=step)
    pattern = re.search(r"PatternSyntaxException: (.*?)(?: near index \d+)?(?:\n|$)", text)
    if pattern:
        return ExecutionError(
            in_trinos_words(pattern[1]), code="INVALID_FUNCTION_ARGUMENT", step=step
        )
    return None


def _ended(error: BaseException, text: str, step: str) -> ExecutionError:
    """Return the error of a failure not caused by values: a full disk, a connector's code, a dead
    process, or Spark.
    """
    if "No space left on device" in text or "Disk quota exceeded" in text:
        message = (
            "A disk became full while the statement ran: the disk of a table or of"
            " Spark's temporary files"
        )
        return ExecutionError(
            message,
            code="GENERIC_INSUFFICIENT_RESOURCES",
            step=step,
            hint="Make room on it, or set the variable TMPDIR to a directory on a larger"
            " disk and restart Python.",
        )
    if (short := _SHORT_OF_MEMORY.search(text)) is not None:
        message = f"Spark ran out of memory: {short[1] or short[2] or 'its Java has none left'}"
        return ExecutionError(
            message, code="EXCEEDED_LOCAL_MEMORY_LIMIT", step=step, hint=_MORE_MEMORY
        )
    if "PythonException" in type(error).__name__ or "Traceback (most recent call last)" in text:
        last = [
            line for line in text.splitlines() if re.match(r"\w[\w.]*(Error|Exception)?: ", line)
        ]
        message = f"Python code in a task failed: {last[-1] if last else type(error).__name__}"
        return ExecutionError(message, code="GENERIC_USER_ERROR", step=step)
    if "Python worker exited unexpectedly" in text:
        message = (
            "A Python process ended in the middle of a task: it crashed, was killed, or ran out of"
            " memory"
        )
        return ExecutionError(
            message,
            step=step,
            hint=(
                "Check for native code in the connector that ends the process, or"
                " give the machine's tasks more memory."
            ),
        )
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)$", text, re.MULTILINE)
    first = causes[-1] if causes else text.splitlines()[0] if text else type(error).__name__
    return ExecutionError(f"Spark could not run the statement: {first}", step=step)


def _with_detail(message: str, condition: str, text: str) -> str:
    if condition == "INVALID_PARAMETER_VALUE":
        pattern = re.search(
            r"is invalid: '(?:\(\?ud\))?(?:\(\?!\[[^]]*\]\)\(\?:(.*)\)|(.*?))'\. SQLSTATE",
            text,
            re.DOTALL,
        )
        return diagnosis((pattern[1] or pattern[2]).replace(r"\\", "\\")) if pattern else message
    if condition == "INVALID_REGEXP_REPLACE":
        by = re.search(r'replacement = "(.*)" and position = ', text, re.DOTALL)
        numbers = re.findall(r"(?<!\\)\$(\d)", by[1]) if by else []
        # Java does not name the unknown group: report the highest one.
        return (
            f"{message}: {f'unknown group {max(numbers)}' if numbers else by[1]}" if by else message
        )
    if condition == "DUPLICATED_MAP_KEY":
        key = re.search(r"Duplicate map key (.*?) was found", text)
        return f"Duplicate map keys ({key[1]}) are not allowed" if key else message
    if condition == "CAST_INVALID_INPUT":
        cast_error = re.search(
            r"The value ('.*?') of the type \"\w+\" cannot be cast to \"(\w+)", text
        )
        if cast_error:
            return (
                f"Cannot cast {cast_error[1]} to"
                f" {_TYPE_NAMES.get(cast_error[2], cast_error[2].lower())}"
            )
    return message


def was_cancelled(error: BaseException) -> bool:
    """Return whether Spark ended work because it was cancelled.

    >>> was_cancelled(RuntimeError("[OPERATION_CANCELED] Operation has been canceled.")), was_cancelled(RuntimeError("No"))
    (True, False)
    """
    return (
        "OPERATION_CANCELED" in str(error)
        or "cancelled part of cancelled job tag" in str(error).lower()
    )


def problem_of(text: str) -> SetupError:
    """Return the error of an unsuitable worker process.

    >>> problem_of('x rowmerge_nb problem: {"message": "It has Python 3.9", "hint": "Install another."} y').hint
    'Install another.'
    """
    problem, _ = json.JSONDecoder().raw_decode(text.partition(PROBLEM.decode())[2])
    return SetupError(problem["message"], code="CONFIGURATION_INVALID", hint=problem["hint"])


def _unfit_worker(text: str) -> SetupError | None:
    """Return the error of a worker in which no task can start: wrong Python, no Python, or no
    pyarrow.
    """
    versions = re.search(r"different version: (\d[\d.]*) than that in driver:? (\d[\d.]*)", text)
    if versions:
        return SetupError(
            f"The executors' Python workers have Python {versions[1]}; the driver has"
            f" {versions[2]}",
            code="CONFIGURATION_INVALID",
            hint=(
                f"Run Python {versions[2]} on the executors (spark.pyspark.python, PYSPARK_PYTHON)."
            ),
        )
    if program := re.search(r'Cannot run program "([^"]+)"', text):
        return SetupError(
            f"An executor cannot start Python: the program does not exist: '{program[1]}'",
            code="CONFIGURATION_INVALID",
            hint=(
                "Set spark.pyspark.python, or the variable PYSPARK_PYTHON where the"
                " workers start, to the executors' Python."
            ),
        )
    if library := re.search(
        r"(PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION)\] (.*?)(?:\n|$)", text
    ):
        return SetupError(
            f"A Python worker lacks a library: {library[2].strip()}",
            code="CONFIGURATION_INVALID",
            hint="Install it for the Python that the executors run.",
        )
    # PySpark imports these before a task; modules that a connector lacks are another error.
    if missing := re.search(
        r"^ModuleNotFoundError: No module named '(pyarrow|numpy|pandas)", text, re.MULTILINE
    ):
        return SetupError(
            f"A Python worker lacks a library: {missing[1]} is not installed for its Python",
            code="CONFIGURATION_INVALID",
            hint=(
                "Install it there, or set a Python that has it: spark.pyspark.python,"
                " or the variable PYSPARK_PYTHON."
            ),
        )
    return None


def _with_cause(ours: T, theirs: BaseException) -> T:
    ours.__cause__ = theirs
    return ours
