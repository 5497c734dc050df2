"""Tests of app.learning."""
