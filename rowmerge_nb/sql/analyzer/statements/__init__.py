"""Statements, one file per kind."""
