"""The explorer: a statement row by row and step by step, as a widget or a file."""
