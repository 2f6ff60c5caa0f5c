"""Typed expressions as Spark SQL with Trino's semantics."""
