"""A gate report as people are shown it: of their own pictures, and of the built-in checks what they lost."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from app.desk.probes import DOMAIN
from ingest.sentence import Sentence, phrase
from model_updates.gate.report import GateReport, QueryChange, Verdict, owed

BUILT_IN = phrase("built-in checks")
_NAMED = re.compile(rf"[\w-]+/{DOMAIN}\b( \(\w+\))?")
Report = TypeVar("Report", bound=GateReport)


def is_built_in(slice_name: str) -> bool:
    """Whether a slice, such as `en/probes`, is one of the built-in checks."""
    return slice_name.rpartition("/")[2] == DOMAIN


def shown_report(report: Report) -> Report:
    """Returns a report without the built-in checks that passed and their captions; those that lost are named so."""
    indebted = [row for row, _ in owed(report)]
    rows = [
        replace(row, slice=_said(row.slice))
        for row in report.rows
        if not is_built_in(row.slice) or row.verdict is not Verdict.PROMOTE or row in indebted
    ]
    rules = [replace(rule, reasons=tuple(map(_said, rule.reasons))) for rule in report.rules]
    return replace(
        report,
        rows=tuple(rows),
        rules=tuple(rules),
        next_steps=tuple(map(_said, report.next_steps)),
        lost=_own(report.lost),
        won=_own(report.won),
    )


Moved = TypeVar("Moved", bound=QueryChange)


def _own(moved: tuple[Moved, ...]) -> tuple[Moved, ...]:
    return tuple(one for one in moved if not is_built_in(one.slice))


def _said(sentence: str) -> str:
    """Returns a sentence, or the name of a slice, that calls the built-in checks so."""
    if isinstance(sentence, Sentence):
        values = {
            name: _said(value) if isinstance(value, str) else value for name, value in sentence.values.items()
        }
        return Sentence(sentence.template, **values)
    return BUILT_IN if _NAMED.fullmatch(sentence) else _NAMED.sub(BUILT_IN, sentence)
