"""From text to the tree: readers over tokens that refuse what Trino refuses, where Trino refuses it."""
