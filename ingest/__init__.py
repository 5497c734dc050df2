"""Pairs in, pairs out: reading, checking and storing pictures and captions."""
