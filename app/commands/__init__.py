"""The verbs of the command line, one file per group; each asks the application and shows the answer."""
