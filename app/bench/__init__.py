"""The benchmark: sets of strategies over sequences of chunks, paired by query and by seed."""
