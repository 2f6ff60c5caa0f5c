"""What Tab offers in cells of ``%%merge`` and behind ``%merge``."""
