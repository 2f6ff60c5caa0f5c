"""Running a statement again, comparing two runs of it, and taking it back."""
