"""Typed expressions as DuckDB SQL, by whitelist, for pages that are filtered and projected within a task."""
