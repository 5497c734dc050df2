"""Queries: what is asked, and how it is answered from one snapshot and the catalog."""
