"""Processes killed and interrupted, operations that fail, writers side by side: and what the tables hold afterwards."""
