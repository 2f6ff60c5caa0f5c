"""Iceberg tables of format version 2, changed by DELETE_ROW_AND_INSERT_ROW: data files and position
delete files (merge-on-read).
"""
