"""Queries and their parts: relations, the SELECT list, grouping, windows, recursion."""
