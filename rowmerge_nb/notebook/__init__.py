"""The magics ``%%merge`` and ``%merge`` for Jupyter and IPython."""
