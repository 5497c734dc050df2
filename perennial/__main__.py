"""`python -m perennial`: the command line."""

from perennial import main

main()
