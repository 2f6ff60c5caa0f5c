"""What proves the project, and only this project runs: random statements, an oracle, other engines, and trials with processes that are killed."""
