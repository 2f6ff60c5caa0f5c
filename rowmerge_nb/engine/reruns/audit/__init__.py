"""Audits: another engine's committed statement runs here on the former table, and the results are
compared.
"""
