"""Trino's functions by subject, with their equivalents in Spark SQL and DuckDB SQL."""
