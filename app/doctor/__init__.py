"""Everything that can be wrong with a home, looked for and said."""
