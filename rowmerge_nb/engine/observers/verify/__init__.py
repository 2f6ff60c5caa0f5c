"""Verification: DuckDB or PostgreSQL run the statement on the same rows."""
