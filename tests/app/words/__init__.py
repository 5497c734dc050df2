"""Tests of app.words."""
