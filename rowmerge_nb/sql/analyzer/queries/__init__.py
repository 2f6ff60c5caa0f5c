"""Queries and what they are made of: relations, the SELECT list, grouping, windows, recursion."""
