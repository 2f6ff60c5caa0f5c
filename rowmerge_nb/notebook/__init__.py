"""The magics ``%%merge`` and ``%merge``: options, display, progress and completion in Jupyter and IPython."""
