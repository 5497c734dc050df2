"""The gate on made-up ranks: each test breaks one promise, so that removing a rule turns one of them red."""

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates.evaluation import SliceResult
from model_updates.gate.comparison import measured_drop
from model_updates.gate.rules import GateInputError, GateReport, Past, Policy, Verdict, judge

Ranks = NDArray[np.int64]
RIGHT, WRONG = 0, 99


def slice_of(name: str, ranks: Ranks) -> SliceResult:
    language, domain = name.split("/")
    ids = tuple(f"{domain}{i}" for i in range(len(ranks)))
    positions = np.arange(len(ranks))
    return SliceResult(language, domain, ids, positions, ranks, ranks, positions)


def ranks_with(share_right: float, *, images: int = 400) -> Ranks:
    return np.where(np.arange(images) < round(share_right * images), RIGHT, WRONG)


def verdict_of(
    candidate: Mapping[str, Ranks],
    live: Mapping[str, Ranks],
    *,
    new: Sequence[str] = ("de/photo",),
    best: Mapping[str, tuple[str, Ranks]] | None = None,
    taught: Mapping[str, int] | None = None,
    canaries: Sequence[tuple[str, bool]] = (),
) -> GateReport:
    return judge(
        candidate={name: slice_of(name, ranks) for name, ranks in candidate.items()},
        live={name: slice_of(name, ranks) for name, ranks in live.items()},
        past={name: Past(((version, slice_of(name, r)),)) for name, (version, r) in (best or {}).items()},
        new_slices=set(new),
        taught_pairs={"de/photo": 1000} if taught is None else taught,
        canaries=canaries,
        policy=Policy(),
    )


LIVE = {"en/photo": ranks_with(0.6), "en/sketch": ranks_with(0.5), "de/photo": ranks_with(0.05)}
GOOD = {**LIVE, "de/photo": ranks_with(0.6)}


def test_an_update_that_learns_and_keeps_is_promoted_with_its_numbers() -> None:
    report = verdict_of(GOOD, LIVE)
    assert report.verdict == "promote"
    assert "de/photo learned: R 5.0 → 60.0 (+55.0, at least +" in report.reasons[0]
    assert {row.slice: row.verdict for row in report.rows} == dict.fromkeys(LIVE, Verdict.PROMOTE)


def test_learning_nothing_is_rejected() -> None:
    report = verdict_of(LIVE, LIVE)
    assert report.verdict == "reject"
    assert "de/photo not learned" in report.reasons[0]


def test_answers_no_better_than_guessing_are_rejected_even_above_live() -> None:
    live = {**LIVE, "de/photo": ranks_with(0.0)}
    guessing = np.random.default_rng(0).permutation(400)
    report = verdict_of({**live, "de/photo": guessing}, live)
    assert report.verdict == "reject"
    assert "no better than guessing" in report.reasons[0]


def test_a_gain_that_chance_could_explain_is_for_a_person() -> None:
    live, candidate = ranks_with(0.5), ranks_with(0.5)
    live[:10], candidate[390:] = WRONG, WRONG  # ten gained
    live[300:308], candidate[300:308] = RIGHT, WRONG  # eight lost
    report = verdict_of({**LIVE, "de/photo": candidate}, {**LIVE, "de/photo": live})
    assert report.verdict == "review"
    assert "perhaps learned" in report.reasons[0]


def test_one_idle_slice_beside_a_learned_one_is_for_a_person_but_a_damaged_one_rejects() -> None:
    live = {**LIVE, "de/sketch": ranks_with(0.3)}
    both = ("de/photo", "de/sketch")
    assert verdict_of({**live, "de/photo": ranks_with(0.6)}, live, new=both).verdict == "review"
    damaged = {**live, "de/photo": ranks_with(0.6), "de/sketch": ranks_with(0.2)}
    assert verdict_of(damaged, live, new=both).verdict == "reject"


