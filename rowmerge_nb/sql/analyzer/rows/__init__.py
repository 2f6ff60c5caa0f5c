"""Rows of VALUES: constants as columns of data, and rows that are computed."""
