"""Claims about verbs that teach and measure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from app.commands import learning
from app.desk.errors import JobFailed
from ingest.records import JobRecord
from tests.app.commands.running import document, run
from tests.model_updates.contract import IN_CLOSED_FORM


def test_methods_list_every_strategy_with_its_options() -> None:
    from model_updates.strategies import STRATEGIES

    found = json.loads(run("methods", "--json").stdout)["strategies"]
    assert sorted(method["name"] for method in found) == sorted(STRATEGIES)
    assert all(method["summary"] for method in found)
    assert {one["name"] for one in found if "epochs" not in one["options"]} == IN_CLOSED_FORM
    assert "language-tables" in run("methods").stdout


def test_one_method_is_shown_alone_and_an_unknown_one_is_refused() -> None:
    assert json.loads(run("methods", "teir", "--json").stdout)["keeps"] == "how often each token was seen"
    assert "apply_to" in run("methods", "teir").stdout
    refused = run("methods", "tier")
    assert refused.exit_code == 2
    assert "no strategy 'tier'; choose one of" in " ".join(refused.output.split())


def test_evaluate_measures_the_live_release(template: Path) -> None:
    found = document("evaluate", "--probes", home=template)
    assert {part["language"] for part in found["slices"]} == {"en"}
    assert run("evaluate", "--release", "r1", home=template).exit_code == 0


def test_a_dry_run_says_what_an_update_would_take_and_starts_nothing(home: Path) -> None:
    chunk = next(one["id"] for one in document("status", home=home)["chunks"])
    found = document("update", "--chunk", chunk, "--dry-run", home=home)
    assert found["recommended"] == "evergreen"
    assert found["total_seconds"] >= 0
    assert document("status", home=home)["jobs"] == []
    refused = run("update", "somewhere", "--dry-run", home=home)
    assert refused.exit_code == 2
    assert "Take SOURCE in with `ingest`" in refused.stderr


JOB = JobRecord("j1", "update", "succeeded", {}, {}, {}, None, None, "", None, None)


@pytest.mark.parametrize(
    ("state", "result", "exit_code"),
    [
        ("succeeded", {}, 0),
        ("rejected", {}, 3),
        ("review", {}, 4),
        ("failed", {"code": "nothing_to_learn", "exit_code": 1}, 1),
        ("failed", {"code": "update_running", "exit_code": 5}, 5),
        ("cancelled", {}, 1),
        ("interrupted", {}, 1),
    ],
)
def test_the_exit_code_tells_the_verdict(state: str, result: dict[str, Any], exit_code: int) -> None:
    ended = replace(JOB, state=state, error="It went wrong." if state == "failed" else None)
    outcome = {"sentence": "s", "seconds": 1.0, "images_embedded": 0, "release": "r3-1", "version": "v2-1"}
    ended = replace(ended, result=result or outcome)
    with pytest.raises((typer.Exit, JobFailed)) as left:
        learning.show_end(ended, is_json=True)
    assert isinstance(left.value, (typer.Exit, JobFailed))
    assert left.value.exit_code == exit_code
    if isinstance(left.value, JobFailed):
        assert left.value.code == result.get("code", "job_failed")
