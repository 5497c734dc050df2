"""Work in processes of its own: submitting, following, resuming and running jobs."""
