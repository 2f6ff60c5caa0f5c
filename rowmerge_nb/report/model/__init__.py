"""The content of a report, without markup: every number and every sentence, for all renderers."""
