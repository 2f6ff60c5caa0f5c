"""The program of the host process: it runs Java and the plugin, and answers requests."""
