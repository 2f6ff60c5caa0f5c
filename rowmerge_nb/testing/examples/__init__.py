"""Example connectors to copy into a cell."""
