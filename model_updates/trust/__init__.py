"""Judging pairs before anything is trained on them: plain statistics on captions and features, numpy alone."""
