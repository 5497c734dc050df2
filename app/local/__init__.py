"""The desk of a home that is opened in this process."""
