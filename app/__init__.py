"""What people touch: command line, web pages, REST, jobs and releases."""
