"""Tools that prove the engine: random statements, an executable reading of the standard, and other engines beside them."""
