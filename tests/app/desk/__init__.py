"""Tests of app.desk."""
