"""Running statements: one file per kind, and what all of them share."""
