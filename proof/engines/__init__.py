"""Engines that run a statement: the one under test, DuckDB, PostgreSQL, Trino."""
