"""The explorer: a statement seen row by row and step by step, in a notebook or in a file of its own."""
