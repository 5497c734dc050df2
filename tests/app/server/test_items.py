"""Claims about single pictures over REST: looked at, added, taken out of everything at once, and put back."""

from __future__ import annotations

import base64
import io
import time
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from app.home.workspace import Workspace
from ingest.findings import Example, Finding, Outcome
from ingest.samples.scene_painting import draw
from ingest.samples.scenes import all_scenes
from tests.app.gate_reports import gate_report
from tests.app.server.served import PICTURES, make_home, served
from tests.app.server.test_work import ended, hits, hits_after_a_moment

PROXY = {"proxy_user_header": "X-User", "proxy_admins": ["ada"], "proxy_contributors": ["cora"]}


def ids(client: httpx.Client) -> list[str]:
    return [hit["id"] for hit in client.post("/v1/search", json={"text": "boat", "k": 100}).json()["hits"]]


def sent(number: int) -> str:
    drawn = io.BytesIO()
    draw(list(all_scenes())[300 + number], "flat", seed=number).save(drawn, "PNG")
    return base64.b64encode(drawn.getvalue()).decode()


def test_what_is_known_of_a_picture(client: httpx.Client) -> None:
    (first, *_) = ids(client)
    known = client.get(f"/v1/items/{first[:12]}").json()
    assert (known["id"], known["in_gallery"], known["withheld"]) == (first, True, None)
    assert {one["language"] for one in known["captions"]} == {"en", "de"}
    assert known["width"] > 0
    assert client.get(known["thumb_url"]).content == client.get(f"/v1/items/{first}/thumb").content
    for name, status in (("0" * 64, 404), ("nothing", 400), ("abc", 400), ("a" * 99, 422)):
        assert client.get(f"/v1/items/{name}").status_code == status, name


