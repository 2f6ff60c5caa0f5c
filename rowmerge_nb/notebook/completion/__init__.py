"""Tab completion in ``%%merge`` cells and after ``%merge``."""
