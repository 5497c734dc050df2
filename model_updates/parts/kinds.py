"""The kinds of inserts that an encoder can hold: one line each."""

from __future__ import annotations

from model_updates.inserts import Insert

KINDS: dict[str, type[Insert]] = {}
