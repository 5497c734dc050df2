"""Verdicts and findings as the screens' Markdown; every text from outside is shown literally."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.desk.verdicts import Judged
from app.ui.wording import escaped, moment, thumbnail_url
from app.ui.words import ENGLISH, Words
from app.words import chunk as chunk_words
from app.words import gate as gate_words
from app.words.gate import JudgedSlice
from app.words.language_names import name_in
from app.words.verdict import question, verdict_sentences
from ingest.findings import Example, Finding, Outcome
from ingest.records import ChunkRecord
from ingest.release_words import ReleaseWord
from ingest.sentence import phrase, template
from model_updates.gate.report import GateReport, GateRow, QueryChange, points, same_thing

MOST_QUERIES = 12
_RELEASE_SAID = {
    "kept": template("Kept by {name}, {time}"),
    "rejected": template("Rejected by {name}, {time}"),
    "pinned": template("Pinned by {name}, {time}"),
    "unpinned": template("Unpinned by {name}, {time}"),
}
_QUIET = {
    Outcome.REJECT: phrase("Evidence against it"),
    Outcome.HOLD: phrase("Needs a decision"),
    Outcome.UNKNOWN: phrase("Unclear"),
    Outcome.ACCEPT: phrase("Nothing against it"),
}
_HEADER = ("slice", "things", *gate_words.VIEWS, "best so far", "verdict")


def verdict_view(judged: Judged, say: Words = ENGLISH, *, waits: bool = False, is_live: bool = False) -> str:
    """Returns in large what changed and what is asked, then the gate's word and whose report it is.

    Args:
        judged: what the gate said, and of what.
        say: the words.
        waits: whether a person is asked to make it live.
        is_live: whether it is.
    """
    report = judged.gate
    if report is None:
        return escaped(say.said(judged.sentence))
    told = verdict_sentences(report, lambda language: name_in(language, say.language))
    asked = question(report, waits=waits, is_live=is_live)
    said = " ".join(escaped(say.said(one)) for one in (*told, asked))
    mark = f"{gate_words.MARKS[report.verdict]} **{say.said(gate_words.VERDICTS[report.verdict])}**"
    return f"## {said}\n\n{mark} · {escaped(say.said(judged.sentence))}"


def reasons_view(report: GateReport, say: Words = ENGLISH) -> str:
    """Returns the sentence that decided, each rule's first one, and then every sentence of every rule."""
    first = f"**{escaped(say.said(gate_words.opening(report)))}**"
    attempts = say(
        "It was judged {count} times whether something may follow this live version; all times share the error rate.",
        count=report.attempts,
    )
    every = "\n\n".join(
        f"**{escaped(say.said(rule.rule))}** ({say.said(str(rule.verdict))})\n\n"
        + _listed(rule.reasons or [phrase("Not checked.")], say)
        for rule in gate_words.rules(report)
    )
    return "\n\n".join([first, *([attempts] if report.attempts > 1 else []), _rules(report, say), every])


def steps_view(report: GateReport, say: Words = ENGLISH) -> str:
    """Returns what to do next, and what promoting in spite of a review would record; empty when nothing is left."""
    parts = []
    if report.next_steps:
        parts += [f"### {say('What to do next')}", _listed(report.next_steps, say)]
    owed = gate_words.debts(report)
    if owed:
        recorded = say(
            "These losses, in points, are recorded with your name, and the best so far is lowered by them:"
        )
        parts += [f"### {say('If you promote it anyway')}", recorded, _listed(owed, say)]
    return "\n\n".join(parts)


def _listed(sentences: Iterable[str], say: Words) -> str:
    return "\n".join(f"- {escaped(say.said(one))}" for one in sentences)


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
    return "\n\n".join([*tables, escaped(say.said(gate_words.legend(report)))]) if tables else ""


def moved_view(report: GateReport, base: str, say: Words = ENGLISH) -> str:
    """Returns the captions that lost and won most, each with its picture and the one that stands first now."""
    return moved_cards(report.lost[:MOST_QUERIES], report.won[:MOST_QUERIES], base, say)


def moved_cards(
    lost: Sequence[QueryChange],
    won: Sequence[QueryChange],
    base: str,
    say: Words,
    *,
    names_slice: bool = True,
) -> str:
    """Returns captions that lost and won as cards; empty when there are none.

    Args:
        lost: captions, what lost most first.
        won: the same of what won.
        base: address that the browser reached us by.
        say: the words.
        names_slice: whether each card says its slice.
    """
    parts = []
    for title, moved in ((say("Lost most"), lost), (say("Won most"), won)):
        if moved:
            cards = "\n".join(_moved(one, base, say, names_slice=names_slice) for one in moved)
            parts.append(f"### {title}\n\n{cards}")
    if not parts:
        return ""
    told = say(
        "Left: the picture that a caption belongs to. Right: the one that comes first now, if it is another."
    )
    return "\n\n".join([*parts, told])


