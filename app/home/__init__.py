"""What lies on disk and who may change it: settings, the opened home, commits, releases, packages, locks."""
