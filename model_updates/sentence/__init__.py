"""Models of sentence-transformers: an image tower of CLIP beside CLIP's own or a multilingual text tower."""
