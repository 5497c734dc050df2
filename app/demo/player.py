"""What the guided demo does in a visitor's place: hands chunks in, starts updates, asks questions and counts.

Nothing here is a shortcut: chunks are uploads like any other, updates run as jobs, questions go through search.
What the player knows beyond a visitor is what each drawn picture shows, so that it can count right answers.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

from app.desk.errors import AppError
from app.desk.hits import SearchAnswer
from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.jobs import worker
from app.learning import going_live, standing
from app.learning.outcomes import AddOutcome, Tell, UpdateOutcome
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.captions import normalise_caption
from ingest.intake import IntakeOptions
from ingest.pair import BASE_LANGUAGE, SliceKey
from ingest.records import ChunkRecord, JobRecord
from ingest.samples.chunks import Drawing, write_chunk, write_emoji_chunk
from ingest.samples.scene_grid import stable_number
from ingest.samples.scenes import VARIANTS, Scene, all_scenes, caption
from model_updates.evaluation import View
from model_updates.measurement import HeldOut, measure

Learn = Callable[[UpdateRequest, Tell], UpdateOutcome]

PAINTED = ("gouache", "flat")
PAINTED_DOMAIN = "scenes"
DEMO = "demo"
FIRST_RESULTS = 5
HEADLINE = Scene("boat", "red", 2, "beach", "sunset")
"""What the story asks for in every language; the gallery has a picture of it, and fourteen that are near."""
THINGS = ("subject", "colour", "count")


@dataclass(frozen=True)
class Cast:
    """How much takes part in the story."""

    pictures: int = 900  # in the first gallery; 15 % of them are held out, and the gate wants 100 of those
    drawings: int = 750  # in the new style
    style: str = "ink"  # the new one

    def gallery(self) -> list[Drawing]:
        """The first pictures: painted two ways."""
        scenes = _chosen("painted", self.pictures)
        return [(scene, PAINTED[number % len(PAINTED)], number) for number, scene in enumerate(scenes)]

    def style_pictures(self) -> list[Drawing]:
        """The pictures in the new style."""
        return [
            (scene, self.style, number) for number, scene in enumerate(_chosen(self.style, self.drawings))
        ]


@dataclass(frozen=True)
class AnswerSeen:
    """One question's answer."""

    answer: SearchAnswer
    rank: int | None  # of the first picture that shows exactly what was asked for; None when none was found
    alike: int  # how many of the pictures show the same things in the same number and colour, wherever


