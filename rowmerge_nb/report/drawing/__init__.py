"""Drawings of plans and pages."""
