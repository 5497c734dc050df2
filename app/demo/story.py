"""The demo's story as one list of steps; the script and the guided page both play it.

A step acts, prints its numbers and checks its claims. A claim is checked on what is on the disk after the step, and
can fail: a step that does not keep its promise says so, and the script ends there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from app.demo.player import DEMO, FIRST_RESULTS, HEADLINE, PAINTED_DOMAIN, THINGS, Asked, Player
from app.learning import going_live
from app.learning.outcomes import UpdateOutcome
from app.search import Snapshot, compare
from ingest.samples.emoji import colour_emoji_font
from ingest.samples.scenes import caption, partial_caption
from model_updates.recalls import TEXT_RECALLS

ENGLISH_CHUNK = "English scenes"
EMOJI_CHUNK = "Emoji"
# In percent of held-out scenes, asked for in the whole gallery: how often the right picture is among the first five.
FOUND = 60.0  # at least, where search is said to work
NOT_FOUND = 15.0  # at most, where it is said to fail
SWITCH_SECONDS = 10.0  # going back, or forward again, takes at most this
COMPARED = 20
THINGS_ASKED = partial_caption(HEADLINE, "en", THINGS)


@dataclass(frozen=True)
class Check:
    """A claim, and whether it holds."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Shown:
    """A question with the pictures that were found, for a page to show."""

    title: str
    image_ids: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What a step found.

    Attributes:
        lines: its numbers, as sentences.
        checks: its claims.
        shown: questions and pictures.
        seconds: what it took.
    """

    lines: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    shown: tuple[Shown, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every claim holds."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Findings:
        """Rebuilds what `to_json` wrote."""
        return cls(
            tuple(document["lines"]),
            tuple(Check(**check) for check in document["checks"]),
            tuple(Shown(one["title"], tuple(one["image_ids"])) for one in document["shown"]),
            float(document["seconds"]),
        )


@dataclass
class Notebook:
    """Collects the findings of a step while it runs."""

    lines: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)

    def write(self, line: str) -> None:
        """Notes a line of numbers."""
        self.lines.append(line)

    def claim(self, claim: str, holds: bool) -> None:
        """Notes a claim and whether it holds."""
        self.checks.append(Check(claim, bool(holds)))

    def show(self, asked: Asked) -> str:
        """Notes a question with its pictures; returns what was found, in words."""
        answer = asked.answer
        right = "is not among" if asked.rank is None else f"is number {asked.rank} of"
        said = (
            f"“{answer.query}” (read as {answer.language}): the right picture {right} the first {len(answer.hits)}, "
            f"and {asked.alike} of them show {THINGS_ASKED}."
        )
        self.shown.append(Shown(f"{answer.release}: {said}", tuple(hit.image_id for hit in answer.hits)))
        return said


@dataclass(frozen=True)
class Step:
    """One step of the story.

    Attributes:
        name: short and stable.
        title: what happens.
        tells: a sentence or two for the visitor.
        act: does it.
    """

    name: str
    title: str
    tells: str
    act: Callable[[Player, Notebook], None]

    def play(self, player: Player) -> Findings:
        """Acts and returns what was found."""
        started = time.monotonic()
        notes = Notebook()
        self.act(player, notes)
        seconds = round(time.monotonic() - started, 1)
        return Findings(tuple(notes.lines), tuple(notes.checks), tuple(notes.shown), seconds)


# ------------------------------------------------------------------------------------------------- the steps


def prepare(player: Player) -> None:
    """Brings the first pictures in, unless they are there."""
    known = {chunk.name for chunk in player.workspace.catalog.chunks()}
    if ENGLISH_CHUNK not in known:
        drawn = player.hand_in(ENGLISH_CHUNK, player.cast.gallery(), "en")
        # English is known without teaching; what the demo has drawn may measure that it stays so.
        player.accept(drawn.report.chunk_id, "its captions were drawn with its pictures", measure=True)
    font = colour_emoji_font()
    if font is not None and EMOJI_CHUNK not in known:
        player.hand_in_emoji(EMOJI_CHUNK, font)


def english_works(player: Player, notes: Notebook) -> None:
    """English search works from the first minute."""
    prepare(player)
    gallery = len(player.workspace.catalog.gallery_ids())
    emoji = "" if colour_emoji_font() else " Emoji join them where the system has a colour emoji font."
    notes.write(f"{gallery} pictures are in the gallery, all drawn on this machine.{emoji}")
    _ask(player, notes, "en", works=True)
    recall = player.recall("en")
    _write_recall(notes, "English", recall)
    notes.claim("English R@1 is at least five times guessing", recall["t2i_r1"] >= 5 * recall["chance_r1"])


def german_fails(player: Player, notes: Notebook) -> None:
    """A language nobody taught is not understood."""
    _not_understood(player, notes, "de", "German")


def german_is_taught(player: Player, notes: Notebook) -> None:
    """The German chunk is taught, judged and goes live without a picture being embedded again."""
    _teach_language(player, notes, "de", "German")


def german_works(player: Player, notes: Notebook) -> None:
    """German is understood, English as well as before."""
    _understood(player, notes, "de", "German")
    _ask(player, notes, "en", works=True)


def japanese(player: Player, notes: Notebook) -> None:
    """The same for a language in another script."""
    _not_understood(player, notes, "ja", "Japanese")
    _teach_language(player, notes, "ja", "Japanese")
    _understood(player, notes, "ja", "Japanese")
    _ask(player, notes, "de", works=True)


def new_style(player: Player, notes: Notebook) -> None:
    """A new way of drawing gets an adapter of its own: its pictures alone are embedded again, no other vector moves."""
    style = player.cast.style
    added = player.hand_in(f"{style} drawings", player.cast.style_pictures(), "en")
    before, recall_before = player.slices(), player.recall("en", style)
    notes.write(
        f"{added.report.new_images} {style} drawings are in the gallery, found as the old encoder sees them."
    )
    old = player.snapshot()
    shares = {language: player.share_found(old, language) for language in ("en", "de", "ja")}
    outcome = _teach(player, notes, added.report.chunk_id, f"{style} drawings")
    _only_moved(player, notes, outcome, old, style)
    recall = player.recall("en", style)
    notes.write(
        f"English R@10 on {style} drawings: {recall_before['t2i_r10']:.1f} → {recall['t2i_r10']:.1f} percent."
    )
    notes.claim(f"{style} drawings are found better than before", _mean(recall) > _mean(recall_before))
    _kept(player, notes, before, taught={f"en/{style}"})
    live = player.snapshot()
    notes.write(notes.show(player.ask(live, HEADLINE, "en")))
    for language, share in shares.items():
        now = player.share_found(live, language)
        notes.write(
            f"In {language}, the right picture is among the first {FIRST_RESULTS} of {len(live.generation.ids)} in "
            f"{share:.0f} → {now:.0f} % of the answers."
        )


def wrong_captions(player: Player, notes: Notebook) -> None:
    """A chunk whose captions belong to other pictures is held back; taught all the same, it is turned away."""
    before, commit = player.slices(), _live(player)
    hits = player.ask(player.snapshot(), HEADLINE, "de", k=COMPARED).answer.hits
    added = player.hand_in("French with shuffled captions", player.cast.gallery(), "fr", shuffled=True)
    held = player.standing(added.report.chunk_id)
    notes.write(held.standing_why)
    notes.claim("its checks hold it before anything is learned from it", held.standing == "held")
    player.accept(added.report.chunk_id, "to see what the gate says")
    outcome = player.teach(added.report.chunk_id, "shuffled captions")
    notes.write(f"{outcome.strategy} learned for {outcome.seconds:.0f} s on {added.report.new_pairs} pairs.")
    notes.write(outcome.sentence)
    notes.claim("the gate rejects it", outcome.verdict == "reject")
    notes.claim("no release was made of it", outcome.release is None and outcome.commit is None)
    notes.claim(f"{commit[1]} is live as before, commit {commit[0]}", _live(player) == commit)
    notes.claim("every slice measures the same as before", player.slices() == before)
    again = player.ask(player.snapshot(), HEADLINE, "de", k=COMPARED).answer.hits
    notes.claim("a German question has the same answer, score for score", again == hits)


def compared(player: Player, notes: Notebook) -> None:
    """The release before German and the live one, side by side."""
    old, new = player.snapshot(_release_before(player, "de")), player.snapshot()
    answer = compare(old, new, caption(HEADLINE, "de"), k=COMPARED)
    asked = [player.judge(one, HEADLINE) for one in (answer.a, answer.b)]
    kinds = {
        "new": sum(move.rank_a is None for move in answer.moves),
        "gone": sum(move.rank_b is None for move in answer.moves),
        "moved": sum(move.rank_a != move.rank_b for move in answer.moves if move.rank_a and move.rank_b),
    }
    notes.write(
        f"“{answer.a.query}” in {answer.a.release} and {answer.b.release}: {100 * answer.overlap:.0f} % overlap in the "
        f"first {COMPARED}; {kinds['new']} pictures are new, {kinds['gone']} gone, {kinds['moved']} moved."
    )
    for one in asked:
        notes.write(f"  {one.answer.release}: {notes.show(one)}")
    measured = [player.slices(one.release.id) for one in (old, new)]
    for name in sorted(measured[0] | measured[1]):
        values = [f"{one[name]['t2i_r10']:.1f}" if name in one else "–" for one in measured]
        notes.write(f"  {name:<12} R@10 {values[0]:>6} → {values[1]:>6}")
    notes.claim(
        "the right picture is found by the new release alone",
        asked[0].rank is None and asked[1].rank is not None,
    )
    notes.claim("the new release finds more pictures of the same things", asked[1].alike > asked[0].alike)
    notes.claim("the two answers share less than half of their pictures", answer.overlap < 0.5)
    notes.claim(
        "German is measured in the new release alone",
        f"de/{PAINTED_DOMAIN}" in measured[1].keys() - measured[0],
    )


def back_and_forward(player: Player, notes: Notebook) -> None:
    """Rollback is one small file; forward again is another."""
    number, newest = _live(player)
    started = time.monotonic()
    back = going_live.rollback(player.workspace, why="the demo goes back", by=DEMO)
    old = player.snapshot()
    seconds_back = time.monotonic() - started
    found = player.share_found(old, "en")
    started = time.monotonic()
    forward = going_live.promote(player.workspace, newest, why="the demo goes forward", by=DEMO)
    new = player.snapshot()
    seconds_forward = time.monotonic() - started
    notes.write(
        f"Back to {back.release} in {seconds_back:.2f} s, forward to {newest} in {seconds_forward:.2f} s."
    )
    notes.claim("after going back another release answers", old.release.id == back.release != newest)
    notes.claim("it finds English as it did", found >= FOUND)
    notes.claim(f"after going forward {newest} answers again", new.release.id == newest == forward.release)
    notes.claim("each was a commit of its own", (back.number, forward.number) == (number + 1, number + 2))
    notes.claim(
        f"each took less than {SWITCH_SECONDS:.0f} s", max(seconds_back, seconds_forward) < SWITCH_SECONDS
    )


# ------------------------------------------------------------------------------------------------ what they share


def _ask(player: Player, notes: Notebook, language: str, *, works: bool, shows: bool = True) -> None:
    """Asks the headline and every held-out scene in a language."""
    snapshot = player.snapshot()
    if shows:
        notes.write(notes.show(player.ask(snapshot, HEADLINE, language)))
    share = player.share_found(snapshot, language)
    notes.write(
        f"Asked for each held-out scene in {language}, {share:.0f} % of answers have the right picture among the first "
        f"{FIRST_RESULTS} of {len(snapshot.generation.ids)}."
    )
    if works:
        notes.claim(f"at least {FOUND:.0f} % of the answers in {language} are right", share >= FOUND)
    else:
        notes.claim(f"at most {NOT_FOUND:.0f} % of the answers in {language} are right", share <= NOT_FOUND)


def _not_understood(player: Player, notes: Notebook, language: str, name: str) -> None:
    _ask(player, notes, language, works=False)
    recall, english = player.recall(language), player.recall("en")
    _write_recall(notes, f"{name} before", recall)
    notes.claim(f"{name} R@1 is below a third of English R@1", recall["t2i_r1"] < english["t2i_r1"] / 3)


def _teach_language(player: Player, notes: Notebook, language: str, name: str) -> None:
    before, recall_before = player.slices(), player.recall(language)
    added = player.hand_in(f"{name} captions", player.cast.gallery(), language)
    notes.write(f"{added.report.new_pairs} new pairs, {added.report.new_images} new pictures.")
    generation = player.snapshot().generation.id
    outcome = _teach(player, notes, added.report.chunk_id, name)
    forwards = outcome.training["image_forwards"]
    notes.write(
        f"{outcome.images_embedded} pictures embedded again, {forwards} image-tower forwards in training."
    )
    notes.claim("no picture was embedded again", outcome.images_embedded == 0 == forwards)
    notes.claim("the index is the very same as before", player.snapshot().generation.id == generation)
    recall = player.recall(language)
    notes.write(f"{name} R@1: {recall_before['t2i_r1']:.1f} → {recall['t2i_r1']:.1f} percent.")
    least = 2 * max(recall_before["t2i_r1"], recall["chance_r1"])
    notes.claim(f"{name} R@1 has at least doubled", recall["t2i_r1"] >= least)
    _kept(player, notes, before, taught={f"{language}/{PAINTED_DOMAIN}"})


def _understood(player: Player, notes: Notebook, language: str, name: str) -> None:
    _ask(player, notes, language, works=True)
    recall = player.recall(language)
    _write_recall(notes, f"{name} now", recall)
    notes.claim(f"{name} R@1 is at least five times guessing", recall["t2i_r1"] >= 5 * recall["chance_r1"])


def _teach(player: Player, notes: Notebook, chunk: str, what: str) -> UpdateOutcome:
    """Teaches a chunk by default and claims that it went live."""
    number, before = _live(player)
    outcome = player.teach(chunk, what)
    notes.write(f"{outcome.strategy} took {outcome.seconds:.0f} s. {outcome.sentence}")
    notes.claim("evergreen was chosen", outcome.strategy == "evergreen")
    notes.claim("the gate lets it pass", outcome.verdict == "promote")
    live = _live(player)
    notes.claim("it is live, one commit later", live == (number + 1, outcome.release) and live[1] != before)
    return outcome


def _only_moved(player: Player, notes: Notebook, outcome: UpdateOutcome, old: Snapshot, style: str) -> None:
    """Claims that the pictures of one style have new vectors, and that no other vector moved by a bit."""
    live, catalog = player.snapshot(), player.workspace.catalog
    gallery = catalog.gallery_ids()
    drawn = {image_id for image_id, record in catalog.images(gallery).items() if record.domain == style}
    notes.write(f"{outcome.images_embedded} pictures were embedded again; the gallery holds {len(gallery)}.")
    notes.claim(
        f"each of the {len(drawn)} {style} drawings was embedded once, and nothing else",
        outcome.images_embedded == len(drawn),
    )
    others = [image_id for image_id in gallery if image_id not in drawn]
    same = np.array_equal(old.generation.vectors(others), live.generation.vectors(others))
    notes.claim(f"the vectors of the {len(others)} other pictures are the same to the last bit", same)
    languages = live.languages
    texts = [(old.encoder.text_fingerprint(one), live.encoder.text_fingerprint(one)) for one in languages]
    notes.claim(
        f"so are those of every text in {', '.join(languages)}", all(before == now for before, now in texts)
    )


def _kept(
    player: Player, notes: Notebook, before: Mapping[str, Mapping[str, float]], *, taught: set[str]
) -> None:
    """Writes every slice before and after, and claims that the old ones stay within the gate's policy."""
    policy = player.workspace.settings.gate
    after = player.slices()
    old = sorted(before.keys() - taught)
    for name in sorted(after):
        values = [f"{_mean(one[name]):.1f}" if name in one else "–" for one in (before, after)]
        role = "taught" if name in taught else "kept"
        notes.write(f"  {name:<12} mean recall {values[0]:>6} → {values[1]:>6}   {role}")
    drops = [_mean(before[name]) - _mean(after[name]) for name in old]
    notes.claim(f"no old slice lost more than {policy.slice_drop:g} points", max(drops) <= policy.slice_drop)
    notes.claim(
        f"the {len(old)} old slices lost at most {policy.pooled_drop:g} points on average",
        sum(drops) / len(drops) <= policy.pooled_drop,
    )


