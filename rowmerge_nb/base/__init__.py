"""What everything else rests on: errors, names, words, choices, and how they are loaded."""
