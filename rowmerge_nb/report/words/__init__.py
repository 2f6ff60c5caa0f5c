"""Formatting for readers."""
