"""Options of statements."""
