"""The content of a report, without markup."""
