"""Delta Lake tables, changed by DELETE_ROW_AND_INSERT_ROW: files that lose rows are rewritten
(copy-on-write).
"""
