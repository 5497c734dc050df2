"""The orderings table, on made-up cells and on the claims as they are written down."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from app.bench.results import read_cells, write_cell
from app.bench.sequence import read_sequence
from app.bench.sources import sources_of
from tests.app.bench.cells import cell, cell_for, slice_run, step

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
TO_COME: set[str] = set()
"""Strategies of claims that no sequence runs yet; their claims are listed as not run."""

SEQUENCE = """
name = "growing"
about = "Made up."
seeds = 3
[[steps]]
name = "one"
[[steps]]
name = "two"
[[strategies]]
name = "joint"
[[strategies]]
name = "finetune"
[[strategies]]
name = "ctp"
options = { queue = 0 }
"""
CLAIMS = """
[[claims]]
claim = "Joint training is better."
paper = "57 < 80"
confidence = "high"
sequence = "growing"
a = "joint"
b = "finetune"
metrics = ["trained/told/r1", "trained/told/forgetting"]
remark = "It is."
[[claims]]
claim = "A queue | no queue."
paper = "64 < 65"
confidence = "low"
sequence = "growing"
a = { name = "ctp", options = { queue = 0 } }
b = "joint"
relation = "below"
metrics = ["held-out/told/r1"]
[[claims]]
claim = "Nobody ran this."
paper = "1 < 2"
confidence = "high"
sequence = "domains"
a = "joint"
b = "finetune"
metrics = ["trained/told/r1"]
[[claims]]
claim = "Nothing can run this."
paper = "1 < 2"
confidence = "low"
not_run = "it needs more"
dates = "Never seen."
"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a benchmark's module as running the script would find it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def _made_up(folder: Path, *, missing: tuple[str, int] | None = None) -> None:
    (folder / "growing.toml").write_text(SEQUENCE, encoding="utf-8")
    (folder / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    sequence = read_sequence(folder / "growing.toml")
    for compared in sequence.strategies:
        right = 4 if compared.name == "finetune" else 36
        bits = [1] * right + [0] * (40 - right)
        for seed in sequence.seeds:
            slices = [
                slice_run([90, 2.5 * right + seed], learned=[1] * 36 + [0] * 4, last=bits),
                slice_run([20], kind="held-out", since=2, last=[1] * 20 + [0] * 20),
            ]
            if (compared.name, seed) != missing:
                write_cell(folder / "cells", cell_for(sequence, compared, seed, slices))


def test_claims_hold_or_contradict_or_cannot_be_told_or_were_not_run(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path)
    claims, orderings = module("orderings_claims"), module("orderings")
    found = orderings.all_findings(tmp_path / "cells", tmp_path)
    judged = claims.judge_all(claims.read_claims(tmp_path / "claims.toml"), found)
    # Joint forgets less, so that "above" is contradicted by forgetting.
    assert [one.verdict for one in judged] == [
        "holds", "contradicts", "not distinguishable", "not run", "not run"
    ]  # fmt: skip
    assert judged[0].ours.mean == pytest.approx(80)
    assert claims.tally(judged) == "1 holds, 1 not distinguishable, 1 contradicts, 0 too few seeds, 2 not run"
    pages = {path.name: text for path, text in orderings.pages(found, judged, tmp_path / "s.md").items()}
    text = pages["claims.md"]
    assert "| Joint training is better. | 57 < 80 | high |" in text
    assert "+80.0 [" in text
    assert "A queue \\| no queue." in text
    assert "| not run | – | – | – | it needs more | Never seen. |" in text
    _, _, surprises = pages["s.md"].partition("Of high confidence, and contradicted:\n\n")
    assert surprises.startswith("- Joint training is better. trained, told: forgetting")
    assert "| growing | joint | 91.0 ± 1.0 | 20.0 |" in pages["s.md"]
    assert pages["domains.md"] == "# Domains\n\n## domains\n\nNot run yet.\n"
    assert "### Trained: memory" in pages["growing.md"]
    assert {"languages.md", "stream.md", "second-dataset.md", "recall-loss-cost.svg"} <= pages.keys()


def test_what_holds_among_many_is_asked_jointly(module: Any) -> None:
    claims = module("orderings_claims")
    # Holm by hand: 3 x .01, then 2 x .02, then 1 x .03, none below the one before it.
    assert claims.holm_adjusted([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert claims.holm_adjusted([0.9, 0.9]) == [1.0, 1.0]


def test_a_drawing_shows_each_strategy_with_its_intervals(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path)
    plot, found = module("strategies_plot"), module("orderings").all_findings(tmp_path / "cells", tmp_path)
    joint = found["growing"].cells["joint"]
    recall, lost = (plot.recall_with_interval(joint, figure) for figure in ("r1", "bwt"))
    assert (recall.mean, lost.mean) == pytest.approx((90, 0))
    assert recall.low < 90 < recall.high
    svg = plot.drawing({"growing": [plot.Dot("joint <b>", recall, lost, 4.0, True)], "none": []})
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "joint &lt;b&gt; 90, lost 0" in svg


def test_two_seeds_decide_no_claim(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path, missing=("finetune", 1))
    claims, orderings = module("orderings_claims"), module("orderings")
    found = orderings.all_findings(tmp_path / "cells", tmp_path)
    judged = claims.judge(claims.read_claims(tmp_path / "claims.toml")[0], found)
    assert judged.verdict == "too few seeds"
    assert judged.ours.seeds == (0, 2)


def test_cells_of_another_sequence_than_it_is_now_count_as_not_run(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path)
    changed = SEQUENCE.replace("seeds = 3", "seeds = 3\nepochs = 9")
    (tmp_path / "growing.toml").write_text(changed, encoding="utf-8")
    found = module("orderings").all_findings(tmp_path / "cells", tmp_path)
    assert found["growing"].cells == {}
    assert "joint (seeds 0, 1, 2)" in found["growing"].left_out


def test_what_no_claim_compares_runs_and_counts_with_the_first_seed_alone(
    tmp_path: Path, module: Any
) -> None:
    _made_up(tmp_path)
    more = '[[strategies]]\nname = "mas"\n[[strategies]]\nname = "evergreen"\n'
    more += '[[strategies]]\nname = "evergreen"\noptions = { epochs = 15 }\n'
    (tmp_path / "growing.toml").write_text(SEQUENCE + more, encoding="utf-8")
    sequence, claims = read_sequence(tmp_path / "growing.toml"), tmp_path / "claims.toml"
    protocols = module("protocols")
    found = [(one.label, seed) for one, seed in protocols.planned(sequence, claims)]
    seeds = {label: [seed for one, seed in found if one == label] for label, _ in found}
    assert seeds == {
        "joint": [0, 1, 2], "finetune": [0, 1, 2], "ctp,queue=0": [0, 1, 2], "mas": [0],
        "evergreen": [0, 1, 2], "evergreen,epochs=15": [0],
    }  # fmt: skip
    assert len(protocols.planned(sequence, claims, every_seed=True)) == 18
    missing = module("orderings").all_findings(tmp_path / "cells", tmp_path, claims)["growing"].not_run
    assert list(missing) == [
        "mas (seed 0)",
        "evergreen (seeds 0, 1, 2)",
        "evergreen,epochs=15 (seed 0)",
    ]


def test_a_claim_that_three_seeds_left_open_runs_with_as_many_as_it_asks_for(
    tmp_path: Path, module: Any
) -> None:
    _made_up(tmp_path)
    (tmp_path / "growing.toml").write_text(SEQUENCE.replace("seeds = 3", "seeds = 6"), encoding="utf-8")
    asked = CLAIMS.replace('b = "finetune"', 'b = "finetune"\nseeds = 5', 1)
    (tmp_path / "claims.toml").write_text(asked, encoding="utf-8")
    sequence = read_sequence(tmp_path / "growing.toml")
    found = [
        (one.label, seed) for one, seed in module("protocols").planned(sequence, tmp_path / "claims.toml")
    ]
    # Joint training is in both claims, and runs for the one that asks for more.
    assert found == [
        *(("joint", seed) for seed in range(5)),
        *(("finetune", seed) for seed in range(5)),
        *(("ctp,queue=0", seed) for seed in range(3)),
    ]


def test_seeds_beyond_those_of_a_sequence_run_where_somebody_asks(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path)
    asked = CLAIMS.replace('b = "finetune"', 'b = "finetune"\nseeds = 8', 1)
    (tmp_path / "claims.toml").write_text(asked, encoding="utf-8")
    protocols, sequence = module("protocols"), read_sequence(tmp_path / "growing.toml")
    eight = protocols.with_seeds(sequence, tmp_path / "claims.toml")
    found = [(one.label, seed) for one, seed in protocols.planned(eight, tmp_path / "claims.toml")]
    assert found.count(("joint", 7)) == 1
    assert ("ctp,queue=0", 3) not in found
    # What a cell is of does not hang on how many seeds there are.
    assert eight.digest(sequence.strategies[0]) == sequence.digest(sequence.strategies[0])
    assert [step.name for step in eight.ordered(7)] == ["one", "two"]
    assert len(protocols.planned(eight, tmp_path / "claims.toml", most=2)) == 6


def test_a_cell_that_is_run_again_is_compared_answer_by_answer(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path)
    protocols = module("protocols")
    kept = read_cells(tmp_path / "cells", "growing")["joint", 0]
    assert protocols.answers_that_differ(kept, kept) == 0
    other = replace(
        read_cells(tmp_path / "cells", "growing")["finetune", 0], made=dict(kept.made) | {"commit": "abc"}
    )
    assert protocols.answers_that_differ(kept, other) == 2 * 32
    lines = protocols.differences(kept, other)
    assert lines[0] == "64 answers of 160 differ after the last step."
    assert lines[1] == "trained/told/r1: 90.00 kept, 10.00 again, -80.00"
    assert lines[-1] == "commit: not recorded kept, abc again"


def test_what_another_code_made_is_found_and_made_again_cheapest_first(tmp_path: Path, module: Any) -> None:
    _made_up(tmp_path)
    protocols, sequence = module("protocols"), read_sequence(tmp_path / "growing.toml")
    kept = read_cells(tmp_path / "cells", "growing")
    now = {"sources": sources_of("finetune"), "cpu_seconds": 9.0}
    kept["finetune", 0] = replace(kept["finetune", 0], made=now)
    kept["finetune", 1] = replace(kept["finetune", 1], made=now | {"sources": "older", "cpu_seconds": 7.5})
    found = [(seconds, one.label, seed) for seconds, one, seed in protocols.outdated(sequence, kept)]
    assert (7.5, "finetune", 1) in found
    assert (4.0, "joint", 0) in found  # of its updates: what measuring took is not recorded
    assert not [one for one in found if one[1:] == ("finetune", 0)]
    assert protocols.within([(1.0, "a"), (2.0, "b"), (4.0, "c")], 3.5) == [(1.0, "a"), (2.0, "b")]


def test_a_file_of_cells_that_somebody_sends_in_is_a_row_of_the_leaderboard(
    tmp_path: Path, module: Any
) -> None:
    _made_up(tmp_path)
    ours = read_cells(tmp_path / "cells", "growing")
    for seed in range(3):
        theirs = replace(
            ours["joint", seed], strategy="l2-sp", made={**ours["joint", seed].made, "package": "l2 1.0"}
        )
        write_cell(tmp_path / "contributed" / "ada", theirs)
        # Asked one slice fewer.
        write_cell(tmp_path / "contributed" / "eve", replace(theirs, slices=theirs.slices[:1]))
    text = module("leaderboard").page(tmp_path / "cells", tmp_path / "contributed", tmp_path, ["growing"])
    rows = [line for line in text.splitlines() if line.startswith(("| l2-sp", "| joint", "| finetune"))]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| joint", "Perennial"],
        ["| l2-sp", "ada"],
        ["| finetune", "Perennial"],
    ]
    assert "l2 1.0" in rows[1]
    assert rows[1].split(" | ")[2].startswith("90.0 [")
    assert "- not counted: eve: l2-sp, seed 0: it was asked other captions" in text


def test_a_cell_needs_the_chunks_that_its_sequence_and_its_options_name(module: Any) -> None:
    sequence = read_sequence(BENCHMARKS / "sequences" / "domains.toml")
    by_label = {one.label: one for one in sequence.strategies}
    needed = module("protocols").needed
    own = {"names", "fluent3d", "classes", "line", "photo", "ink", "chalk", "edges", "thermal"}
    assert needed(sequence, by_label["finetune"]) == own
    assert needed(sequence, by_label["zscl"]) >= own | {"reference"}


def test_every_claim_names_strategies_that_its_sequence_runs(module: Any) -> None:
    claims, orderings = module("orderings_claims"), module("orderings")
    known = {}
    for path in (BENCHMARKS / "sequences").glob("*.toml"):
        if not path.name.startswith("tuned"):
            sequence = read_sequence(path)
            known[sequence.name] = {one.label for one in sequence.strategies}
    missing = {
        side.label
        for claim in claims.read_claims(BENCHMARKS / "orderings.toml")
        for side in (claim.a, claim.b)
        if side is not None and side.label not in known[side.sequence]
    }
    assert missing <= TO_COME
    assert {name for _, names in orderings.PROTOCOLS.values() for name in names} <= known.keys()


def test_every_claim_is_measured_by_something_with_a_name(module: Any) -> None:
    claims = module("orderings_claims")
    found = claims.read_claims(BENCHMARKS / "orderings.toml")
    assert all(claim.relation in {"above", "below"} for claim in found)
    assert all(claims.metric_words(claim) for claim in found)
    assert all(claim.dates.startswith("Added 2026-") for claim in found)
    assert {claim.confidence for claim in found} <= {
        "high", "medium to high", "medium", "low to medium", "low", "not promised"
    }  # fmt: skip


def test_what_the_default_was_promised_to_do_holds_or_does_not_or_was_not_run(module: Any) -> None:
    bars, findings = module("evergreen_bars"), module("app.bench.findings")

    seeds = 3

    def ran(sequence: str, strategy: str, right: int, recalls: list[float], **said: Any) -> list[Any]:
        bits = [1] * right + [0] * (40 - right)
        slices = [
            slice_run(recalls, kind=kind, since=1, last=bits, digest=f"{sequence[:9]}:{kind}")
            for kind in ("trained", "held-out")
        ]
        steps = [step(str(n), **said) for n in range(len(recalls) - 1)]
        return [
            cell(slices, strategy=strategy, seed=seed, steps=steps, sequence=sequence)
            for seed in range(seeds)
        ]

    def domains(angle: float) -> list[Any]:
        return [
            *ran("domains", "evergreen", 20, [0, 50], drift={"ram_pictures": angle}),
            *ran("domains", "domain-adapters", 20, [0, 50]),
            *ran("domains", "ewc", 4, [0, 10]),
            *ran("domains", "finetune+er", 36, [0, 90]),
        ]

    def found(lost: float, joint: int, angle: float) -> str:
        cells = {
            "languages-36": ran("languages-36", "evergreen", 30, [0, 75, 75 - lost], cpu_seconds=2.0),
            "languages-36-together": ran("languages-36-together", "cll-clip+joint", joint, [0, 70]),
            "domains": domains(angle),
        }
        return str(bars.bars({name: findings.findings_of(name, own) for name, own in cells.items()}))

    kept, broken = found(0.2, 10, 0.0), found(2.0, 36, 3.0)
    assert "- holds: 36 languages, trained names, not told: R@1 at the end no lower than joint" in kept
    assert "- holds: 36 languages, not told: forgets at most 0.5 points" in kept
    assert "- not run: 36 languages: at most a fifth" in kept
    assert (
        "- holds: domains, trained names, own gallery: best of those without replay of pictures: 50.0, next ewc"
        in kept
    )
    assert "- holds: domains: no vector of a picture of another domain moves" in kept
    assert "does not hold" not in kept
    assert broken.count("**does not hold**") == 4
    still_to_run = replace(
        one := findings.findings_of("domains", domains(0.0)), not_run=("lwf (seeds 0, 1, 2)",)
    )
    assert "- holds: domains, trained names" in bars.bars({"domains": one})
    assert "1 of the rivals have no cell" in bars.bars({"domains": still_to_run})
    seeds = 1
    assert "- too few seeds: 36 languages, not told: forgets at most 0.5 points" in found(0.2, 10, 0.0)
    assert "- too few seeds: 36 languages, trained names, not told: R@1" in found(0.2, 10, 0.0)
    assert "- too few seeds: domains, trained names, own gallery" in found(0.2, 10, 0.0)
    assert "- too few seeds: 36 languages, not told: forgets" in found(2.0, 10, 0.0)
