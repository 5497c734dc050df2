"""Tests of app.demo."""