def finding_view(finding: Finding, base: str, say: Words = ENGLISH) -> str:
    """Returns one card: the outcome, the sentence, its figures, and up to twelve pictures with their captions."""
    check = say.said(chunk_words.check_name(finding))
    check = check[:1].upper() + check[1:]
    lines = [
        f"### {escaped(check)} · {say.said(chunk_words.OUTCOMES[finding.outcome])}",
        escaped(say.said(finding.sentence)),
    ]
    if finding.figures:
        lines.append(f"*{escaped(chunk_words.figures(finding))}*")
    shown = finding.examples[: chunk_words.MOST_EXAMPLES]
    if shown:
        lines.append("\n".join(_example(example, base, say) for example in shown))
    if len(finding.examples) > len(shown):
        lines.append(say("… and {count} more.", count=len(finding.examples) - len(shown)))
    return "\n\n".join(lines)


def quiet_view(found: Sequence[Finding], say: Words = ENGLISH) -> str:
    """Returns one card for several checks that have nothing to show, a paragraph each."""
    lines = [
        f"**{escaped(say.said(chunk_words.check_name(one)))}**: {escaped(say.said(one.sentence))}"
        for one in found
    ]
    return "\n\n".join([f"### {say.said(_QUIET[found[0].outcome])}", *lines])


def check_view(chunk: ChunkRecord, waiting: int, say: Words = ENGLISH) -> str:
    """Returns in large whether a chunk can be taught, and that `waiting` of its held pairs wait for a person."""
    said = chunk_words.check_verdict(chunk, waiting, lambda language: name_in(language, say.language))
    return "## " + " ".join(escaped(say.said(one)) for one in said)


def chunk_title(chunk: ChunkRecord, say: Words) -> str:
    """Returns how a chunk is headed."""
    return say("Chunk `{chunk}`", chunk=chunk.id)


def standing_view(chunk: ChunkRecord, say: Words = ENGLISH) -> str:
    """Says what a chunk counts for, who said so, when and why."""
    return escaped(say.said(chunk_words.standing_sentence(chunk)))


def _rules(report: GateReport, say: Words) -> str:
    lines = []
    for rule in gate_words.rules(report):
        first = rule.reasons[0] if rule.reasons else phrase("not checked")
        said = say("as said above") if first == report.first_reason else escaped(say.said(first))
        if len(rule.reasons) > 1:
            said += " " + say("(and {count} more)", count=len(rule.reasons) - 1)
        lines.append(f"- {gate_words.MARKS[rule.verdict]} **{escaped(say.said(rule.rule))}**: {said}")
    return "\n".join(lines)


def _line(line: JudgedSlice, say: Words) -> str:
    best = gate_words.below_best(line)
    debts = [row.debt for row in line.views.values() if row.debt]
    if debts:
        best += "<br>" + say("accepted: {points}", points=f"{max(debts):.1f}")
    views = [_view(line.views.get(view), say) for view in gate_words.VIEWS]
    return _row([escaped(say.said(line.slice)), str(line.things), *views, best, escaped(line.said(say.said))])


def _view(row: GateRow | None, say: Words) -> str:
    if row is None:
        return "–"
    level = f"{row.live:.1f} → {row.candidate:.1f}"
    if gate_words.is_unchanged(row):
        return f"{row.live:.1f}<br>{say('unchanged')}"
    first = "" if row.first_difference is None else f" · R@1 {points(row.first_difference)}"
    things = same_thing(row)
    told = f"<br>{say('same thing among ten: {share}', share=things)}" if things else ""
    return f"{level}<br>{gate_words.change(row)}{first}{told}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _moved(one: QueryChange, base: str, say: Words, *, names_slice: bool) -> str:
    pictures = [_picture(say("the picture of this caption"), one.image_id, base)]
    if one.first_image and one.first_image != one.image_id:
        pictures.append(_picture(say("what comes first now"), one.first_image, base))
    place = say("place **{before} → {after}**", before=one.live_rank, after=one.candidate_rank)
    where = escaped(gate_words.slice_and_view(one)) if names_slice else ""
    return _card(pictures, [f"“{escaped(one.text)}”", place, where])


def _example(example: Example, base: str, say: Words) -> str:
    text = f"“{escaped(example.text)}” {escaped(example.language)}".rstrip() if example.text else ""
    return _card(
        [_picture(say("an example"), example.image_id, base)], [text, escaped(say.said(example.why))]
    )


def _card(pictures: Sequence[str], lines: Sequence[str]) -> str:
    """One item of a list that the style sheet draws as a card."""
    return "- " + "  \n  ".join([" ".join(pictures), *filter(None, lines)])


def _picture(says: str, image_id: str, base: str) -> str:
    return f"![{says}]({thumbnail_url(base, image_id)})"


def release_word_line(word: ReleaseWord, say: Words = ENGLISH) -> str:
    """Returns what somebody said of a release, with when and why: "Rejected by ada, 2026-11-21 10:00: too slow"."""
    said = say(_RELEASE_SAID[word.said], name=word.by, time=moment(word.created))
    note = f": {word.why.rstrip('.')}" if word.why else ""
    return escaped(f"{said}{note}.")
