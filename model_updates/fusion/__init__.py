"""The fusion encoder: reads a text and a picture together, word by word and patch by patch."""
