"""Expressions as DuckDB SQL, by whitelist, for pages within a task."""
