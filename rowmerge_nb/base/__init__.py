"""Foundations: errors, names, words, choices, and lazy loading."""
