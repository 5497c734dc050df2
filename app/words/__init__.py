"""How records are said to people: the same words for terminal and page."""
