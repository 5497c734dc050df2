"""What the demo's steps have in common: asking, teaching, and claiming what came of it."""

from collections.abc import Mapping

import numpy as np

from app.demo.findings import Notebook
from app.demo.player import FIRST_RESULTS, HEADLINE, PAINTED_DOMAIN, Player
from app.learning import going_live
from app.learning.outcomes import UpdateOutcome
from app.query.snapshot import Snapshot
from model_updates.recalls import mean_text_recall

# In percent of held-out scenes, asked for in the whole gallery: how often the right picture is among the first five.
FOUND = 60.0  # at least, where search is said to work
NOT_FOUND = 15.0  # at most, where it is said to fail


def ask(player: Player, notes: Notebook, language: str, *, works: bool, shows: bool = True) -> None:
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


def not_understood(player: Player, notes: Notebook, language: str, name: str) -> None:
    """Asks in a language that nobody taught, and claims that it fails."""
    ask(player, notes, language, works=False)
    recall, english = player.recall(language), player.recall("en")
    write_recall(notes, f"{name} before", recall)
    notes.claim(f"{name} R@1 is below a third of English R@1", recall["t2i_r1"] < english["t2i_r1"] / 3)


def teach_language(player: Player, notes: Notebook, language: str, name: str) -> None:
    """Takes captions in a language in, teaches them, and claims that no picture was embedded again."""
    before, recall_before = player.slices(), player.recall(language)
    added = player.hand_in(f"{name} captions", player.cast.gallery(), language)
    notes.write(f"{added.report.new_pairs} new pairs, {added.report.new_images} new pictures.")
    generation = player.snapshot().generation.id
    outcome = teach(player, notes, added.report.chunk_id, name)
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
    kept(player, notes, before, taught={f"{language}/{PAINTED_DOMAIN}"})


def understood(player: Player, notes: Notebook, language: str, name: str) -> None:
    """Asks in a language that was taught, and claims that it works."""
    ask(player, notes, language, works=True)
    recall = player.recall(language)
    write_recall(notes, f"{name} now", recall)
    notes.claim(f"{name} R@1 is at least five times guessing", recall["t2i_r1"] >= 5 * recall["chance_r1"])


def teach(player: Player, notes: Notebook, chunk: str, what: str) -> UpdateOutcome:
    """Teaches a chunk by default and claims that it went live."""
    number, before = what_is_live(player)
    outcome = player.teach(chunk, what)
    notes.write(f"{outcome.strategy} took {outcome.seconds:.0f} s. {outcome.sentence}")
    notes.claim("evergreen was chosen", outcome.strategy == "evergreen")
    notes.claim("the gate lets it pass", outcome.verdict == "promote")
    live = what_is_live(player)
    notes.claim("it is live, one commit later", live == (number + 1, outcome.release) and live[1] != before)
    return outcome


def only_moved(player: Player, notes: Notebook, outcome: UpdateOutcome, old: Snapshot, style: str) -> None:
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


def kept(
    player: Player, notes: Notebook, before: Mapping[str, Mapping[str, float]], *, taught: set[str]
) -> None:
    """Writes every slice before and after, and claims that the old ones stay within the gate's policy."""
    policy = player.workspace.settings.gate
    after = player.slices()
    old = sorted(before.keys() - taught)
    for name in sorted(after):
        values = [f"{mean_text_recall(one[name]):.1f}" if name in one else "–" for one in (before, after)]
        role = "taught" if name in taught else "kept"
        notes.write(f"  {name:<12} mean recall {values[0]:>6} → {values[1]:>6}   {role}")
    drops = [mean_text_recall(before[name]) - mean_text_recall(after[name]) for name in old]
    notes.claim(f"no old slice lost more than {policy.slice_drop:g} points", max(drops) <= policy.slice_drop)
    notes.claim(
        f"the {len(old)} old slices lost at most {policy.pooled_drop:g} points on average",
        sum(drops) / len(drops) <= policy.pooled_drop,
    )


def write_recall(notes: Notebook, what: str, recall: Mapping[str, float]) -> None:
    """Notes recall on held-out captions."""
    notes.write(
        f"{what}, held-out captions: R@1 {recall['t2i_r1']:.1f}, R@5 {recall['t2i_r5']:.1f}, R@10 "
        f"{recall['t2i_r10']:.1f} percent (guessing: R@1 {recall['chance_r1']:.1f})."
    )


def what_is_live(player: Player) -> tuple[int, str]:
    """Returns the number of the live commit and the id of its release."""
    commit, record = going_live.live_release(player.workspace)
    return commit.number, record.id


def release_before(player: Player, language: str) -> str:
    """Returns the last release that was live before a language was learned."""
    releases = player.workspace.releases
    last = ""
    for commit in releases.history():
        if language in releases.release(commit.release).manifest.languages:
            break
        last = commit.release
    return last
