"""Mirrors `app.commands`."""
