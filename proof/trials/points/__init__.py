"""Faults at every disk or database operation of a statement, store by store, and the tables
afterwards.
"""
