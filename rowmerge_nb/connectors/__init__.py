"""Connectors: stores behind the contract of `rowmerge_nb.spi`."""
