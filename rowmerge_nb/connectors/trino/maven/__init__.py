"""Plugins of Trino by Maven coordinates: their jars, resolved, downloaded and kept."""
