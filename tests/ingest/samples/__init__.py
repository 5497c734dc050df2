"""Tests of the drawn and rendered samples."""