class Player:
    """Plays on one home, whose workspace is opened for writing."""

    def __init__(self, workspace: Workspace, learn: Learn, tell: Tell, cast: Cast | None = None) -> None:
        self.workspace = workspace
        self.finder = Finder(workspace)
        self.cast = cast or Cast()
        self._learn = learn
        self._tell = tell

    def say(self, message: str) -> None:
        """Tells what is being done."""
        self._tell(Stage("demo", message))

    # ------------------------------------------------------------------ chunks and updates

    def hand_in(
        self, name: str, pictures: Sequence[Drawing], language: str, *, shuffled: bool = False
    ) -> AddOutcome:
        """Draws a chunk as a zip and takes it in as an upload."""
        self.say(f"{name}: drawing {len(pictures)} pictures")
        return self._upload(
            name,
            lambda path: write_chunk(path, scenes=pictures, languages=[language], shuffle_captions=shuffled),
        )

    def hand_in_emoji(self, name: str, font: Path) -> AddOutcome:
        """Takes the sample emoji of a colour font in, under their English names."""
        self.say(f"{name}: drawing them")
        return self._upload(name, lambda path: write_emoji_chunk(path, font))

    def _upload(self, name: str, write: Callable[[Path], None]) -> AddOutcome:
        with tempfile.TemporaryDirectory(dir=self.workspace.home.staging) as folder:
            source = Path(folder) / f"{name}.zip"
            write(source)
            from app.learning import adding  # loads what learns, which pages do without

            return adding.add_chunk(
                self.workspace,
                source,
                IntakeOptions(name=name, pictures_beside=False),  # as an upload: the archive does not stay
                by=DEMO,
                progress=lambda stage: self._tell(replace(stage, message=f"{name}: {stage.message}")),
            )

    def standing(self, chunk: str) -> ChunkRecord:
        """Returns a chunk with what it counts for, and why."""
        return self.workspace.catalog.chunk(chunk)

    def accept(self, chunk: str, why: str, *, measure: bool = False) -> None:
        """Lets a chunk teach in spite of its checks, as a person would; with `measure` it is an old slice at once."""
        standing.accept(self.workspace, chunk, why=why, by=DEMO, measure=measure)

    def teach(self, chunk: str, why: str) -> UpdateOutcome:
        """Runs an update with the strategy that is the default for the chunk."""
        return self._learn(UpdateRequest(chunk=chunk, why=why, by=DEMO), self._tell)

    # --------------------------------------------------------------------------- questions

    def snapshot(self, release: str | None = None) -> Snapshot:
        """Loads what is live, or another release, as a server does."""
        return Snapshot.load(self.workspace, release)

    def ask(self, snapshot: Snapshot, wanted: Scene, language: str, k: int = FIRST_RESULTS) -> AnswerSeen:
        """Asks for a scene in a language that search has to detect."""
        return self.judge(self.finder.find(snapshot, Question.of(caption(wanted, language), k)), wanted)

    def judge(self, answer: SearchAnswer, wanted: Scene) -> AnswerSeen:
        """Says how well an answer fits what was wanted."""
        scenes = [self._scene(hit.id) for hit in answer.hits]
        rank = scenes.index(wanted) + 1 if wanted in scenes else None
        alike = sum(
            scene is not None and all(getattr(scene, name) == getattr(wanted, name) for name in THINGS)
            for scene in scenes
        )
        return AnswerSeen(answer, rank, alike)

    def share_found(self, snapshot: Snapshot, language: str) -> float:
        """Asks for every held-out scene; returns the percentage of answers with it among the first five."""
        wanted = [self._scene(image_id) for image_id in self.workspace.catalog.test_images(PAINTED_DOMAIN)]
        ranks = [self.ask(snapshot, scene, language).rank for scene in wanted if scene is not None]
        return 100.0 * fmean(rank is not None for rank in ranks)

    def recall(self, language: str, domain: str = PAINTED_DOMAIN) -> dict[str, float]:
        """Measures what is live on captions of the held-out pictures, in any language, learned or not.

        It is in percent by name, with "chance_r1": R@1 of guessing.
        """
        ids = tuple(self.workspace.catalog.test_images(domain))
        scenes = {image_id: self._scene(image_id) for image_id in ids}
        captions = tuple((i, caption(scene, language)) for i, scene in scenes.items() if scene is not None)
        record = going_live.live_release(self.workspace)[1]
        held_out = HeldOut(SliceKey(language, domain), ids, captions)
        encoder = self.workspace.open_encoder(record.version)
        results = measure(encoder, [held_out], self.workspace.load_image, self.workspace.features)
        return results[held_out.key].recalls() | {"chance_r1": 100.0 / max(1, len(ids))}

    def slices(self, release: str | None = None) -> dict[str, dict[str, float]]:
        """Measures what is live, or another release, on all held-out pairs of its languages."""
        measured = going_live.evaluate(self.workspace, release, views=[View.OWN])
        return {str(one.key): result.recalls() for one, result in sorted(measured.items())}

    def _scene(self, image_id: str) -> Scene | None:
        """What a drawn picture shows, read from its English caption."""
        texts = self.workspace.catalog.captions_in(BASE_LANGUAGE, [image_id]).get(image_id, [])
        known = scenes_by_caption()
        return next((known[text] for text in texts if text in known), None)


def learn_as_job(settings: Settings) -> Learn:
    """Updates as every other update runs: a job in a process of its own."""

    def learn(request: UpdateRequest, progress: Tell) -> UpdateOutcome:
        def tell(row: JobRecord) -> None:
            if "name" in row.progress:  # a job that has just begun is nowhere yet
                progress(Stage.from_json(row.progress))

        job = worker.submit(settings, "update", request.to_json())
        job = worker.follow(settings, job.id, tell)
        if not job.result.get("verdict"):
            raise AppError(job.error or f"Job {job.id} is {job.state}; see the Update tab.")
        return UpdateOutcome.from_json(job.result)

    return learn


def _chosen(purpose: str, count: int) -> list[Scene]:
    """Scenes in an order by hash: first all that are like the headline, then as many others as are wanted."""
    ordered = sorted(all_scenes(), key=lambda scene: stable_number(purpose, scene.identity))
    ordered.sort(key=lambda scene: any(getattr(scene, name) != getattr(HEADLINE, name) for name in THINGS))
    return ordered[:count]


@cache
def scenes_by_caption() -> dict[str, Scene]:
    """Returns what each English caption of a drawn picture shows."""
    return {
        normalise_caption(caption(scene, BASE_LANGUAGE, variant=variant)).text: scene
        for scene in all_scenes()
        for variant in range(VARIANTS)
    }
