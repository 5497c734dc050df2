"""The demo's story as one list of steps; the script and the guided page both play it.

A step acts, prints its numbers and checks its claims. A claim is checked on what is on the disk after the step, and
can fail: a step that does not keep its promise says so, and the script ends there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.demo import claims
from app.demo.findings import Findings, Notebook
from app.demo.player import DEMO, FIRST_RESULTS, HEADLINE, PAINTED_DOMAIN, Player
from app.learning import going_live
from app.query.question import Question
from ingest.samples.emoji import colour_emoji_font
from ingest.samples.scenes import caption
from model_updates.recalls import mean_text_recall

ENGLISH_CHUNK = "English scenes"
EMOJI_CHUNK = "Emoji"
SWITCH_SECONDS = 10.0  # going back, or forward again, takes at most this
COMPARED = 20


@dataclass(frozen=True)
class Step:
    """One step of the story."""

    name: str  # short and stable
    title: str  # what happens
    tells: str  # a sentence or two for the visitor
    act: Callable[[Player, Notebook], None]  # does it

    def play(self, player: Player) -> Findings:
        """Acts and returns what was found."""
        started = time.monotonic()
        notes = Notebook()
        self.act(player, notes)
        seconds = round(time.monotonic() - started, 1)
        return Findings(tuple(notes.lines), tuple(notes.checks), tuple(notes.shown), seconds)


def prepare(player: Player) -> None:
    """Brings the first pictures in, unless they are there."""
    known = {chunk.name for chunk in player.workspace.catalog.standings()}
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
    claims.ask(player, notes, "en", works=True)
    recall = player.recall("en")
    claims.write_recall(notes, "English", recall)
    notes.claim("English R@1 is at least five times guessing", recall["t2i_r1"] >= 5 * recall["chance_r1"])


def german_fails(player: Player, notes: Notebook) -> None:
    """A language nobody taught is not understood."""
    claims.not_understood(player, notes, "de", "German")


def german_is_taught(player: Player, notes: Notebook) -> None:
    """The German chunk is taught, judged and goes live without a picture being embedded again."""
    claims.teach_language(player, notes, "de", "German")


def german_works(player: Player, notes: Notebook) -> None:
    """German is understood, English as well as before."""
    claims.understood(player, notes, "de", "German")
    claims.ask(player, notes, "en", works=True)


def japanese(player: Player, notes: Notebook) -> None:
    """The same for a language in another script."""
    claims.not_understood(player, notes, "ja", "Japanese")
    claims.teach_language(player, notes, "ja", "Japanese")
    claims.understood(player, notes, "ja", "Japanese")
    claims.ask(player, notes, "de", works=True)


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
    outcome = claims.teach(player, notes, added.report.chunk_id, f"{style} drawings")
    claims.only_moved(player, notes, outcome, old, style)
    recall = player.recall("en", style)
    notes.write(
        f"English R@10 on {style} drawings: {recall_before['t2i_r10']:.1f} → {recall['t2i_r10']:.1f} percent."
    )
    notes.claim(
        f"{style} drawings are found better than before",
        mean_text_recall(recall) > mean_text_recall(recall_before),
    )
    claims.kept(player, notes, before, taught={f"en/{style}"})
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
    before, commit = player.slices(), claims.what_is_live(player)
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
    notes.claim(f"{commit[1]} is live as before, commit {commit[0]}", claims.what_is_live(player) == commit)
    notes.claim("every slice measures the same as before", player.slices() == before)
    again = player.ask(player.snapshot(), HEADLINE, "de", k=COMPARED).answer.hits
    notes.claim("a German question has the same answer, score for score", again == hits)


def compared(player: Player, notes: Notebook) -> None:
    """The release before German and the live one, side by side."""
    old, new = player.snapshot(claims.release_before(player, "de")), player.snapshot()
    answer = player.finder.compare(old, new, Question.of(caption(HEADLINE, "de"), COMPARED))
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
    number, newest = claims.what_is_live(player)
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
    notes.claim("it finds English as it did", found >= claims.FOUND)
    notes.claim(f"after going forward {newest} answers again", new.release.id == newest == forward.release)
    notes.claim("each was a commit of its own", (back.number, forward.number) == (number + 1, number + 2))
    notes.claim(
        f"each took less than {SWITCH_SECONDS:.0f} s", max(seconds_back, seconds_forward) < SWITCH_SECONDS
    )


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
