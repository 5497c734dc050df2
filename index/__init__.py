"""Where we look: vectors in, image ids out."""
