"""One paper's continual-learning method per file."""
