"""Plans: the one model of what a statement does. What is drawn is what runs."""
