"""The statement asked of another engine: DuckDB or PostgreSQL run it over the same rows."""
