"""Traces, audits and records as files: written whole or not at all, for their owner's eyes, opened as data."""
