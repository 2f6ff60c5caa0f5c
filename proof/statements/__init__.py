"""Statements as data: the model, random statements, their text per engine, and reduction."""
