"""Typed expressions as Spark SQL that means what Trino means."""
