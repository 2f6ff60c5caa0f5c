"""Killed and interrupted processes, failing operations, concurrent writers, and the tables
afterwards.
"""
