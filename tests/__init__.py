"""The project's tests; they mirror the packages."""
