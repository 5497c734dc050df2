"""The gate: statistics that decide whether a candidate goes live, and the report that explains it."""
