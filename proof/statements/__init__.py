"""Statements as data: the model, random ones, how they are written for each engine, and smaller ones that show the same."""