def test_few_things_that_fall_reject_nothing_unless_random_signs_hardly_could() -> None:
    both = ("de/photo", "de/sketch")
    for things, verdict in ((1, "review"), (5, "review"), (12, "reject")):
        live = {**LIVE, "de/sketch": np.full(things, 4)}
        report = verdict_of(
            {**live, "de/photo": ranks_with(0.6), "de/sketch": np.full(things, 5)}, live, new=both
        )
        assert report.verdict == verdict, things
    assert "de/sketch got worse" in report.first_reason


def test_what_decided_is_said_before_what_passed() -> None:
    live = {**LIVE, "zu/photo": ranks_with(0.3)}
    candidate = {**live, "de/photo": ranks_with(0.6), "zu/photo": ranks_with(0.2)}
    report = verdict_of(candidate, live, new=("de/photo", "zu/photo"))
    assert report.verdict == "reject"
    assert "zu/photo got worse" in report.first_reason
    assert any("de/photo learned" in reason for reason in report.reasons)


def test_one_old_slice_that_lost_much_is_rejected_although_the_average_is_fine() -> None:
    live = {**LIVE, **{f"l{i}/photo": ranks_with(0.5) for i in range(8)}}
    report = verdict_of({**live, "de/photo": ranks_with(0.6), "en/photo": ranks_with(0.5)}, live)
    assert report.verdict == "reject"
    assert {rule.rule: str(rule.verdict) for rule in report.rules} == {
        "learned": "promote",
        "kept": "promote",
        "worst slice": "reject",
        "canaries": "promote",
    }
    assert "en/photo lost against live: R 60.0 → 50.0 (−10.0" in report.reasons[0]


def test_many_small_losses_are_rejected_although_each_slice_is_fine() -> None:
    live = {"de/photo": ranks_with(0.0), **{f"l{i}/d{i}": ranks_with(0.5, images=2000) for i in range(4)}}
    worse = {name: ranks_with(0.47, images=2000) for name in live}
    report = verdict_of({**worse, "de/photo": ranks_with(0.6)}, live)
    assert report.verdict == "reject"
    verdicts = {rule.rule: str(rule.verdict) for rule in report.rules}
    assert verdicts["worst slice"] == "promote"
    assert verdicts["kept"] == "reject"


def test_slow_erosion_is_measured_against_the_best_version() -> None:
    candidate = {**GOOD, "en/photo": ranks_with(0.59)}
    assert verdict_of(candidate, LIVE).verdict == "promote"
    report = verdict_of(candidate, LIVE, best={"en/photo": ("v2-aaaa", ranks_with(0.7))})
    assert report.verdict == "reject"
    assert any("en/photo lost against v2-aaaa: R 6" in reason for reason in report.reasons)
    row = next(row for row in report.rows if row.slice == "en/photo")
    assert row.water == pytest.approx(70.0, abs=1.0)
    assert row.water_version == "v2-aaaa"


def test_what_a_person_accepted_to_lose_lowers_the_high_water() -> None:
    candidate, past = {**GOOD, "en/photo": ranks_with(0.59)}, slice_of("en/photo", ranks_with(0.7))

    def verdict(debt: float) -> Verdict:
        return judge(
            candidate={name: slice_of(name, ranks) for name, ranks in candidate.items()},
            live={name: slice_of(name, ranks) for name, ranks in LIVE.items()},
            past={"en/photo": Past((("v2-aaaa", past),), debt)},
            new_slices={"de/photo"},
            taught_pairs={"de/photo": 1000},
            canaries=(),
            policy=Policy(),
        ).verdict

    assert verdict(0.0) == "reject"
    assert verdict(11.0) == "promote"


def test_a_gap_that_live_already_has_is_not_the_candidates_fault() -> None:
    assert verdict_of(GOOD, LIVE, best={"en/photo": ("v2-aaaa", ranks_with(0.9))}).verdict == "promote"


