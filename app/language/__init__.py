"""Which language a query is in, and how its words are read."""
