"""Tests of app.language."""
