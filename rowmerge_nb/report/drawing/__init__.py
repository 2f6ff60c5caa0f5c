"""Drawings: the plan and the channels of pages as DOT, laid out and made into SVG."""
