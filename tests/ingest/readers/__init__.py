"""Tests of what reads uploads."""
