"""The explorer of a statement, as a widget or a file."""
