"""What a report shows, without markup: every number and every sentence, for all renderers."""
