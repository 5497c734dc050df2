"""The demo's story does the real thing, and its claims can fail."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gradio as gr
import pytest

from app.demo import homes, script, story
from app.demo.findings import Check, Exhibit, Findings, Notebook
from app.demo.guide import Guide, guide_for
from app.demo.player import HEADLINE, THINGS, Cast, Learn, Player
from app.demo.story import STEPS
from app.desk.errors import UpdateRunning, UsageProblem
from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import going_live, update_cycle
from app.learning.outcomes import Tell, UpdateOutcome, say_nothing
from app.server.serving import Serving
from app.ui.access import Access
from ingest.samples.emoji import colour_emoji_font
from tests.app.small_home import copy_of, small_home

ROOT = Path(__file__).parents[3]
SMALL = Cast(pictures=100, drawings=30)


def settings_of(home: Path) -> Settings:
    """A home whose gate is content with few pictures and few samples."""
    return load_settings(home=home, gate={"samples": 200, "minimum_images": 10})


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A guided demo's home with its first pictures; not to be changed."""
    home = copy_of(small_home(tmp_path_factory), tmp_path_factory.mktemp("demo"))
    homes.mark(home, homes.GUIDED)
    script.make_guided_home(settings_of(home), SMALL)
    return home


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(settings_of(copy_of(prepared, tmp_path))) as opened:
        yield opened


def learn_here(workspace: Workspace) -> Learn:
    def learn(request: UpdateRequest, progress: Tell) -> UpdateOutcome:
        scratch = workspace.home.staging / f"demo-{time.time_ns()}"
        scratch.mkdir()
        return update_cycle.update(workspace, request, scratch=scratch, progress=progress)

    return learn


def player_on(workspace: Workspace, learn: Learn | None = None) -> Player:
    return Player(workspace, learn or learn_here(workspace), say_nothing, SMALL)


def played(act: Callable[[Player, Notebook], None], player: Player) -> dict[str, bool]:
    """Plays an act and returns its claims."""
    notes = Notebook()
    act(player, notes)
    return {check.claim: check.holds for check in notes.checks}


def test_the_first_gallery_shows_the_headline_and_everything_like_it() -> None:
    scenes = [scene for scene, _, _ in Cast().gallery()]
    assert HEADLINE in scenes
    assert len(set(scenes)) == len(scenes) == Cast().pictures
    alike = [s for s in scenes if all(getattr(s, name) == getattr(HEADLINE, name) for name in THINGS)]
    assert len(alike) == 15


def test_english_works_and_german_does_not_before_anybody_taught_it(workspace: Workspace) -> None:
    player = player_on(workspace)
    assert all(played(story.english_works, player).values())
    assert all(played(story.german_fails, player).values())


def test_emoji_join_the_gallery_where_there_is_a_font_and_are_never_judged(workspace: Workspace) -> None:
    known = {chunk.name for chunk in workspace.catalog.chunks()}
    assert (story.EMOJI_CHUNK in known) == (colour_emoji_font() is not None)
    assert list(workspace.catalog.test_images("emoji")) == []


def test_no_picture_names_a_place_that_is_gone(workspace: Workspace) -> None:
    assert workspace.catalog.sources.below(workspace.home.root) == []


def test_teaching_german_embeds_nothing_and_keeps_english(workspace: Workspace) -> None:
    claims = played(story.german_is_taught, player_on(workspace))
    assert claims["evergreen was chosen"]
    assert claims["no picture was embedded again"]
    assert claims["the index is the very same as before"]
    assert claims["no old slice lost more than 5 points"]


def test_wrong_captions_change_nothing(workspace: Workspace) -> None:
    before = going_live.live_release(workspace)[0]
    claims = played(story.wrong_captions, player_on(workspace))
    assert claims["its checks hold it before anything is learned from it"]
    assert claims["no release was made of it"]
    assert claims["every slice measures the same as before"]
    assert going_live.live_release(workspace)[0] == before


def test_a_step_that_breaks_its_promise_ends_the_story(workspace: Workspace) -> None:
    def lazy(request: UpdateRequest, progress: Callable[[Stage], None]) -> UpdateOutcome:
        progress(Stage("train", "looking out of the window"))
        return UpdateOutcome(
            version="v1", strategy="evergreen", training={"image_forwards": 0}, verdict="reject"
        )

    said: list[str] = []
    assert not script.tell_story(workspace, lazy, SMALL, said.append)
    assert any("FAIL the gate lets it pass" in line for line in said)
    assert any("German is taught" in line for line in said)
    assert not any("Japanese" in line for line in said)


