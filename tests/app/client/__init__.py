"""Tests of app.client."""
