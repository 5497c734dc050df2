"""Tests of model_updates."""
