"""The folders on disk: homes, releases, commits, and what makes a change of them survive a power cut."""
