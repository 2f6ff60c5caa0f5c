"""Connector plugins of Trino, run in a Java process of their own."""
