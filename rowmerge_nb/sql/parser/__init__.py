"""From text to the tree, with Trino's syntax errors at Trino's positions."""
