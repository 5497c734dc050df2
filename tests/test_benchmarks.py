"""The pure parts of the benchmarks, on made-up figures; the evaluation data are never touched."""

from __future__ import annotations

import csv
import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_updates.opening import open_encoder

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a benchmark's module as running the script would find it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def _write_emoji(data: Path) -> None:
    (data / "emoji" / "noto").mkdir(parents=True)
    keys = [f"1f6{n:02x}" for n in range(40)]
    with (data / "emoji" / "concepts.tsv").open("w", encoding="utf-8") as file:
        file.write("key\temoji\tgroup\tsubgroup\theld_out\n")
        file.writelines(f"{key}\t?\tg\ts\t{int(n % 8 == 0)}\n" for n, key in enumerate(keys))
    with (data / "emoji" / "names.tsv").open("w", encoding="utf-8") as file:
        file.write("key\temoji\tlang\tname\tkeywords\n")
        file.writelines(f'{key}\t?\tde\t"Ding" {key}\twort\n' for key in keys)
    for key in keys:
        (data / "emoji" / "noto" / f"{key}.png").write_bytes(key.encode())


def test_held_out_concepts_become_the_test_split_and_the_others_never_do(tmp_path: Path, module: Any) -> None:
    _write_emoji(tmp_path)
    splits = module("real_input_data").emoji_splits(tmp_path)
    held_out = {key for key, split in splits.items() if split == "test"}
    assert held_out == {f"1f6{n:02x}" for n in range(0, 40, 8)}
    assert "train" in splits.values()


def test_the_validation_share_is_about_six_percent_and_the_same_every_time(module: Any) -> None:
    split_of = module("real_input_data").split_of
    splits = [split_of(f"k{n}", held_out=False) for n in range(5000)]
    assert 0.05 < splits.count("validation") / 5000 < 0.07
    assert splits == [split_of(f"k{n}", held_out=False) for n in range(5000)]


