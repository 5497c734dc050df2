"""Tests of app.feedback."""
