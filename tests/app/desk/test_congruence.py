"""One test, two doors: whatever is asked of a home in this process and of a server that has the same home, is the same.

The cases are held against the protocol: an operation without one fails. Both doors begin with equal homes and are asked
the same things in the same order, so that they stay equal; jobs wait in both, as if they ran elsewhere.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.client import connect
from app.desk.desk import Desk
from app.desk.hits import SearchRequest
from app.desk.jobs import StartUpdate
from app.desk.operation import SentFile, document_of, operations
from app.desk.opinions import Opinion
from app.desk.pictures import NewItem, PictureSide
from app.desk.troubles import OWN_ERRORS, trouble_of
from app.home.settings import Settings
from app.local.at_home import AtHome
from ingest.intake import IntakeOptions
from tests.app.held_upload import held_upload
from tests.app.server.served import add_held_out, make_home, served
from tests.ingest.material import folder_of, picture

# What is measured, and what differs between two homes by nature.
_UNLIKE = {
    "seconds",
    "total_seconds",
    "encode",
    "index",
    "rerank",
    "seconds_a",
    "seconds_b",
    "used_bytes",
    "free_bytes",
    "pid",
    "where",
    "path",
}
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?")


@dataclass
class Doors:
    """The same home twice: opened here, and behind a server."""

    at_home: Desk
    remote: Desk
    folder: Path


def _told(desk: Desk, ask: Callable[[Desk], Any]) -> Any:
    try:
        answer = ask(desk)
    except OWN_ERRORS as error:
        trouble = trouble_of(error)
        return {"refused": trouble.sentence, "code": trouble.code, "exit": trouble.exit_code}
    return _scrubbed([_plain(one) for one in answer] if isinstance(answer, list) else _plain(answer))


def _plain(answer: Any) -> Any:
    if isinstance(answer, SentFile):
        return {"name": answer.name, "media": answer.media, "data": answer.data}
    return answer if isinstance(answer, (bytes, str)) else document_of(answer)


def _scrubbed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "…" if name in _UNLIKE else _scrubbed(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_scrubbed(one) for one in value]
    if isinstance(value, float):
        return round(value, 9)  # the last bits of a sum depend on who else computes
    return _TIME.sub("…", value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folders = [tmp_path_factory.mktemp(name) for name in ("here", "there")]
    here = _home(folders[0])
    settings = [here, here.model_copy(update={"home": folders[1] / "home"})]
    shutil.copytree(here.home, settings[1].home)
    with (
        served(settings[1], with_jobs=False) as running,
        connect(running.url) as remote,
        AtHome(settings[0], by="local") as at_home,
    ):
        yield Doors(at_home, remote, folders[0])


def _home(folder: Path) -> Settings:
    settings = make_home(folder)
    with AtHome(settings, by="local") as desk:
        add_held_out(desk.workspace, folder)
        desk.add_chunk(held_upload(folder / "held.zip", seed=7), IntakeOptions(), lambda _: None)
    return settings


def _first(desk: Desk) -> str:
    return desk.search(SearchRequest(text="a red boat", k=1)).hits[0].id


def _last_chunk(desk: Desk) -> str:
    return desk.chunks()[0].id


def _picture() -> str:
    data = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 30, 30)).save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


def _waiting(desk: Desk) -> list[int]:
    return [row.pair.id for row in desk.held().rows if row.pair]


def _proposed(desk: Desk) -> list[str]:
    return [one.id for one in desk.proposal().pairs][:1]


def _queued(desk: Desk, *names: str, folder: str = "photos") -> str:
    """Has a table taken in whose pictures lie in another folder; returns what is queued."""
    with tempfile.TemporaryDirectory() as scratch:
        pictures = {f"photos/{name}": picture(n) for n, name in enumerate(("a.png", "deep/b.png"))}
        root = folder_of(Path(scratch), pictures)
        table = root / "captions.csv"
        table.write_text("\n".join(["image,caption", *(f"{name},a boat" for name in names)]))
        try:
            job = desk.start_chunk(table, IntakeOptions(pictures=root / folder))
        except OWN_ERRORS as error:
            return str(error).replace(scratch, "")
        return f"{job.kind} {job.arguments['options']} {Path(job.arguments['source']).suffixes}"


BOAT = SearchRequest(text="a red boat", k=3, captions=2, explain=True)
CASES: dict[str, list[Callable[[Desk], Any]]] = {
    "search": [
        lambda desk: desk.search(BOAT),
        lambda desk: desk.search(
            SearchRequest(text="ein rotes Boot", release="r2", mode="hybrid", dedup=True)
        ),
        lambda desk: desk.search(SearchRequest(items=[_first(desk)], since="2020-01-01")),
        lambda desk: desk.search(SearchRequest(text=" ")),
        lambda desk: desk.search(SearchRequest(k=4)),
        lambda desk: desk.search(
            SearchRequest(sort="taken", dedup=True, cursor=desk.search(SearchRequest(k=2)).next)
        ),
        lambda desk: desk.search(SearchRequest(text="boat", domains=["nowhere"])),
        lambda desk: desk.search(SearchRequest(text="boat", release="r77")),
    ],
    "searches": [
        lambda desk: desk.searches([{"text": "boat", "k": 2}, {"txet": "x"}, {"text": "b", "release": "r7"}])
    ],
    "choices": [
        lambda desk: desk.choices(),
        lambda desk: desk.choices("r2"),
        lambda desk: desk.choices("r7"),
    ],
    "facets": [
        lambda desk: desk.facets(SearchRequest()),
        lambda desk: desk.facets(SearchRequest(where="width > 10 AND NOT domain = nothing")),
        lambda desk: desk.facets(SearchRequest(where="width >")),
    ],
    "table": [
        lambda desk: desk.table("vectors", "jsonl", paths=True),
        lambda desk: desk.table("captions", "csv"),
        lambda desk: desk.table("measurements", "jsonl", "r2"),
        lambda desk: desk.table("vectors", "csv"),
        lambda desk: desk.table("captions", "csv", "r2"),
    ],
    "results_table": [lambda desk: desk.results_table(BOAT)],
    "results_archive": [lambda desk: len(desk.results_archive(BOAT)).to_bytes(4, "big")],
    "compare": [
        lambda desk: desk.compare("a red boat", "r1", "r2", "auto", 4),
        lambda desk: desk.compare("a red boat", "r1", "r9"),
    ],
    "comparisons": [lambda desk: desk.comparisons("r1", "r2", ["a red boat", "x" * 600, "a hut"], k=3)],
    "changed": [lambda desk: desk.changed("r1", "r2", most=3)],
    "embed": [
        lambda desk: desk.embed(["a boat", ""], [_picture(), "no picture"]),
        lambda desk: desk.embed(),
    ],
    "captions": [lambda desk: desk.captions("boat", 5)],
    "picture": [lambda desk: desk.picture(_first(desk)), lambda desk: desk.picture("0" * 64)],
    "original": [lambda desk: desk.original(_first(desk)), lambda desk: desk.original("0" * 64)],
    "thumbnail": [
        lambda desk: desk.thumbnail(_first(desk)),
        lambda desk: desk.thumbnail(_first(desk), PictureSide.LARGE),
    ],
    "item": [lambda desk: desk.item(_first(desk)[:20]), lambda desk: desk.item("abcdef")],
    "item_thumbnail": [lambda desk: desk.item_thumbnail(_first(desk)[:20])],
    "copies": [lambda desk: desk.copies(5)],
    "chunks": [lambda desk: desk.chunks()],
    "chunk": [lambda desk: desk.chunk(_last_chunk(desk)), lambda desk: desk.chunk("ffffff")],
    "chunk_report": [lambda desk: desk.chunk_report(_last_chunk(desk))],
    "held": [lambda desk: desk.held()],
    "put_aside": [lambda desk: desk.put_aside(_last_chunk(desk))],
    "aside_thumbnail": [
        lambda desk: desk.aside_thumbnail(_waiting(desk)[0]),
        lambda desk: desk.aside_thumbnail(999),
    ],
    "accept": [lambda desk: desk.accept(_last_chunk(desk), "they are right", measure=True)],
    "decide": [
        lambda desk: desk.decide(_last_chunk(desk), leave_out=_waiting(desk)[:1], why="no"),
        lambda desk: desk.decide(_last_chunk(desk)),
    ],
    "require_update": [],
    "forecast": [
        lambda desk: desk.forecast(StartUpdate(chunk=_last_chunk(desk), strategy="language-tables"))
    ],
    "update": [
        lambda desk: desk.update(StartUpdate(chunk="ffffff")),
        lambda desk: desk.update(StartUpdate(chunk=_last_chunk(desk), options={"epochs": 1})),
        lambda desk: desk.update(
            StartUpdate(chunk=_last_chunk(desk), strategy="finetune", options={"epochs": 1})
        ),
    ],
    "jobs": [lambda desk: desk.jobs()],
    "job": [lambda desk: desk.job(desk.jobs()[0].id), lambda desk: desk.job("j999")],
    "job_verdict": [lambda desk: desk.job_verdict(desk.jobs()[0].id)],
    "job_log": [lambda desk: desk.job_log(desk.jobs()[0].id)],
    "cancel": [lambda desk: desk.cancel(desk.jobs()[0].id), lambda desk: desk.cancel("j999")],
    "follow": [lambda desk: desk.follow(desk.jobs()[0].id, lambda _: None)],
    "resume": [lambda desk: desk.resume("j999")],
    "leave": [],
    "releases": [lambda desk: desk.releases()],
    "release": [lambda desk: desk.release("r2"), lambda desk: desk.release("r99")],
    "lineage": [lambda desk: desk.lineage()],
    "difference": [lambda desk: desk.difference("r1", "r2")],
    "promote": [lambda desk: desk.promote("r2", "because"), lambda desk: desk.promote("r99")],
    "roll_back": [lambda desk: desk.roll_back(), lambda desk: desk.roll_back("r99")],
    "reject": [lambda desk: desk.reject("r3", "not good"), lambda desk: desk.reject("r3")],
    "keep": [lambda desk: desk.keep("r3", "later")],
    "pin": [lambda desk: desk.pin("good"), lambda desk: desk.pin()],
    "unpin": [lambda desk: desk.unpin(), lambda desk: desk.unpin()],
    "repair_plan": [lambda desk: desk.repair_plan()],
    "repair": [lambda desk: desk.repair().kind],
    "release_words": [lambda desk: desk.release_words()],
    # A server keeps what people asked lately, too; with all of them kept there is no difference.
    "prune_plan": [lambda desk: desk.prune_plan(100)],
    "prune": [lambda desk: desk.prune(["r3"], 100), lambda desk: desk.prune(["r99"])],
    # Only a server counts in which languages people ask.
    "quality": [lambda desk: desk.quality().table, lambda desk: desk.quality(view="nowhere")],
    "moves": [lambda desk: desk.moves("en", "scenes", "r1", "r2")],
    "drift": [lambda desk: desk.drift("r1", "r2", 20)],
    "evaluate": [lambda desk: desk.evaluate(), lambda desk: desk.evaluate("r2")],
    "shadow": [lambda desk: desk.shadow("r2")],
    "start_shadow": [lambda desk: desk.start_shadow("r2", 0.5), lambda desk: desk.start_shadow("r1")],
    "in_shadow": [lambda desk: desk.in_shadow()],
    "stop_shadow": [lambda desk: desk.stop_shadow("r2", "seen"), lambda desk: desk.stop_shadow("r3")],
    "give_feedback": [
        lambda desk: desk.give_feedback(
            Opinion(query="a red boat", language="en", release="r1", image=_first(desk), verdict="up")
        ),
        lambda desk: desk.give_feedback(Opinion(query="a boat", a="r1", b="r2", choice="b")),
    ],
    "feedback": [lambda desk: desk.feedback()],
    "votes": [lambda desk: desk.votes("r1", "r2")],
    "proposal": [lambda desk: desk.proposal()],
    "proposal_file": [lambda desk: len(desk.proposal_file(_proposed(desk))).to_bytes(4, "big")],
    "take_proposal": [lambda desk: desk.take_proposal(["no such pair"])],
    "pin_feedback": [lambda desk: desk.pin_feedback(1), lambda desk: desk.pin_feedback(99)],
    "canaries": [lambda desk: desk.canaries()],
    "remove_canary": [lambda desk: desk.remove_canary("a red boat"), lambda desk: desk.remove_canary("x")],
    "status": [lambda desk: desk.status(), lambda desk: desk.status(True)],
    "index": [lambda desk: desk.index()],
    "verify": [lambda desk: desk.verify()],
    "log": [lambda desk: len(desk.log(1)).to_bytes(1, "big")],
    "settings": [lambda desk: [one for one in desk.settings() if one.name not in {"home", "port"}]],
    "take_out": [
        lambda desk: desk.take_out([_first(desk), "abcdef"], "she asked for it"),
    ],
    "taken_out": [lambda desk: desk.taken_out()],
    "put_back": [lambda desk: desk.put_back([desk.taken_out()[0].id, "abcdef"])],
    "add_items": [
        lambda desk: desk.add_items(
            [NewItem(image=_picture(), caption="a red square", language="en"), NewItem(image="eA==")],
            name="two",
        )
    ],
    "withdraw": [
        lambda desk: desk.withdraw(_last_chunk(desk), "wrong"),
        lambda desk: desk.withdraw("ffffff", "x"),
    ],
    "name_domain": [
        lambda desk: desk.name_domain("nowhere", "shop"),
        lambda desk: desk.name_domain(_last_chunk(desk), "a/b"),
    ],
    "remove": [lambda desk: desk.remove("ffffff", "wrong")],
    # These wait for a job on a server; tests/app/client/test_client.py has them.
    "add_chunk": [],
    "start_chunk": [
        lambda desk: _queued(desk, "a.png", "deep/b.png"),
        lambda desk: _queued(desk, "a.png", "b.png", "c.png", "d.png"),
        lambda desk: _queued(desk, "a.png", folder="nowhere"),
    ],
    "start_import": [],
    "start_examination": [],
    "export": [],
    "import_release": [],
    "examine": [],
}


def test_every_operation_has_a_case() -> None:
    public = {name for name in vars(Desk) if not name.startswith("_")} - {"where"}
    assert set(CASES) == public
    assert set(operations(Desk)) <= set(CASES)


@pytest.mark.parametrize("name", [name for name, asked in CASES.items() if asked])
def test_both_doors_answer_alike(doors: Doors, name: str) -> None:
    for ask in CASES[name]:
        here, there = (_told(desk, ask) for desk in (doors.at_home, doors.remote))
        assert there == here


def test_a_scrubbed_record_still_tells_two_answers_apart() -> None:
    assert _scrubbed({"a": [1, "x"]}) != _scrubbed({"a": [1, "y"]})
    assert _scrubbed({"since": "2026-11-25T10:00:00+00:00"}) == _scrubbed(
        {"since": "2026-11-26T11:00:00+00:00"}
    )