def test_an_upload_holds_each_picture_once_and_every_caption_unchanged(tmp_path: Path, module: Any) -> None:
    _write_emoji(tmp_path)
    data = module("real_input_data")
    rows = data.emoji_rows(tmp_path, data.emoji_splits(tmp_path, 8), "de", ("noto",))
    folder = data.write_upload(tmp_path / "upload", [*rows, *rows[:1]])
    with (folder / "captions.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [line["caption"] for line in written] == [row.caption for row in [*rows, *rows[:1]]]
    assert written[0]["caption"].startswith('"Ding"')
    assert all((folder / line["image"]).exists() for line in written)
    assert len(rows) == 9


# Two languages, four names: English keeps 1 of its 2 hits after the second update, German has 3 of 4.
TABLE = [
    {"en": {"1": "1100", "10": "1110"}},
    {"en": {"1": "1100", "10": "1110"}, "de": {"1": "1110", "10": "1111"}},
    {"en": {"1": "1000", "10": "1110"}, "de": {"1": "1110", "10": "1111"}, "fr": {"1": "1111", "10": "1111"}},
]


def test_average_recall_and_forgetting_follow_from_the_hits(module: Any) -> None:
    report = module("real_input_figures")
    matrix = report.recall_matrix(TABLE)
    assert matrix == [[50.0], [50.0, 75.0], [25.0, 75.0, 100.0]]
    assert report.average_recall(matrix) == pytest.approx(200 / 3)
    assert report.forgetting(matrix) == pytest.approx(12.5)


def test_intervals_hold_the_estimate_and_a_chain_without_loss_forgets_exactly_nothing(module: Any) -> None:
    report = module("real_input_figures")
    interval = report.chain_interval([TABLE, TABLE])
    assert interval["AR"][0] <= 200 / 3 <= interval["AR"][1]
    kept = report.chain_interval([TABLE[1:2] * 1 + [TABLE[1] | {"fr": TABLE[2]["fr"]}]])
    assert kept["F"] == (0.0, 0.0)


def test_a_change_interval_is_signed_after_minus_before(module: Any) -> None:
    change, low, high = module("real_input_figures").change_interval(["1111", "1111"], ["1100", "1110"])
    assert change == pytest.approx(-37.5)
    assert low <= change <= high <= 0


def _step(language: str, verdict: str = "promote") -> dict[str, Any]:
    return {
        "language": language,
        "strategy": "language-tables",
        "verdict": verdict,
        "reason": "Because.",
        "promoted": verdict == "promote",
        "seconds": 12.0,
        "training_seconds": 10.0,
        "images_embedded": 0,
        "image_forwards": 0,
        "kept_epoch": 3,
        "epochs": 15,
        "notes": ["A note."],
        "rules": [["learned", verdict, ["Because."]]],
        "chance_r1": 0.4,
        "recalls": {"t2i_r1": 1.0, "t2i_r5": 2.0, "t2i_r10": 3.0},
        "rows": [],
    }


def _common(part: str, run: str) -> dict[str, Any]:
    return {"part": part, "run": run, "seed": 0, "date": "2026-01-01", "machine": "paper", "limit": None}


def test_the_report_says_which_bars_hold_and_how_many_seeds_it_has(tmp_path: Path, module: Any) -> None:
    hits = {"trained": TABLE, "held-out": TABLE}
    detected = {"1": "1000", "10": "1000", "sure_and_right": 0.5, "among_several": 0.25}
    languages = ["en", "de", "fr"]
    detection = {kind: dict.fromkeys(languages, detected) for kind in hits}
    chain = {"languages": languages, "steps": [_step("de"), _step("fr", "review")], "hits": hits}
    for run in ("language-tables", "cll-clip", "teir"):
        values = _common("emoji-languages", run) | chain | {"detection": detection}
        (tmp_path / f"emoji-languages.{run}.0.json").write_text(json.dumps(values))
    style = {when: {"line": {"en": TABLE[0]["en"]}, "noto": TABLE[2]} for when in ("before", "after")}
    styles = {"languages": languages, "step": _step("en"), "hits": dict.fromkeys(hits, style)}
    for run in ("finetune", "c-clip-both"):
        values = _common("emoji-styles", run) | styles
        (tmp_path / f"emoji-styles.{run}.0.json").write_text(json.dumps(values))
    photos = _common("flickr", "default") | {"photos": 10, "steps": [_step("en", "reject")]}
    (tmp_path / "flickr.default.0.json").write_text(json.dumps(photos))
    target = tmp_path / "report.md"
    module("real_input_report").write_report(tmp_path, target)
    text = target.read_text()
    assert "| `teir` | 1 |" in text
    assert "**does not hold**: trained: `language-tables` forgets nothing (12.50)" in text
    assert "passes the default gate (1 of 2 updates)" in text
    assert "reject, not promoted" in text


def _evergreen(*, moved: list[str]) -> dict[str, Any]:
    poor, good = {"1": "0000", "10": "0001"}, {"1": "1101", "10": "1111"}
    mixed = {kind: {"line": poor, "noto": good, "fluent3d": good} for kind in ("trained", "held-out")}
    seen = {kind: {"line": good, "noto": good, "fluent3d": good} for kind in mixed}
    right = {"line": 95.0, "noto": 1.0, "fluent3d": 2.0, "photographs": 0.0, "ink": 80.0}
    shares = {domain: dict.fromkeys(("line", "ink"), share) for domain, share in right.items()}
    same = {"moved_routes": moved, "index_compared": 7, "index_identical": not moved}
    step = _step("en") | same | {"routes": shares, "before": poor, "after": good}
    kinds = ({kind: hits for kind in mixed} for hits in (poor, good))
    before, after = kinds
    line = step | {"before": {"mixed": mixed, **before}, "after": {"mixed": seen, **after}}
    words = step | {"before": before, "after": after}
    return {
        "languages": dict.fromkeys(mixed, TABLE[0]),
        "languages_after": dict.fromkeys(mixed, TABLE[0]),
        "query_ms_before": 2.0,
        "query_ms_after": 2.1,
        "adapter_bytes": {"line": 500_000, "lda-router": 4_000_000},
        "steps": {"line": line, "ink": step, "words": words},
    }


@pytest.mark.parametrize(("moved", "verdict"), [([], "holds"), (["image noto"], "**does not hold**")])
def test_evergreens_part_names_its_bars_and_leaves_the_others_parts(
    tmp_path: Path, module: Any, moved: list[str], verdict: str
) -> None:
    values = _common("evergreen", "default") | _evergreen(moved=moved)
    (tmp_path / "evergreen.default.0.json").write_text(json.dumps(values))
    step = _evergreen(moved=moved)["steps"]["ink"]
    photos = _common("evergreen-photos", "default") | {"step": step, "photos": 9}
    (tmp_path / "evergreen-photos.default.0.json").write_text(json.dumps(photos))
    target = tmp_path / "report.md"
    target.write_text("# Title\n\nSaid before.\n\n## (b) Styles\n\nkept\n\n## (d) Old\n\ngone\n")
    module("real_input_report").write_report(tmp_path, target)
    text = target.read_text()
    assert text.startswith("# Title\n\nSaid before.\n\n## (b) Styles\n\nkept\n\n## (d) Emoji and scenes")
    assert "gone" not in text
    assert f"- {verdict}: every vector of every other route is bit-identical" in text
    assert "- holds: an adapter takes 0.50 MB" in text
    assert "- holds: all eight languages" in text
    assert "- holds: unlabelled, after line: 95.0 %" in text
    assert "- **does not hold**: unlabelled, after ink: 80.0 %" in text
    assert "## (e) Photographs by `evergreen`: flickr8k, 9 training photos" in text


def test_a_report_of_nothing_is_still_a_report(tmp_path: Path, module: Any) -> None:
    target = tmp_path / "report.md"
    module("real_input_report").write_report(tmp_path / "empty", target)
    assert "0 finished runs" in target.read_text()


def test_answers_beside_an_update_are_summed_up_by_their_middle_and_their_slowest(module: Any) -> None:
    answers = module("beside_server").Answers([n / 1000 for n in range(100, 0, -1)], failed=2)
    assert str(answers) == "100 answers, 2 failed, p50 50 ms, p95 95 ms"
    assert str(module("beside_server").Answers()) == "no answer, 0 failed"


def view(told: str, detected: str, concepts: str) -> dict[str, Any]:
    return {"concepts": list(concepts), "told": {"1": told}, "detected": {"1": detected}}


def test_the_loss_when_nobody_says_the_language_is_over_all_names_with_concepts_drawn_together(
    module: Any,
) -> None:
    loss = module("languages_many").loss
    # One name of eight is lost, one is won; all names of a concept fare alike, so concepts decide the width.
    both = {"en": view("1100", "1010", "abcd"), "de": view("1100", "1010", "abcd")}

    change, low, high = loss(both)
    once = loss({"en": both["en"]})

    assert change == 0.0
    assert low < 0 < high
    assert once == pytest.approx((change, low, high))  # the same names in another language tell nothing new


def test_the_report_holds_the_bars_of_many_languages_against_their_figures(
    module: Any, tmp_path: Path
) -> None:
    report = module("languages_report")
    tables = {tag: {"first": 0.9, "searched": 0.96, "tables": 2.3} for tag in ("en", "zh", "ja")}
    names = {tag: view("1" * 20, "1" * 19 + "0", "abcdefghijklmnopqrst") for tag in tables}
    run = {
        "languages": list(tables),
        "pictures": 20,
        "views": dict.fromkeys(("own", "mixed", "memory", "unseen"), names),
        "tables": dict.fromkeys(("own", "mixed", "memory", "unseen"), tables),
        "machine": "m",
        "date": "d",
    }
    (tmp_path / "product-36.json").write_text(json.dumps(run), encoding="utf-8")

    report.write_report(tmp_path, tmp_path / "languages.md")

    text = (tmp_path / "languages.md").read_text(encoding="utf-8")
    assert "- **does not hold**: the product at 3 languages, held-out names: R@1 changes by −5.0" in text
    assert "- holds: the product, held-out names of 3 languages" in text
    assert "- **does not hold**: the product: 2.30 tables" in text


def test_the_report_of_speed_has_each_part_and_the_steps_of_those_that_have_several(module: Any) -> None:
    speed, timing = module("speed"), module("speed_timing")
    facts = {"date": "2026-01-01", "machine": "paper"}
    rescan = timing.Measured("a folder", "4.0 s", "<= 3 s", False, "two runs: " + timing.spread([3.0, 5.0]))
    minute = timing.Measured("a minute", "50 s", "<= 60 s", True, "once", (("ready", "9.0 s", "8.0 s"),))

    text = speed.report({"minute": asdict(minute) | facts, "rescan": asdict(rescan) | facts})

    assert "| a folder | 4.0 s | <= 3 s | **no** |" in text
    assert "- a folder: two runs: 3.00 / 4.00 / 5.00 s. paper, 2026-01-01." in text
    assert "| ready | 9.0 s | 8.0 s |" in text
    assert text.index("| a folder") < text.index("| a minute") < text.index("| ready")


@pytest.mark.slow
def test_a_folder_is_timed_as_it_was_and_after_changes(tmp_path: Path, module: Any) -> None:
    folders = module("speed_folders")
    for measured in (
        folders.unchanged_folder(tmp_path, pictures=12, rounds=1),
        folders.changed_folder(tmp_path, pictures=12, rounds=2, changes=2),
    ):
        assert measured.what.startswith("`perennial add` of 12 ")
        assert "1 new" in measured.details or "2 new" in measured.details


def test_a_hundred_chunks_bring_every_language_and_domain_once_before_they_come_again(module: Any) -> None:
    plan = module("drip_plan")
    drops = plan.planned()
    assert [drop.number for drop in drops] == list(range(1, 101))
    assert drops == plan.planned()
    languages, domains = {"en"}, {plan.FIRST}
    for drop in drops:
        languages |= {drop.language} if drop.kind == plan.LANGUAGE else set()
        domains |= {drop.domain} if drop.kind == plan.DOMAIN else set()
        assert drop.language in languages
        assert drop.domain in domains
        assert 40 <= drop.size <= 1_000
        assert bool(drop.damage) == (drop.kind == plan.BAD)
        assert drop.again < drop.number
    assert len(languages) == 36
    assert domains == set(plan.DOMAINS)


def test_what_drips_in_is_judged_by_what_moved_and_by_ratios_of_one_run(tmp_path: Path, module: Any) -> None:
    report = module("drip_report")
    step: dict[str, Any] = {"kind": "language", "language": "de", "domain": "noto", "verdict": "promote"}
    step |= {"standing": "new", "moved": ["de"], "languages": ["en", "de"], "routes": 0, "pictures": 9}
    step |= {"stages": {"train": 9.0, "measure": 2.0}, "peak_mb": 5, "version_bytes": 9, "own_bytes": 1}
    step |= {"update_seconds": 11.0}
    step |= {"slices": [["en", "noto", "own", 4, {"t2i_r10": 50.0}]], "home_bytes": 1}
    first: dict[str, Any] = {
        "first": {"load_seconds": 1.0, "mb": 5.0},
        "newest": {"load_seconds": 1.0, "mb": 5.0},
    }
    first["looked"] = {"first": 1.0, "newest": 1.0, "tables": {"newest": 1.0}}
    later: dict[str, Any] = {
        "number": 2,
        "languages": ["en", "de", "fr"],
        "moved": ["de", "fr", "ja"],
        "stages": {"measure": 4.0},
    }
    alike = {"first": 1.0, "newest": 1.3, "texts": 40, "of": 60}
    later |= {"newest": {"load_seconds": 3.0, "mb": 7.0}}
    later |= {"looked": first["looked"] | {"newest": 1.1, "alike": alike}}
    steps = [{"number": 1} | step | first, step | first | later]
    said = [bar.split(":")[0] for bar in report.bars(steps)]
    assert said == ["misses", "holds", "misses", "misses", "misses"]
    assert "1.30 times for the 40 of 60 texts that both read by equally many tables" in report.bars(steps)[1]
    assert (
        "whole updates that teach a language take 11 s, and 11 in the first quarter" in report.bars(steps)[3]
    )
    assert "no language was taught" in report.bars([one | {"kind": "domain"} for one in steps])[3]
    (tmp_path / "images").mkdir()
    (tmp_path / "results").mkdir()
    report.write_report(steps, tmp_path / "results" / "drip.md")
    page = (tmp_path / "results" / "drip.md").read_text(encoding="utf-8")
    assert "2 of 100 chunks" in page
    assert (tmp_path / "images" / "drip-recall.svg").exists()


def test_each_patch_of_a_painted_picture_has_eighty_features_of_its_own_and_no_other(module: Any) -> None:
    features = np.zeros(1280, dtype=np.float32)
    features[80 * 5 + 2], features[80 * 5 + 3] = 1.0, 9.0  # a quarter of the highest, and more than it
    laid_out = module("painted")._laid_out(features)
    assert laid_out.shape == (64, 64, 3)
    patch = laid_out[16:32, 16:32].reshape(-1)  # the sixth of four in a row
    assert set(np.flatnonzero(patch)) == set(range(2 * 9, 4 * 9))
    assert set(patch[18:27]) == {128}
    assert set(patch[27:36]) == {255}
    assert np.count_nonzero(laid_out) == 18


def _beside(program: str, number: int, *, cpu: float, why: str | None = None) -> dict[str, Any]:
    told = {"date": "2026-01-01", "busy": 0.5, "machine": "paper", "why": why}
    took = {"wall": 2 * cpu, "cpu": cpu, "peak": 100.0}
    return {"row": "search", "size": 10_000, "program": program, "round": number} | told | took


def test_peers_are_set_beside_in_the_same_round_and_what_is_behind_says_why(
    tmp_path: Path, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = module("peers")
    monkeypatch.setitem(peers.WHY, ("search", "processor time, s"), "it reads more")
    kept = tmp_path / "peers.jsonl"
    ours, theirs = (1.5, 4.0, 2.2), (1.0, 2.0, 2.0)
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        for record in (
            _beside("Perennial", number, cpu=one),
            _beside("rclip", number, cpu=other),
            _beside("bare faiss", number, cpu=4.4),
            _beside("clip-retrieval", number, cpu=0, why="it has no such command"),
        ):
            peers.note(kept, **record)
    peers.note(kept, **_beside("rclip", 0, cpu=0.5))  # measured again: the last counts
    peers.note(kept, row="left out", size=10**6, why="no room")
    text = peers.page(peers.known(kept))
    row = next(line for line in text.splitlines() if line.startswith("| processor time, s"))
    assert row.endswith(
        "| 2.20 | 2.00 | 4.40 | **behind rclip** by 2.00x (1.10–3.00) | 2.00x better than bare faiss (1.10–2.93) |"
    )
    assert "- processor time, s: it reads more." in text
    assert f"- clock, s: {peers.WHY['search', 'clock, s']}" in text
    assert "clip-retrieval: it has no such command." in text
    assert "Not measured: 1,000,000 vectors; no room." in text
    peers.note(kept, **_beside("Perennial", 0, cpu=0.4))
    assert "| level with rclip, behind 1.10x (0.80–2.00) |" in peers.page(peers.known(kept))


def test_many_clients_ask_different_texts_and_their_times_are_counted(module: Any) -> None:
    bare = module("peers_bare")
    texts: list[str] = []
    said = bare.asked(texts.append, 3, 0.01)
    assert len(set(texts)) == len(texts) == said["asked"] >= 3
    assert 0 <= said["p50"] <= said["p99"]


def test_without_a_card_the_measurement_of_one_says_so(
    module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = module("gpu")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["gpu.py"])
    gpu.main()
    assert capsys.readouterr().out == f"{gpu.NO_CARD}\n"


def test_a_batch_costs_what_its_pictures_do(module: Any) -> None:
    gpu, encoder = module("gpu"), open_encoder("perennial-tiny")
    two, four = (gpu.operations(encoder, batch) for batch in (2, 4))
    assert 0 < two == four / 2


@pytest.mark.gpu
def test_training_uses_half_of_a_card(module: Any) -> None:
    measured = module("gpu").share_of_the_card(pairs=2048, batch=256)
    assert measured.holds, measured.details


def test_what_scale_test_runs_last_finds_all_that_it_needs() -> None:
    """As `make` runs it: in a shell that knows no PYTHONPATH."""
    command = [sys.executable, "-W", "ignore", str(BENCHMARKS / "scale.py"), "--help"]
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert "--most" in subprocess.run(command, capture_output=True, text=True, check=True, env=known).stdout


def test_an_audit_that_asked_nobody_has_found_nothing(module: Any) -> None:
    """Where its database knows no package, as a mirror without one, pip-audit says that no weakness is known."""
    audit = module("audit")
    skipped = {"name": "perennial-search", "skip_reason": "Dependency not found on PyPI"}
    well = {"name": "numpy", "version": "2.4.0", "vulns": []}
    weak = {"name": "lark", "version": "1.2", "vulns": [{"id": "CVE-2026-1", "fix_versions": ["1.3"]}]}
    for report in ("", "Traceback", json.dumps({"dependencies": [skipped]})):
        code, sentence = audit.verdict(report)
        assert (code, "could not be reached" in sentence) == (3, True)
    assert audit.verdict(json.dumps({"dependencies": [skipped, well]})) == (
        0,
        "No weakness is known in 1 packages; the database does not know 1 others.",
    )
    code, sentence = audit.verdict(json.dumps({"dependencies": [skipped, well, weak]}))
    assert (code, sentence.splitlines()[0]) == (1, "lark 1.2: CVE-2026-1, mended in 1.3")


def test_a_licence_that_is_said_in_words_is_listed_too(module: Any) -> None:
    bill = {"components": [{"name": name} for name in ("torchvision", "axe-playwright-python", "pytest")]}
    bill["components"][2]["licenses"] = ["MIT"]  # type: ignore[assignment]
    module("audit").add_licences(bill)
    said = [one["licenses"] for one in bill["components"]]
    assert said == [[{"license": {"name": "BSD"}}], [{"license": {"name": "MIT License"}}], ["MIT"]]


def test_each_guard_of_the_soak_stands_in_the_code_once_and_names_a_test_that_is_there(module: Any) -> None:
    for guard in module("soak_guards").GUARDS:
        assert (BENCHMARKS.parent / guard.file).read_text(encoding="utf-8").count(guard.code) == 1, guard.what
        file, _, test = guard.test.partition("::")
        assert f"def {test}" in (BENCHMARKS.parent / file).read_text(encoding="utf-8"), guard.what
