"""Queries and their parts."""
