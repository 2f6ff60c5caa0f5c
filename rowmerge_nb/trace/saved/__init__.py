"""Traces, audits and records as files: written atomically, readable only by their owner, opened as
data.
"""
