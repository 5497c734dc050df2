"""Damaged uploads through the product: taken in, judged, and taught where their checks let them; few seeds."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from bad_chunks_worlds import PHOTO, TINY
from real_input_data import UploadRow, emoji_rows, emoji_splits, photo_rows, write_upload

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live, update_cycle
from app.learning.chunk_findings import MATCH
from app.learning.outcomes import say_nothing
from app.learning.yardstick import trusted_chunks
from ingest.errors import IngestError
from ingest.findings import Finding, Outcome, findings_in
from ingest.images import decode
from ingest.intake import IntakeOptions
from ingest.limits import Limits
from ingest.pair import Split
from model_updates.gate.report import Policy

Values = dict[str, Any]
Say = Callable[[str], None]
NEW_LANGUAGE = {TINY: "sw", PHOTO: "hi"}
DOMAIN = {TINY: "noto", PHOTO: "photo"}
PHOTOGRAPHS = 1_000
COPIES = 120
LAUNDERED = {TINY: ("hi", "te", "tr"), PHOTO: ("hi", "cs", "uk")}
DRIFTS, DRIFT_PAIRS = 20, 45
RETRIES, RETRIED_PAIRS = 10, 300


@dataclass(frozen=True)
class Product:
    """One home with trusted English pairs, copied for each upload.

    Attributes:
        data: folder of the evaluation data.
        work: where homes and results are kept.
        encoder: the base encoder.
        seed: of damages and updates.
        say: prints a line of progress.
    """

    data: Path
    work: Path
    encoder: str
    seed: int
    say: Say

    @property
    def domain(self) -> str:
        """Of the trusted pictures."""
        return DOMAIN[self.encoder]

    def rows(self, language: str) -> list[UploadRow]:
        """Returns the clean upload of a language."""
        if self.encoder == TINY:
            return emoji_rows(self.data, emoji_splits(self.data), language, ("noto",))
        return photo_rows(self.data, language, photos=PHOTOGRAPHS)

    def strangers(self, language: str = "") -> list[UploadRow]:
        """Returns an upload whose pictures the trusted chunk does not have: another style, or other photographs."""
        if self.encoder == TINY:
            return emoji_rows(self.data, emoji_splits(self.data), language or "en", ("line",))
        known = {row.picture for row in self.rows("en")}
        everything = photo_rows(self.data, language or NEW_LANGUAGE[self.encoder], photos=2 * PHOTOGRAPHS)
        return [row for row in everything if row.picture not in known]

    def settings(self, name: str) -> Settings:
        """Returns the settings of one of the homes."""
        return Settings(home=self.work / "homes" / name, device="cpu", gate=Policy())

    def template(self) -> Path:
        """Returns a home whose English pairs a person accepted as measuring material, made once."""
        settings = self.settings(f"{self.encoder}-template")
        done = settings.home.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(settings.home, ignore_errors=True)
            beginning.initialise(settings, model=self.encoder)
            with Workspace.open(settings) as workspace:
                chunk = self.add(workspace, self.rows("en"))
                workspace.catalog.set_standing(chunk, "accepted", by="benchmark", why="clean", measures=True)
            done.touch()
        return settings.home

    def home(self) -> Settings:
        """Copies the template for one upload."""
        settings = self.settings(f"{self.encoder}-trial")
        shutil.rmtree(settings.home, ignore_errors=True)
        shutil.copytree(self.template(), settings.home)
        return settings

    def add(self, workspace: Workspace, rows: Sequence[UploadRow]) -> str:
        """Takes an upload in and returns its chunk."""
        with tempfile.TemporaryDirectory(dir=self.work) as place:
            source = write_upload(Path(place) / "upload", rows)
            return adding.add_chunk(workspace, source, IntakeOptions(), by="benchmark").report.chunk_id

    def random(self) -> np.random.Generator:
        """A generator of this seed."""
        return np.random.default_rng(self.seed)


def run_product(data: Path, work: Path, encoder: str | None, seeds: int, say: Say) -> None:
    """Runs the uploads that are not finished yet."""
    for name in (encoder,) if encoder else (TINY, PHOTO):
        for seed in range(min(seeds, 3)):
            product = Product(data, work, name, seed, say)
            for order, (what, upload) in enumerate(UPLOADS.items()):
                path = work / "results" / f"product.{name}.{order}.{seed}.json"
                if path.exists():
                    continue
                values = {"product": what, "encoder": name, "seed": seed, "order": order} | upload(product)
                path.write_text(json.dumps(values, indent=1), encoding="utf-8")
                say(f"{name} seed {seed}, {what}: {values['standing']} {values.get('verdict', '')}")


def _judged(product: Product, rows: Sequence[UploadRow], *, teach: bool = True) -> Values:
    """Takes an upload in, and teaches it where its checks let it."""
    with Workspace.open(product.home()) as workspace:
        return _taken_in(product, workspace, rows, teach=teach)


def _taken_in(product: Product, workspace: Workspace, rows: Sequence[UploadRow], *, teach: bool) -> Values:
    try:
        chunk = product.add(workspace, rows)
    except IngestError as error:
        return {"standing": "refused", "held": [], "seen": str(error)[:200]}
    record = workspace.catalog.chunk(chunk)
    against = [f for f in findings_in(record.report) if f.outcome in (Outcome.HOLD, Outcome.REJECT)]
    values: Values = {"standing": record.standing, "held": [f.check for f in against], "chunk": chunk}
    values["seen"] = " ".join(f.sentence for f in against)[:300]
    if teach and record.standing == "new":
        values |= _taught(product, workspace, chunk)
    return values


def _taught(product: Product, workspace: Workspace, chunk: str, seed: int | None = None) -> Values:
    scratch = Path(tempfile.mkdtemp(dir=workspace.home.staging))
    request = UpdateRequest(chunk=chunk, seed=product.seed if seed is None else seed, by="benchmark")
    outcome = update_cycle.update(workspace, request, scratch=scratch, progress=say_nothing)
    return {"verdict": outcome.verdict, "seen": outcome.sentence[:300]}


# ------------------------------------------------------------------------------------------------- the uploads


def _clean(product: Product) -> Values:
    return _judged(product, product.rows(NEW_LANGUAGE[product.encoder]))


def _shuffled(share: float) -> Callable[[Product], Values]:
    def upload(product: Product) -> Values:
        rows = product.rows(NEW_LANGUAGE[product.encoder])
        chosen = product.random().permutation(len(rows))[: round(share * len(rows))]
        said = [row.caption for row in rows]
        for to, source in zip(chosen.tolist(), np.roll(chosen, 1).tolist(), strict=True):
            rows[to] = replace(rows[to], caption=said[source])
        return _judged(product, rows)

    return upload


def _slipped(product: Product) -> Values:
    rows = product.rows(NEW_LANGUAGE[product.encoder])
    said = [row.caption for row in rows]
    return _judged(product, [replace(row, caption=said[n - 1]) for n, row in enumerate(rows)])


def _one_caption(product: Product) -> Values:
    rows = product.rows(NEW_LANGUAGE[product.encoder])
    return _judged(product, [replace(row, caption=rows[0].caption) for row in rows])


def _stuffed(product: Product) -> Values:
    """A held-out part of near copies of three pictures: other sizes and qualities, no group stated.

    The pictures are new to the home: copies of pictures that it trains on would join those, and nothing be held out.
    """
    rows = [row for row in product.strangers() if row.split == "train"]
    with tempfile.TemporaryDirectory(dir=product.work) as place:
        copies = list(_copies(rows[:3], Path(place), COPIES, "test"))
        plain = [replace(row, group="") for row in rows[3:]]
        return _judged(product, [*plain, *copies], teach=False)


def _leaked(product: Product) -> Values:
    """Held-out pictures of the trusted chunk, encoded again as training pictures."""
    held = [row for row in product.rows("en") if row.split == "test"]
    known = {row.picture: row for row in product.rows(NEW_LANGUAGE[product.encoder]) if row.split == "test"}
    some = [known[row.picture] for row in held if row.picture in known][:COPIES]
    with tempfile.TemporaryDirectory(dir=product.work) as place, Workspace.open(product.home()) as workspace:
        values = _taken_in(product, workspace, list(_copies(some, Path(place), len(some), "")), teach=False)
        chunk = values.get("chunk")
        kept = [] if chunk is None else workspace.catalog.pairs(chunk=chunk)
        trained = sum(pair.split is Split.TRAIN for pair in kept)
        values["seen"] = f"{trained} of {len(some)} would be trained on. {values['seen']}"[:300]
        return values


def _junk(product: Product) -> Values:
    """Three uploads of junk captions in made-up languages: do they enter the yardstick?"""
    with Workspace.open(product.home()) as workspace:
        live = going_live.live_release(workspace)[1]
        before = trusted_chunks(workspace, live)
        standings = []
        for language in ("gsw", "lb", "ga"):
            rows = [replace(row, language=language) for row in product.rows("en")]
            said = [row.caption for row in rows]
            order = product.random().permutation(len(rows))
            junk = [
                replace(row, caption=said[int(at)][::-1])
                for row, at in zip(rows, order.tolist(), strict=True)
            ]
            standings.append(_taken_in(product, workspace, junk, teach=False)["standing"])
        entered = trusted_chunks(workspace, live) - before
    return {
        "standing": ", ".join(standings),
        "held": [],
        "seen": f"{len(entered)} of 3 entered the yardstick",
    }


def _wrong_captions_added(product: Product) -> Values:
    """English captions of other pictures, added to pictures that have trusted ones; nothing is taught."""
    rows = product.rows("en")
    said = [row.caption for row in rows]
    order = product.random().permutation(len(rows))
    wrong = [replace(row, caption=said[int(at)]) for row, at in zip(rows, order.tolist(), strict=True)]
    with Workspace.open(product.home()) as workspace:
        before = _english_pairs(workspace)
        values = _taken_in(product, workspace, wrong, teach=False)
        values["seen"] = f"yardstick {'as before' if _english_pairs(workspace) == before else 'changed'}"
        return values


def _english_pairs(workspace: Workspace) -> int:
    live = going_live.live_release(workspace)[1]
    chunks = trusted_chunks(workspace, live)
    return len(workspace.catalog.pairs(language="en", split=Split.TEST, chunks=chunks))


def _correct_after_damaged(product: Product) -> Values:
    """A shuffled chunk, then the correct one: it must measure as it would have alone."""
    rows = product.rows(NEW_LANGUAGE[product.encoder])
    alone = _judged(product, rows)
    with Workspace.open(product.home()) as workspace:
        said = [row.caption for row in rows]
        order = product.random().permutation(len(rows))
        damaged = [replace(row, caption=said[int(at)]) for row, at in zip(rows, order.tolist(), strict=True)]
        first = _taken_in(product, workspace, damaged, teach=False)
        values = _taken_in(product, workspace, rows, teach=True)
    seen = f"damaged one {first['standing']}; alone: {alone['seen'][:120]} after it: {values['seen'][:120]}"
    return values | {"seen": seen}


def _exchanged(rows: Sequence[UploadRow], share: float, random: np.random.Generator) -> list[UploadRow]:
    """Exchanges the captions of a share of the rows; the same pictures whatever the language, when rows are sorted."""
    chosen = random.permutation(len(rows))[: round(share * len(rows))].tolist()
    changed = list(rows)
    for to, source in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
        changed[to] = replace(rows[to], caption=rows[source].caption)
    return changed


def _garbled(product: Product) -> Values:
    """A third of the captions are in UTF-8 and were read as Latin-1."""
    rows = product.rows("hi")
    garbled = [
        replace(row, caption=row.caption.encode().decode("latin-1")) if n % 3 == 0 else row
        for n, row in enumerate(rows)
    ]
    with Workspace.open(product.home()) as workspace:
        values = _taken_in(product, workspace, garbled, teach=False)
        kept = {pair.text for pair in workspace.catalog.pairs(chunk=values["chunk"])}
        wrong = len(kept - {pair.caption for pair in rows})
        return values | {"seen": f"{wrong} of {len(kept)} captions stayed garbled. {values['seen']}"[:300]}


def _laundered(product: Product) -> Values:
    """New pictures with exchanged captions in one language, then in two others with the same exchange."""
    pictures = sorted({row.picture for row in product.strangers()})
    place = {picture: n for n, picture in enumerate(pictures)}
    standings, seen = [], []
    with Workspace.open(product.home()) as workspace:
        for language in LAUNDERED[product.encoder]:
            rows = [row for row in product.strangers(language) if row.picture in place]
            rows.sort(key=lambda row: place[row.picture])
            values = _taken_in(
                product, workspace, _exchanged(rows, 0.4, np.random.default_rng(product.seed)), teach=False
            )
            match = [f for f in _findings(workspace, values) if f.check == MATCH]
            standings.append(values["standing"])
            seen.append(f"{language} {match[0].outcome if match else 'moved'}")
    return {"standing": ", ".join(standings), "held": [], "seen": f"Whether captions fit: {', '.join(seen)}."}


def _findings(workspace: Workspace, values: Values) -> list[Finding]:
    return findings_in(workspace.catalog.chunk(values["chunk"]).report) if "chunk" in values else []


def _drifted(product: Product) -> Values:
    """Twenty small chunks of new pictures whose captions are all exchanged, one after another."""
    rows = product.strangers()[: DRIFTS * DRIFT_PAIRS]
    verdicts: Counter[str] = Counter()
    with Workspace.open(product.home()) as workspace:
        for n in range(DRIFTS):
            some = _exchanged(rows[n * DRIFT_PAIRS : (n + 1) * DRIFT_PAIRS], 1.0, product.random())
            values = _taken_in(product, workspace, some, teach=True)
            verdicts[str(values.get("verdict", values["standing"]))] += 1
    return {"standing": "each by itself", "held": [], "seen": _counted(verdicts)}


def _retried(product: Product) -> Values:
    """A chunk whose captions are all exchanged, which a person accepted, taught again and again with other seeds."""
    rows = product.rows(NEW_LANGUAGE[product.encoder])[:RETRIED_PAIRS]
    verdicts: Counter[str] = Counter()
    with Workspace.open(product.home()) as workspace:
        values = _taken_in(product, workspace, _exchanged(rows, 1.0, product.random()), teach=False)
        workspace.catalog.set_standing(values["chunk"], "accepted", by="benchmark", why="not looked at")
        for seed in range(RETRIES):
            verdicts[_taught(product, workspace, values["chunk"], seed)["verdict"]] += 1
    return values | {"seen": f"Held, then accepted unseen: {_counted(verdicts)}"}


def _counted(verdicts: Counter[str]) -> str:
    return f"{', '.join(f'{count} {verdict}' for verdict, count in sorted(verdicts.items()))}."


def _copies(rows: Sequence[UploadRow], place: Path, count: int, split: str) -> Iterator[UploadRow]:
    for number in range(count):
        row = rows[number % len(rows)]
        image = decode(row.picture.read_bytes(), Limits()).image
        scale = 0.8 + 0.02 * (number // max(1, len(rows)) % 10)
        packed = io.BytesIO()
        size = (max(16, round(image.width * scale)), max(16, round(image.height * scale)))
        image.resize(size).save(packed, "JPEG", quality=70 + number % 25)
        file = place / f"copy-{number}.jpg"
        file.write_bytes(packed.getvalue())
        yield replace(row, picture=file, split=split, group="")


UPLOADS: dict[str, Callable[[Product], Values]] = {
    "clean": _clean,
    "shuffled 5 %": _shuffled(0.05),
    "shuffled 15 %": _shuffled(0.15),
    "shuffled 30 %": _shuffled(0.3),
    "shuffled 100 %": _shuffled(1.0),
    "rows moved by 1": _slipped,
    "one caption for all": _one_caption,
    "held-out near copies": _stuffed,
    "held-out pictures encoded again as training": _leaked,
    "junk in three languages": _junk,
    "wrong captions added to a slice": _wrong_captions_added,
    "a correct chunk after a damaged one": _correct_after_damaged,
    "a third garbled": _garbled,
    "40 % exchanged alike in three languages": _laundered,
    "20 small chunks, all exchanged": _drifted,
    "a useless chunk, 10 seeds": _retried,
}