def _mean(recalls: Mapping[str, float]) -> float:
    """Mean of R@1, R@5 and R@10 by text: the gate's metric."""
    return sum(recalls[name] for name in TEXT_RECALLS) / len(TEXT_RECALLS)


def _write_recall(notes: Notebook, what: str, recall: Mapping[str, float]) -> None:
    notes.write(
        f"{what}, held-out captions: R@1 {recall['t2i_r1']:.1f}, R@5 {recall['t2i_r5']:.1f}, R@10 "
        f"{recall['t2i_r10']:.1f} percent (guessing: R@1 {recall['chance_r1']:.1f})."
    )


def _live(player: Player) -> tuple[int, str]:
    commit, record = going_live.live_release(player.workspace)
    return commit.number, record.id


def _release_before(player: Player, language: str) -> str:
    """The last release that was live before a language was learned."""
    releases = player.workspace.releases
    last = ""
    for commit in releases.history():
        if language in releases.release(commit.release).manifest.languages:
            break
        last = commit.release
    return last


STEPS = (
    Step(
        "english",
        "English search works",
        "The encoder that ships with Perennial has learned English. Ask for two red boats.",
        english_works,
    ),
    Step(
        "german-fails",
        "A German query fails",
        "Nobody has taught it German: “zwei rote Boote” finds anything but.",
        german_fails,
    ),
    Step(
        "german-taught",
        "German is taught",
        "A chunk with German captions is taken in and taught. German gets word rows of its own; the image tower "
        "stays as it is, so no picture is embedded again. Held-out captions decide whether it may go live.",
        german_is_taught,
    ),
    Step("german-works", "German works, and English as before", "The same question again.", german_works),
    Step(
        "japanese",
        "The same for Japanese",
        "Another script, another chunk: it fails, is taught, and works.",
        japanese,
    ),
    Step(
        "style",
        "A new drawing style is taught",
        "Ink drawings look unlike anything the encoder knows. They get an adapter of their own, so every other picture "
        "and every language keeps its vectors to the last bit, and only the drawings are embedded again.",
        new_style,
    ),
    Step(
        "rejected",
        "Wrong captions are rejected",
        "In this French chunk every caption belongs to another picture. Its checks see it before anything is learned. "
        "Taught in spite of them, it meets the gate: nothing was learned, and nothing changes.",
        wrong_captions,
    ),
    Step(
        "compared",
        "Two releases, one query",
        "The release before German and the live one answer “zwei rote Boote” side by side.",
        compared,
    ),
    Step(
        "rollback",
        "Back and forward again",
        "Going back to an earlier release takes seconds, and so does going forward.",
        back_and_forward,
    ),
)
