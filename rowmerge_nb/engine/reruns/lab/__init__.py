"""The lab: one statement over a grid of layouts, stores and changes."""
