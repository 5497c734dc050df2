"""How the model learns without forgetting."""
