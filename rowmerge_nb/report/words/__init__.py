"""Formatting for readers: sentences with roles, values, columns of fixed-width text."""
