"""What people touch: command line, web pages, REST, jobs and releases."""

DISTRIBUTION = "perennial-search"
"""Under which name Perennial is installed; `perennial` is somebody else's on PyPI."""
