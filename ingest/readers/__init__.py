"""One file per container format."""
