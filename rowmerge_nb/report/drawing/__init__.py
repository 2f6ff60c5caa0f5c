"""Drawings of plans and page channels: DOT, laid out and converted to SVG."""
