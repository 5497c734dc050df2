"""Pictures with captions that the project draws itself."""
