"""From text to meaning: parsing, name resolution, types and coercions, under Trino's rules and with
its error codes.
"""