def test_a_picture_is_taken_out_of_every_answer_at_once_and_put_back(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        before = ids(client)
        gone, other, *_ = before
        captions = client.get(f"/v1/items/{gone}").json()["captions"]
        caption = captions[0]["text"]
        # Has the server read the captions that are searched.
        looked = {"text": caption, "k": 1, "captions": 100}
        near = client.post("/v1/search", json=looked).json()["captions"]
        assert gone in {image for one in near for image in one["images"]}
        asked = {"ids": [gone[:16], "f" * 64, gone], "why": "she asked for it"}
        done = client.post("/v1/items/delete", json=asked).json()
        assert [(one["status"], one["id"]) for one in done["results"]] == [
            (200, gone),
            (404, ""),
            (200, gone),
        ]
        # Before any job has ended, in every release, whichever way it is looked for.
        assert gone not in ids(client)
        assert hits(client) == PICTURES - 1
        old = client.post("/v1/search", json={"text": "boat", "k": 100, "release": "r2"}).json()["hits"]
        assert gone not in {hit["id"] for hit in old}
        assert client.post("/v1/search", json={"items": [gone]}).status_code == 400
        found = client.post("/v1/search", json={"text": caption, "mode": "captions", "k": 100}).json()["hits"]
        assert gone not in {hit["id"] for hit in found}
        near = client.post("/v1/search", json=looked).json()["captions"]
        assert gone not in {image for one in near for image in one["images"]}
        (listed,) = client.get("/v1/withheld").json()["withheld"]
        assert (listed["id"], listed["by"], listed["why"]) == (gone, "local", "she asked for it")
        assert ended(client, done["job"])["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES - 1) == PICTURES - 1
        assert gone not in running.serving.snapshot().generation.ids

        back = client.post("/v1/items/restore", json={"ids": [gone, other]}).json()
        assert [(one["status"], one["id"]) for one in back["results"]] == [(200, gone), (404, "")]
        assert ended(client, back["job"])["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES) == PICTURES
        assert ids(client) == before
        assert client.get(f"/v1/items/{gone}").json()["captions"] == captions


def test_pictures_are_added_one_by_one_with_a_status_each(tmp_path: Path) -> None:
    grey = io.BytesIO()
    Image.new("L", (64, 64), 128).save(grey, "PNG")
    items: list[dict[str, Any]] = [
        {"image": sent(1), "caption": "a blue hut by the lake", "language": "en"},
        {"image": "no picture"},
        {"image": base64.b64encode(grey.getvalue()).decode(), "caption": "grey", "language": "en"},
        {"image": sent(2), "captions": {"en": ["a hut", "a small hut"], "de": ["eine Hütte"]}},
        {"image": sent(3), "caption": "a hut", "language": "not a language at all"},
        {"image": sent(4)},
    ]
    with served(make_home(tmp_path)) as running, running.client() as client:
        done = client.post("/v1/items", json={"items": items, "name": "huts", "domain": "flat"}).json()
        assert [one["status"] for one in done["results"]] == [202, 400, 422, 202, 422, 202]
        assert all(one["error"] for one in done["results"] if one["status"] != 202)
        job = ended(client, done["job"])
        report = job["result"]["report"]
        assert (report["name"], report["new_images"], report["new_pairs"]) == ("huts", 3, 4)
        assert hits_after_a_moment(client, PICTURES + 3) == PICTURES + 3
        known = client.get(f"/v1/items/{done['results'][3]['id']}").json()
        assert {(one["language"], one["text"]) for one in known["captions"]} == {
            *(("en", "a hut"), ("en", "a small hut"), ("de", "eine Hütte"))
        }
        assert (known["chunk"], known["domain"]) == (report["chunk_id"], "flat")

        # What was taken out stays out when it comes again, and the report says so.
        client.post("/v1/items/delete", json={"ids": [known["id"]], "why": "x"})
        refused = client.post("/v1/items", json={"items": [items[3]]}).json()
        assert (refused["results"][0]["status"], refused["job"]) == (422, None)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for number in (2, 6):
                archive.writestr(f"{number}.png", base64.b64decode(sent(number)))
                archive.writestr(f"{number}.txt", f"another hut {number}")
        files = {"file": ("again.zip", packed.getvalue())}
        again = client.post("/v1/chunks", files=files, data={"language": "en"}).json()
        notes = ended(client, again["job"])["result"]["report"]["notes"]
        assert any("1 picture that a person took out stays out" in note for note in notes)
        assert hits_after_a_moment(client, PICTURES + 3) == PICTURES + 3
        nothing = client.post("/v1/items", json={"items": [items[1]]}).json()
        assert (nothing["results"][0]["status"], nothing["job"]) == (400, None)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/items", {"items": []}),
        ("/v1/items", {"items": [{"image": "x"}] * 65}),
        ("/v1/items", {"items": [{"image": "x", "captoin": "a hut"}]}),
        ("/v1/items", {"items": [{"image": "x"}], "gallery": 0.0}),
        ("/v1/search", {"text": "boat", "dedup": 1}),
        ("/v1/items/delete", {"ids": [], "why": "x"}),
        ("/v1/items/delete", {"ids": ["0" * 64], "why": ""}),
        ("/v1/items/restore", {"ids": ["0" * 64], "why": "x"}),
    ],
)
def test_what_cannot_be_read_is_refused(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    assert client.post(path, json=body).status_code == 422


def test_what_is_no_id_is_refused_by_itself(client: httpx.Client) -> None:
    answer = client.post("/v1/items/delete", json={"ids": ["../etc"], "why": "x"}).json()
    assert [(one["status"], one["code"], one["changed"]) for one in answer["results"]] == [
        (400, "usage_problem", False)
    ]
    assert answer["job"] is None


def test_what_another_process_took_out_is_hidden_in_a_moment_though_no_release_follows(
    tmp_path: Path,
) -> None:
    settings = make_home(tmp_path).model_copy(update=PROXY)
    with served(settings) as running, running.client() as client:
        gone = ids_as(client, "ada")[0]
        with Workspace.open(settings) as elsewhere:
            elsewhere.catalog.withheld.take_out([gone], by="ann", why="x")
        deadline = time.monotonic() + 20
        while gone in ids_as(client, "sam") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert gone not in ids_as(client, "sam")
        assert client.get(f"/v1/images/{gone}/thumbnail", headers={"X-User": "sam"}).status_code == 404


def test_roles_decide_who_adds_takes_out_and_still_sees(tmp_path: Path) -> None:
    settings = make_home(tmp_path).model_copy(update=PROXY)
    with served(settings) as running, running.client() as client:
        gone = ids_as(client, "ada")[0]
        ada, cora, sam = ({"X-User": name} for name in ("ada", "cora", "sam"))
        taking = {"ids": [gone], "why": "x"}
        for who in (cora, sam):
            assert client.post("/v1/items/delete", json=taking, headers=who).status_code == 403
            assert client.get("/v1/withheld", headers=who).status_code == 403
        assert client.post("/v1/items/delete", json=taking, headers=ada).json()["results"][0]["status"] == 200
        for path in (f"/v1/items/{gone}", f"/v1/images/{gone}", f"/v1/images/{gone}/thumbnail"):
            assert client.get(path, headers=sam).status_code == 404, path
            assert client.get(path, headers=ada).status_code == 200, path
        spelt = gone.upper(), " ".join(gone[n : n + 2] for n in range(0, 64, 2))
        for path in (f"/v1/images/{one}" for one in spelt):  # the store would know them
            assert client.get(path, headers=sam).status_code == 404, path
        # Nor in what was kept of it: findings of its chunk, captions that an update lost.
        example = Example(image_id=gone, language="en", text="she at home", why="a slip")
        finding = Finding("row_shift", Outcome.HOLD, "A slip.", {}, (example,))
        catalog = running.serving.workspace.catalog
        chunk = catalog.set_findings(catalog.chunks()[0].id, [finding]).id
        kept = {"gate": gate_report("reject", pictures=[gone, gone, gone]).to_json()}
        job_id = catalog.add_job("update", {"chunk": chunk}).id
        catalog.update_job(job_id, state="rejected", result=kept)
        for path in (f"/v1/chunks/{chunk}", f"/v1/jobs/{job_id}", "/v1/jobs", f"/v1/jobs/{job_id}/gate"):
            assert gone in client.get(path, headers=ada).text, path
            assert gone not in client.get(path, headers=sam).text, path
            assert "she at home" not in client.get(path, headers=sam).text, path
        one = {"items": [{"image": sent(5)}]}
        assert client.post("/v1/items", json=one, headers=sam).status_code == 403
        job = client.post("/v1/items", json=one, headers=cora).json()["job"]
        assert job["arguments"]["held"] is True
        assert client.post("/v1/embed", json={"texts": ["boat"]}, headers=sam).status_code == 200


def ids_as(client: httpx.Client, name: str) -> list[str]:
    answer = client.post("/v1/search", json={"text": "boat", "k": 100}, headers={"X-User": name})
    return [hit["id"] for hit in answer.json()["hits"]]
