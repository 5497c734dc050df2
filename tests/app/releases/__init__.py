"""Tests of app.releases."""