def test_lost_pins_beyond_the_policy_reject() -> None:
    pins = [(f"query {i}", i >= 2) for i in range(20)]
    report = verdict_of(GOOD, LIVE, canaries=pins)
    assert report.verdict == "reject"
    assert "2 of 20 pinned queries lose their answer: “query 0”, “query 1”" in report.reasons[0]
    assert verdict_of(GOOD, LIVE, canaries=pins[1:]).verdict == "reject"
    assert (
        verdict_of(GOOD, LIVE, canaries=[(query, True) for query, _ in pins] + [("x", False)]).verdict
        == "promote"
    )


def test_a_slice_that_is_too_small_to_exclude_harm_is_for_a_person_unless_nothing_changed() -> None:
    small = {**LIVE, "fr/photo": ranks_with(0.5, images=12)}
    candidate = {**small, "de/photo": ranks_with(0.6)}
    assert verdict_of(candidate, small).verdict == "promote"
    lost = verdict_of({**candidate, "fr/photo": ranks_with(0.42, images=12)}, small)
    assert lost.verdict == "review"
    assert "fr/photo perhaps lost against live" in lost.reasons[0]
    more = {**LIVE, "fr/photo": ranks_with(0.5, images=40), "de/photo": ranks_with(0.6)}
    gone = {**more, "fr/photo": ranks_with(0.0, images=40)}
    assert verdict_of(gone, {**more, "de/photo": LIVE["de/photo"]}).verdict == "reject"


def test_a_small_new_slice_is_for_a_person() -> None:
    live = {**LIVE, "de/photo": ranks_with(0.0, images=50)}
    assert verdict_of({**live, "de/photo": ranks_with(0.9, images=50)}, live).verdict == "review"


@pytest.mark.parametrize("unseen", ["it/photo", "de/sketch"])
def test_a_language_or_domain_without_held_out_pairs_is_for_a_person(unseen: str) -> None:
    report = verdict_of(GOOD, LIVE, taught={"de/photo": 1000, unseen: 400})
    assert report.verdict == "review"
    assert any(reason.startswith(f"{unseen} was taught with 400 pairs") for reason in report.reasons)
    assert verdict_of(LIVE, LIVE, new=(), taught={}).verdict == "review"


def test_nothing_old_to_keep_is_for_a_person() -> None:
    only_new = {"de/photo": ranks_with(0.0)}
    assert verdict_of({"de/photo": ranks_with(0.6)}, only_new).verdict == "review"


def test_measurements_of_different_pairs_are_refused() -> None:
    with pytest.raises(GateInputError, match="Measure both again"):
        verdict_of(GOOD, {name: LIVE[name] for name in ("en/photo", "de/photo")})
    with pytest.raises(GateInputError, match="other pairs"):
        verdict_of({**GOOD, "en/photo": ranks_with(0.6, images=401)}, LIVE)
    with pytest.raises(GateInputError, match="fr/photo"):
        verdict_of(GOOD, LIVE, new=("fr/photo",))


def noisy(ranks: Ranks, rng: np.random.Generator, share: float) -> Ranks:
    """Flips as many right answers to wrong as the other way round, on average."""
    flipped = ranks.copy()
    right, wrong = np.flatnonzero(ranks == RIGHT), np.flatnonzero(ranks == WRONG)
    flipped[right[rng.random(len(right)) < share * len(wrong) / len(ranks)]] = WRONG
    flipped[wrong[rng.random(len(wrong)) < share * len(right) / len(ranks)]] = RIGHT
    return flipped


def share_of(
    verdict: str, make: Callable[[np.random.Generator], Mapping[str, Ranks]], runs: int = 60
) -> float:
    live = {"de/photo": ranks_with(0.0), **{f"l{i}/d{i}": ranks_with(0.5, images=1000) for i in range(4)}}
    return float(
        np.mean(
            [verdict_of(make(np.random.default_rng(seed)), live).verdict == verdict for seed in range(runs)]
        )
    )


