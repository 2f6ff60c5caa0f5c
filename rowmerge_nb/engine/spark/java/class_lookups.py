"""Java's classes that PySpark asks for by name at every call.

Py4J keeps none of them: each time, Java looks for the name in every package that is imported, and
for that in every jar on its class path. A small statement asks some seventy times, which takes
more than a tenth of its time.
"""

from __future__ import annotations

from typing import Any, Final

_LOOKUPS: Final = (
    ("PythonErrorUtils",),
    ("PythonSQLUtils",),
    ("PythonUtils",),
    ("SimplePythonFunction",),
    ("functions",),
    ("org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",),
    ("org.apache.spark.sql.classic.SparkSession",),
    ("org.apache.spark.sql.execution.python.UserDefinedPythonFunction",),
    ("org.apache.spark.sql.functions",),
    ("py4j", "reflection", "TypeUtil"),
)
"""Attributes of PySpark's view of Java; names with dots are one attribute."""


def keep_java_classes(session: Any) -> None:
    """Store the classes as attributes of the session's view of Java, once per Java process."""
    view = getattr(session, "_jvm", None)
    if view is None or _LOOKUPS[-1][0] in vars(view):
        return
    for names in _LOOKUPS:
        holder = view
        for name in names:
            attribute = getattr(holder, name)
            setattr(holder, name, attribute)
            holder = attribute
