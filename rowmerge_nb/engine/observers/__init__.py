"""Watching a statement's run: explanations, records, checks, and the observers of users."""