def test_findings_survive_being_written_down() -> None:
    findings = Findings(("10 pictures",), (Check("it works", True),), (Exhibit("boats", ("a", "b")),), 1.5)
    assert Findings.from_json(findings.to_json()) == findings


def test_a_step_without_a_claim_or_with_a_broken_one_has_not_passed() -> None:
    assert not Findings(("many numbers",)).passed
    assert not Findings(checks=(Check("this", True), Check("that", False))).passed
    assert Findings(checks=(Check("this", True),)).passed


def test_the_script_replaces_its_own_home_and_nobody_elses(tmp_path: Path) -> None:
    own, guided, strange = (tmp_path / name for name in ("own", "guided", "strange"))
    for folder, kind in ((own, homes.SCRIPTED), (guided, homes.GUIDED)):
        folder.mkdir()
        homes.mark(folder, kind)
    strange.mkdir()
    (strange / "letters.txt").write_text("dear")
    assert homes.fresh_home(own) == own
    assert not own.exists()
    assert homes.fresh_home(guided) == tmp_path / "guided-script"
    assert homes.is_guided(guided)
    with pytest.raises(UsageProblem, match="strange is not empty and was not made by the demo"):
        homes.fresh_home(strange)
    assert (strange / "letters.txt").exists()


def test_a_home_of_somebody_elses_is_not_served_as_a_demo(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(UsageProblem, match="holds something else than a guided demo"):
        script.make_guided_home(load_settings(home=tmp_path))


def test_the_guide_plays_steps_in_order_and_remembers_them(workspace: Workspace) -> None:
    serving = Serving(workspace)
    serving.refresh()
    guide = Guide(serving, cast=SMALL)
    with pytest.raises(UsageProblem, match="“English search works” comes next"):
        guide.start("rollback")
    guide.start("english")
    with pytest.raises((UpdateRunning, UsageProblem)):
        guide.start("english")
    guide.wait()
    assert guide.running is None
    again = guide_for(serving, None)
    assert again is not None
    assert again.found()["english"].passed
    assert again.following() == STEPS[1]


def test_a_step_that_cannot_be_played_says_why_and_can_be_tried_again(workspace: Workspace) -> None:
    def broken(request: UpdateRequest, progress: Callable[[Stage], None]) -> UpdateOutcome:
        raise UsageProblem("The dog ate it.")

    done = {step.name: Findings(checks=(Check("played", True),)) for step in STEPS[:2]}
    homes.mark(workspace.home.root, homes.GUIDED, done)
    guide = Guide(Serving(workspace), learn=broken, cast=SMALL)
    guide.start("german-taught")
    guide.wait()
    assert "The dog ate it." in guide.found()["german-taught"].checks[0].claim
    following = guide.following()
    assert following is not None
    assert following.name == "german-taught"


def test_only_a_demos_home_has_a_guide(workspace: Workspace) -> None:
    (workspace.home.root / homes.MARK).unlink()
    assert guide_for(Serving(workspace), None) is None


def test_the_demos_page_has_a_button_for_each_step(workspace: Workspace) -> None:
    from starlette.requests import Request

    from app.ui.demo import _GuideTab
    from app.ui.pages import search_page

    done = {
        "english": Findings(("  en/scenes 94.1", "94 %"), (Check("it works", True),), (Exhibit("a", ("b",)),))
    }
    homes.mark(workspace.home.root, homes.GUIDED, done)
    serving = Serving(workspace)
    serving.refresh()
    guide = guide_for(serving, None)
    assert guide is not None

    async def build() -> tuple[str, str, _GuideTab]:
        with gr.Blocks():
            tab = _GuideTab(guide)
        access = Access(serving, None)
        pages = [str(search_page(serving, access, one).config) for one in (guide, None)]
        return pages[0], pages[1], tab

    with_guide, without, tab = asyncio.run(build())  # Gradio makes, and leaves, a loop of its own without one
    assert all(f"play-{step.name}" in with_guide for step in STEPS)
    assert "play-english" not in without
    headers = [(b"host", b"127.0.0.1:7860")]
    request = gr.Request(Request({"type": "http", "headers": headers, "scheme": "http", "path": "/"}))
    shown = tab._all(request)
    assert shown.keys() == set(tab._outputs)
    assert [shown[button]["interactive"] for button in tab.buttons] == [False, True] + [False] * 7


@pytest.mark.slow
def test_the_whole_story_passes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perennial", "demo", "--script", "--home", str(tmp_path / "home")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("FAIL") == 0
    assert all(step.title in ended.stdout for step in STEPS)
