"""Connectors to start from: copy the lines of one into a cell."""
