"""Tests of app.doctor."""