def test_harmless_noise_is_almost_never_rejected_and_mostly_promoted() -> None:
    # 10 % of the queries change: standard error of the pool 0.5 points. P(reject) < 1e-4, P(promote) > 0.95.
    def harmless(rng: np.random.Generator) -> Mapping[str, Ranks]:
        old = {f"l{i}/d{i}": noisy(ranks_with(0.5, images=1000), rng, 0.2) for i in range(4)}
        return {"de/photo": ranks_with(0.6), **old}

    assert share_of("reject", harmless) == 0
    assert share_of("promote", harmless) >= 0.85


def test_a_loss_at_the_limit_is_promoted_in_at_most_one_run_in_twenty() -> None:
    # True drop of one slice exactly 5 points: 60 runs at 5 % give more than 9 with a chance of about 0.1 %.
    def at_the_limit(rng: np.random.Generator) -> Mapping[str, Ranks]:
        old = {f"l{i}/d{i}": ranks_with(0.5, images=1000) for i in range(4)}
        lost = old["l0/d0"].copy()
        lost[:500][rng.random(500) < 0.1] = WRONG
        return {"de/photo": ranks_with(0.6), **old, "l0/d0": lost}

    assert share_of("promote", at_the_limit) <= 9 / 60


def test_shuffled_captions_that_disturb_the_old_slices_are_always_rejected() -> None:
    def disturbed(rng: np.random.Generator) -> Mapping[str, Ranks]:
        old = {}
        for i in range(4):
            ranks = ranks_with(0.5, images=1000)
            ranks[rng.random(1000) < 0.3] = WRONG
            old[f"l{i}/d{i}"] = ranks
        return {"de/photo": rng.permutation(400), **old}

    assert share_of("reject", disturbed, runs=20) == 1.0


def test_a_report_survives_json_and_reads_well() -> None:
    report = verdict_of(
        {**GOOD, "en/photo": ranks_with(0.5)}, LIVE, best={"en/sketch": ("v2-aaaa", LIVE["en/sketch"])}
    )
    assert GateReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert report.to_json()["verdict"] == "reject"
    markdown = report.markdown()
    assert "**reject**" in markdown
    table = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 3
    assert {line.count("|") for line in table} == {16}


def test_a_report_of_a_newer_release_is_read_without_what_is_new_there() -> None:
    report = verdict_of({**GOOD, "en/photo": ranks_with(0.5)}, LIVE)
    stored = json.loads(json.dumps(report.to_json()))
    for part in (stored, stored["policy"], *stored["rules"], *stored["rows"]):
        part["newer"] = 1
    assert GateReport.from_json(stored) == report


def test_the_same_ranks_give_the_same_report() -> None:
    candidate = {**GOOD, "en/photo": noisy(LIVE["en/photo"], np.random.default_rng(0), 0.3)}
    assert verdict_of(candidate, LIVE) == verdict_of(candidate, LIVE)


@pytest.mark.parametrize(
    "wrong", [{"metric": "i2t_r1"}, {"confidence": 95.0}, {"slice_drop": -1.0}, {"canary_share": 5.0}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, str | float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)) if "metric" not in wrong else "t2i_mean"):
        Policy(**wrong)  # type: ignore[arg-type]


def test_one_thing_that_has_most_captions_makes_a_drop_uncertain() -> None:
    random = np.random.default_rng(0)
    alone, many = [f"t{n}" for n in range(60)], ["video"] * 600
    before = (random.random(60) < 0.5).astype(float)
    falls = np.concatenate([before, np.ones(600)]), np.concatenate([before, np.zeros(600)])
    assert measured_drop(*falls, alone + many).error > 20, "it could as well have risen"
    # Where all things weigh alike the error is that of their sums.
    clusters = [name for name in alone for _ in range(3)]
    changed = random.normal(size=180)
    sums = changed.reshape(60, 3).sum(axis=1) - 3 * changed.mean()
    by_hand = 100 * float(np.sqrt((sums**2).sum() * 60 / 59)) / 180
    assert measured_drop(changed, np.zeros(180), clusters).error == pytest.approx(by_hand)
    assert measured_drop(np.ones(4), np.zeros(4), ["one"] * 4).error == pytest.approx(100 / 3)
