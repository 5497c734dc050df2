"""Verdicts and findings as the screens' Markdown; every text from outside is shown literally."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.verdicts import Judged
from app.ui.wording import escaped, thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words import chunk as chunk_words
from app.words import gate as gate_words
from app.words.gate import SliceLine
from ingest.findings import Example, Finding
from ingest.records import ChunkRecord
from model_updates.gate.report import GateReport, GateRow, QueryChange, points

MOST_QUERIES = 12
_HEADER = ("slice", "things", *gate_words.VIEWS, "best so far", "verdict")


def verdict_view(judged: Judged) -> str:
    """Returns the verdict in large, the sentence that decided, whose report it is, and the first word of each rule."""
    report = judged.gate
    if report is None:
        return escaped(judged.sentence)
    lines = [
        f"## {gate_words.VERDICTS[report.verdict]}",
        f"**{escaped(gate_words.opening(report))}**",
        escaped(judged.sentence),
    ]
    if report.attempts > 1:
        said = "candidates were held against this live version; they share the error rate."
        lines.append(f"{report.attempts} {said}")
    return "\n\n".join([*lines, _rules(report)])


def reasons_view(report: GateReport) -> str:
    """Returns every sentence of every rule."""
    return "\n\n".join(
        f"**{escaped(rule.rule)}** ({rule.verdict})\n\n"
        + ("\n".join(f"- {escaped(reason)}" for reason in rule.reasons) or "- Nothing was asked.")
        for rule in gate_words.rules(report)
    )


def steps_view(report: GateReport) -> str:
    """Returns what to do next, and what promoting in spite of a review would record; empty when nothing is left."""
    parts = []
    if report.next_steps:
        parts.append(
            "### What to do next\n\n" + "\n".join(f"- {escaped(step)}" for step in report.next_steps)
        )
    owed = gate_words.debts(report)
    if owed:
        listed = "\n".join(f"- {escaped(one)}" for one in owed)
        parts.append(
            "### If you promote it in spite of this\n\nThese points are recorded with your name as accepted to "
            f"lose, and the best so far is lowered by them:\n\n{listed}"
        )
    return "\n\n".join(parts)


def slices_view(report: GateReport, say: Words = ENGLISH) -> str:
    """Returns a table per role: a line per slice, its views side by side; empty when no slice was measured."""
    tables = []
    header = [say.said(name) for name in _HEADER]
    for role, title in gate_words.ROLES.items():
        lines = gate_words.slice_lines(report, role)
        if lines:
            tables += [
                f"### {say.said(title)}",
                "\n".join([_row(header), _row(["---"] * len(header)), *(_line(line, say) for line in lines)]),
            ]
    return "\n\n".join([*tables, say.said(escaped(gate_words.legend(report)))]) if tables else ""


def moved_view(report: GateReport, base: str, say: Words = ENGLISH) -> str:
    """Returns the captions that lost and won most, each with its picture and the one that stands first now."""
    parts = []
    for title, moved in (("Lost most", report.lost), ("Won most", report.won)):
        if moved:
            cards = "\n".join(_moved(one, base, say) for one in moved[:MOST_QUERIES])
            parts.append(f"### {say.said(title)}\n\n{cards}")
    if not parts:
        return ""
    told = "Left the picture that a caption belongs to, right the one that stands first now where that is another."
    return "\n\n".join([*parts, say.said(told)])


def finding_view(finding: Finding, base: str) -> str:
    """Returns one card: the outcome, the sentence, its figures, and up to twelve pictures with their captions."""
    lines = [
        f"### {escaped(chunk_words.check_name(finding).capitalize())} · {chunk_words.OUTCOMES[finding.outcome]}",
        escaped(finding.sentence),
    ]
    if finding.figures:
        lines.append(f"*{escaped(chunk_words.figures(finding))}*")
    shown = finding.examples[: chunk_words.MOST_EXAMPLES]
    if shown:
        lines.append("\n".join(_example(example, base) for example in shown))
    if len(finding.examples) > len(shown):
        lines.append(f"… and {len(finding.examples) - len(shown)} more.")
    return "\n\n".join(lines)


def quiet_view(found: Sequence[Finding]) -> str:
    """Returns one card for several checks that have nothing to show, a paragraph each."""
    lines = [f"**{escaped(chunk_words.check_name(one))}**: {escaped(one.sentence)}" for one in found]
    return "\n\n".join([f"### {chunk_words.OUTCOMES[found[0].outcome].capitalize()}", *lines])


def standing_view(chunk: ChunkRecord) -> str:
    """Says what a chunk counts for, who said so, when and why."""
    return escaped(chunk_words.standing_sentence(chunk))


def _rules(report: GateReport) -> str:
    lines = []
    for rule in gate_words.rules(report):
        first = rule.reasons[0] if rule.reasons else "nothing was asked"
        said = "as said above" if first == report.first_reason else escaped(first)
        more = f" (and {len(rule.reasons) - 1} more)" if len(rule.reasons) > 1 else ""
        lines.append(f"- {gate_words.MARKS[rule.verdict]} **{escaped(rule.rule)}**: {said}{more}")
    return "\n".join(lines)


def _line(line: SliceLine, say: Words) -> str:
    best = gate_words.below_best(line)
    debts = [row.debt for row in line.views.values() if row.debt]
    if debts:
        best += "<br>" + say.said(f"accepted: {max(debts):.1f}")
    views = [_view(line.views.get(view), say) for view in gate_words.VIEWS]
    return _row([escaped(line.slice), str(line.things), *views, best, escaped(line.said(say.said))])


def _view(row: GateRow | None, say: Words) -> str:
    if row is None:
        return "–"
    level = f"{row.live:.1f} → {row.candidate:.1f}"
    if gate_words.is_unchanged(row):
        return f"{row.live:.1f}<br>{say.said('unchanged')}"
    first = "" if row.first_difference is None else f" · R@1 {points(row.first_difference)}"
    return f"{level}<br>{gate_words.change(row)}{first}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _moved(one: QueryChange, base: str, say: Words) -> str:
    pictures = [_picture(say.said("the picture of this caption"), one.image_id, base)]
    if one.first_image and one.first_image != one.image_id:
        pictures.append(_picture(say.said("what stands first now"), one.first_image, base))
    where = escaped(gate_words.slice_and_view(one))
    return _card(pictures, [f"“{escaped(one.text)}”", say.said(f"place **{gate_words.places(one)}**"), where])


def _example(example: Example, base: str) -> str:
    text = f"“{escaped(example.text)}” {escaped(example.language)}".rstrip() if example.text else ""
    return _card([_picture("an example", example.image_id, base)], [text, escaped(example.why)])


def _card(pictures: Sequence[str], lines: Sequence[str]) -> str:
    """One item of a list that the style sheet draws as a card."""
    return "- " + "  \n  ".join([" ".join(pictures), *filter(None, lines)])


def _picture(says: str, image_id: str, base: str) -> str:
    return f"![{says}]({thumbnail_url(base, image_id)})"
