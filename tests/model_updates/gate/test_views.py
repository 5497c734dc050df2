"""What a searcher meets: slices among everything, first places, near-copies, retries."""

from dataclasses import replace

import numpy as np

from model_updates.evaluation import SliceResult, View
from model_updates.gate.rules import GateReport, Past, Policy, judge
from tests.model_updates.gate.test_rules import GOOD, LIVE, RIGHT, WRONG, Ranks, ranks_with, slice_of

SECOND = 1


def views_of(name: str, ranks: Ranks, view: View) -> SliceResult:
    return replace(slice_of(name, ranks), view=view)


def judged(
    candidate: dict[str, Ranks],
    live: dict[str, Ranks],
    mixed: dict[str, tuple[Ranks, Ranks]],
    **more: object,
) -> GateReport:
    """Judges own galleries as given, and some slices among everything too: (candidate, live)."""
    sides = [{("own", n): slice_of(n, r) for n, r in side.items()} for side in (candidate, live)]
    for position, side in enumerate(sides):
        side |= {("mixed", n): views_of(n, pair[position], View.MIXED) for n, pair in mixed.items()}
    return judge(
        candidate=sides[0],
        live=sides[1],
        new_slices={key for key in sides[0] if key[1] == "de/photo"},
        taught_pairs={"de/photo": 1000},
        canaries=(),
        policy=Policy(),
        **more,  # type: ignore[arg-type]
    )


def rule(report: GateReport, name: str) -> str:
    return str(next(rule.verdict for rule in report.rules if rule.rule == name))


def test_what_is_learned_but_not_found_among_everything_is_for_a_person() -> None:
    nowhere, found = ranks_with(0.0), ranks_with(0.4)
    assert judged(GOOD, LIVE, {"de/photo": (found, nowhere)}).verdict == "promote"
    report = judged(GOOD, LIVE, {"de/photo": (nowhere, nowhere)})
    assert (report.verdict, rule(report, "learned"), rule(report, "visible")) == (
        "review",
        "promote",
        "review",
    )
    assert "de/photo not visible among everything" in report.reasons[0]
    assert judged(GOOD, LIVE, {"de/photo": (nowhere, found)}).verdict == "reject"


def test_old_captions_that_are_displaced_among_everything_stop_an_update() -> None:
    displaced = judged(GOOD, LIVE, {"en/photo": (ranks_with(0.45), ranks_with(0.6))})
    assert displaced.verdict == "reject"
    assert any("en/photo (mixed) lost against live" in reason for reason in displaced.reasons)


def test_first_places_have_a_bound_of_their_own() -> None:
    live = {**LIVE, "en/photo": ranks_with(0.6)}
    pushed = np.where((live["en/photo"] == RIGHT) & (np.arange(400) % 3 == 0), SECOND, live["en/photo"])
    gained = np.where((pushed == WRONG) & (np.arange(400) % 2 == 0), 9, pushed)  # R@10 rises, R@1 falls by 20
    report = judged({**GOOD, "en/photo": gained}, live, {})
    row = next(row for row in report.rows if row.slice == "en/photo")
    assert abs(row.difference) < 4.0
    assert row.first_difference is not None
    assert row.first_difference < -15
    assert report.verdict == "reject"
    assert any("R@1 60.0 → 40.0" in reason for reason in report.reasons)


def test_slices_at_chance_do_not_dilute_the_pool() -> None:
    live = {"de/photo": ranks_with(0.0), "en/photo": ranks_with(0.6)}
    worse = {"de/photo": ranks_with(0.6), "en/photo": ranks_with(0.56)}
    junk = {f"en/junk{n}": np.random.default_rng(n).permutation(400) for n in range(6)}
    moved = {name: np.random.default_rng(n + 50).permutation(400) for n, name in enumerate(junk)}
    alone, diluted = judged(worse, live, {}), judged({**worse, **moved}, {**live, **junk}, {})
    assert rule(alone, "kept") == rule(diluted, "kept") != "promote"


def test_copies_of_three_pictures_are_three_things() -> None:
    def copies(ranks: Ranks) -> SliceResult:
        return replace(slice_of("de/photo", ranks), caption_group=tuple(f"thing {n % 3}" for n in range(400)))

    report = judge(
        candidate={**{n: slice_of(n, r) for n, r in GOOD.items()}, "de/photo": copies(GOOD["de/photo"])},
        live={**{n: slice_of(n, r) for n, r in LIVE.items()}, "de/photo": copies(LIVE["de/photo"])},
        new_slices={"de/photo"},
        taught_pairs={"de/photo": 1000},
        canaries=(),
        policy=Policy(),
    )
    assert report.verdict == "review"
    assert "not enough held-out pairs (3 things, 100 needed)" in report.reasons[0]


def test_a_sentence_on_a_gallery_of_few_pictures_says_which_recalls_cannot_miss() -> None:
    # First places are lost among the three pictures of "en/photo"; its R@5 and R@10 stay 100.
    live = {"de/photo": np.full(8, 7), "en/photo": np.full(3, 0)}
    candidate = {"de/photo": np.full(8, 0), "en/photo": np.full(3, 2)}
    report = judge(
        candidate={name: slice_of(name, ranks) for name, ranks in candidate.items()},
        live={name: slice_of(name, ranks) for name, ranks in live.items()},
        new_slices={"de/photo"},
        taught_pairs={"de/photo": 1000},
        canaries=(),
        policy=Policy(),
    )
    assert [reason for reason in report.reasons if "only 8, so any encoder reaches 100 in R@10." in reason]
    assert [
        reason for reason in report.reasons if "only 3, so any encoder reaches 100 in R@5, R@10." in reason
    ]
    assert not any("any encoder" in reason for reason in judged(GOOD, LIVE, {}).reasons)


def test_the_twentieth_candidate_must_show_more_than_the_first() -> None:
    live = {"de/photo": ranks_with(0.0), "en/photo": ranks_with(0.5)}
    slightly_worse = live["en/photo"].copy()
    slightly_worse[:4] = WRONG
    candidate = {"de/photo": ranks_with(0.6), "en/photo": slightly_worse}
    first, twentieth = judged(candidate, live, {}), judged(candidate, live, {}, attempts=20)
    assert (first.verdict, twentieth.verdict) == ("promote", "review")
    assert twentieth.attempts == 20


def test_versions_that_rank_alike_are_one() -> None:
    past = slice_of("en/photo", ranks_with(0.62))
    several = judged(
        GOOD, LIVE, {}, past={("own", "en/photo"): Past(tuple((f"v{n}", past) for n in range(9)))}
    )
    once = judged(GOOD, LIVE, {}, past={("own", "en/photo"): Past((("v0", past),))})
    assert several.rows == once.rows
