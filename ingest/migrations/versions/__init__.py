"""One step a schema number, in the order of these numbers."""
