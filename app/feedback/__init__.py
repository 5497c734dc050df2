"""What people say of answers, in which languages they ask, and the candidate in the shadow."""
