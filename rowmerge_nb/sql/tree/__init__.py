"""Syntax trees of statements; names are not resolved yet."""
