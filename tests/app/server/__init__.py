"""Tests of app.server."""
