"""Pictures that are fetched: in order, within bounds, once; and no table reaches the network of this machine."""

from __future__ import annotations

import csv
import itertools
import socket
import time
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import trustme

from ingest import fetching
from ingest.errors import BadUpload, NoValidPair
from ingest.fetching import AT_ONCE, REDIRECTS, Fetcher, is_public
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.pair import image_id_of
from ingest.readers.container import Skipped
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture, zip_of
from tests.ingest.web import OPENED, Web, web_server


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server(pictures=12) as running:
        yield running


def _fetched(*addresses: str, limits: Limits = DEFAULT_LIMITS, **options: Any) -> list[bytes | str]:
    """What came of each address: its bytes, or the sentence that says why there are none."""
    options.setdefault("networks", OPENED)
    found = list(Fetcher(limits, **options).read(addresses))
    assert [address for address, _ in found] == list(addresses)
    return [data.sentence if isinstance(data, Skipped) else data for _, data in found]


def _refusal(address: str, **options: Any) -> str:
    (said,) = _fetched(address, **options)
    assert isinstance(said, str), said[:20]
    return said


def _table(file: Path, addresses: list[str]) -> Path:
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(("id", "image", "caption"))
        rows.writerows((f"own-{n}", address, f"picture {n}") for n, address in enumerate(addresses))
    return file


def test_pictures_come_in_the_order_of_their_lines_a_handful_at_a_time(web: Web) -> None:
    slow = [f"{web.url}/slow?0.{n}" for n in (4, 1)]
    quick = [f"{web.url}/{n}.png" for n in range(12)]
    found = _fetched(*slow, *quick)
    assert found == [picture(400), picture(100), *(picture(n) for n in range(12))]
    assert 1 < web.most_at_once <= AT_ONCE


def test_a_table_of_addresses_is_taken_in_with_what_it_says(place: Place, web: Web, tmp_path: Path) -> None:
    addresses = [f"{web.url}/{n}.png" for n in (3, 0)] + [f"{web.url}/gone.png", f"{web.url}/1.png"]
    report = place.ingest(_table(tmp_path / "web.csv", addresses), fetch=True, networks=OPENED)
    assert (report.new_images, report.new_pairs) == (3, 3)
    (failed,) = rows_of(report, "rejected")
    assert (failed.where, failed.code) == ("web.csv line 4", "not_fetched")
    assert failed.sentence == f"{web.url}/gone.png: The server answered: 404 Not Found."
    (source,) = place.catalog.sources.of([image_id_of(picture(3))])[image_id_of(picture(3))]
    assert (source.kind, source.place, source.name, source.key) == ("url", addresses[0], "", "own-0")
    assert [pair.text for pair in place.catalog.pairs()] == ["picture 0", "picture 1", "picture 3"]


def test_what_was_fetched_is_not_fetched_again(
    place: Place, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [f"{web.url}/{n}.png" for n in range(5)] + [f"{web.url}/later.png"]
    table = _table(tmp_path / "web.csv", addresses)
    first = place.ingest(table, fetch=True, networks=OPENED)
    web.asked.clear()
    web.pictures["/later.png"] = picture(77)

    again = place.ingest(table, fetch=True, networks=OPENED)

    assert web.paths == ["/later.png"]
    assert (again.unchanged, again.new_images) == (5, 1)
    web.asked.clear()
    assert place.ingest(table, fetch=True, networks=OPENED).chunk_id == again.chunk_id != first.chunk_id
    assert web.asked == []
    # A new caption is taken in with the picture as it is stored.
    table.write_text(f"image,caption\n{addresses[2]},another caption\n")
    told = place.ingest(table, fetch=True, networks=OPENED)
    assert (told.new_images, told.new_pairs, web.asked) == (0, 1, [])


def test_whoever_stops_it_keeps_what_came_and_goes_on_there(
    place: Place, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.named_pictures.FETCHED", 3)
    table = _table(tmp_path / "web.csv", [f"{web.url}/{n}.png" for n in range(9)])

    def stop(done: int, total: int | None) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.ingest(table, progress=stop, fetch=True, networks=OPENED)
    came = {image_id_of(picture(n)) for n in range(9)}
    assert len(place.catalog.images(came)) == 6
    web.asked.clear()
    report = place.ingest(table, fetch=True, networks=OPENED)
    assert (report.unchanged, report.new_images) == (6, 3)
    assert sorted(web.paths) == ["/6.png", "/7.png", "/8.png"]


def test_whoever_stops_asking_ends_what_is_under_way(web: Web) -> None:
    found = Fetcher(DEFAULT_LIMITS, OPENED).read([f"{web.url}/0.png", *[f"{web.url}/slow?30"] * 8])
    assert next(found)[1] == picture(0)
    before = time.monotonic()
    found.close()
    assert time.monotonic() - before < 5


def test_without_permission_nothing_is_asked_of_a_server_that_is_not_public(
    place: Place, web: Web, tmp_path: Path
) -> None:
    by_name = f"http://localhost:{web.port}/0.png"
    for address in (f"{web.url}/0.png", by_name, f"http://[::ffff:127.0.0.1]:{web.port}/0.png"):
        assert "public internet are asked" in _refusal(address, networks=())
    with pytest.raises(NoValidPair, match="public internet are asked"):
        place.ingest(_table(tmp_path / "web.csv", [by_name]), fetch=True)
    assert web.asked == []


@pytest.mark.parametrize("elsewhere", ["127.0.0.2", "localhost.localdomain", "10.0.0.1", "[::1]", "0.0.0.0"])
def test_a_redirect_is_checked_like_the_first_address(web: Web, elsewhere: str) -> None:
    port = "" if elsewhere == "localhost.localdomain" else f":{web.port}"
    said = _refusal(f"{web.url}/to?http://{elsewhere}{port}/0.png")
    assert "public internet are asked" in said or "connection failed" in said
    assert web.paths == [f"/to?http://{elsewhere}{port}/0.png"]
    assert _fetched(f"{web.url}/to?/0.png") == [picture(0)]
    for strange in (
        "file:///etc/passwd",
        "ftp://127.0.0.1/a.png",
        "http://a:b@127.0.0.1/",
        "http://[::1",
        "http://host:abc/",
        "http://xn--0/",
    ):
        assert "address" in _refusal(f"{web.url}/to?{strange}")


def test_what_is_refused_after_it_came_costs_as_much_as_what_is_kept(web: Web) -> None:
    limits = Limits(image_bytes=100_000)
    found = list(Fetcher(limits, OPENED, 1_000_000).read([f"{web.url}/endless"] * 12))
    refused = [data.code for _, data in found if isinstance(data, Skipped)]
    assert refused[0] == "image_too_large"
    assert refused[-1] == "upload_too_large"
    assert len(web.asked) < 12


def test_a_name_is_looked_up_once_and_the_address_that_was_checked_is_asked(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that means something else the second time leads nowhere else."""
    looked_up = []
    answers = itertools.chain(["127.0.0.1"], itertools.repeat("127.0.0.9"))
    plain = socket.getaddrinfo

    def changing(host: Any, *rest: Any, **more: Any) -> Any:
        if host not in (b"turning.test", "turning.test"):
            return plain(host, *rest, **more)
        looked_up.append(host)
        return plain(next(answers), *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    assert _fetched(f"http://turning.test:{web.port}/1.png") == [picture(1)]
    assert len(looked_up) == 1
    assert web.asked == [("/1.png", f"turning.test:{web.port}")]
    assert "is 127.0.0.9: only" in _refusal(f"http://turning.test:{web.port}/1.png")


def test_tls_is_checked_against_the_name_though_the_address_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    with web_server(pictures=1, certificate=tmp_path / "own.pem") as web:
        assert _fetched(f"https://localhost:{web.port}/0.png") == [picture(0)]
        assert "certificate" in _refusal(f"{web.url}/0.png"), "it is made out for the name alone"
        assert web.paths == ["/0.png"]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/large", "The file has 1048576.0 MB"),
        ("/endless", "The file has"),
        ("/half", "The connection failed"),
        ("/gone", "404 Not Found"),
        ("/round", "too often"),
        ("/to?", "302 Found"),
        (f"/{'a' * 2001}", "no address"),
    ],
)
def test_what_is_no_picture_says_why(web: Web, address: str, words: str) -> None:
    said = _refusal(f"{web.url}{address}", limits=Limits(image_bytes=100_000))
    assert words in said
    assert web.url in said or "…" in said
    assert len(web.asked) <= REDIRECTS + 1


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://name:word@127.0.0.1/a.png", "name and a password"),
        ("http://", "no address"),
        ("http://127.0.0.1:0/", "connection failed"),
        ("http://127.0.0.1:99999/", "no address"),
        ("http://[::1/", "no address"),
        ("http://xn--0/a.png", "no address"),
        ("http://no-such-name.invalid/", "connection failed"),
        (f"http://{'a' * 300}.test/", "connection failed"),
        ("http://127.0.0.1:1/", "connection failed"),
    ],
)
def test_an_address_that_cannot_be_asked_says_why(address: str, words: str) -> None:
    assert words in _refusal(address)


def test_other_ports_of_the_public_internet_are_not_asked() -> None:
    assert "1.1.1.1:8080 is 1.1.1.1: only ports 80 and 443" in _refusal("http://1.1.1.1:8080/a.png")


def test_an_answer_that_drips_is_given_up(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_SECONDS", 0.3)
    assert "No answer came in time" in _refusal(f"{web.url}/drip")
    assert "No answer came in time" in _refusal(f"{web.url}/slow?5")


def test_a_host_that_never_answers_in_time_is_not_asked_for_ever(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_SECONDS", 0.2)
    found = _fetched(*[f"{web.url}/slow?3"] * 40, f"{web.url}/0.png")
    assert [str(said) for said in found if "in time" not in str(said)] == []
    assert len(web.asked) <= fetching._SILENT + AT_ONCE


def test_proxies_of_the_environment_are_not_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert _fetched(f"{web.url}/2.png") == [picture(2)]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("1.1.1.1", True),
        ("2606:4700::1111", True),
        *((one, False) for one in ("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254")),
        *((one, False) for one in ("0.0.0.0", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1")),
        *((one, False) for one in ("240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fc00::1")),
        *((one, False) for one in ("fec0::1", "ff02::1", "2001:db8::1", "::ffff:1.1.1.1", "::1.1.1.1")),
        *((one, False) for one in ("64:ff9b::a00:1", "2002:a00:1::", "2001:0:a00:1::", "100::1")),
    ],
)
def test_which_addresses_are_public(address: str, expected: bool) -> None:
    assert is_public(ip_address(address)) is expected


def test_a_network_of_ones_own_is_opened_on_every_port(web: Web) -> None:
    assert _fetched(f"{web.url}/0.png", networks=[ip_network("127.0.0.0/8")]) == [picture(0)]
    assert "public internet are asked" in _refusal(f"{web.url}/0.png", networks=[ip_network("10.0.0.0/8")])


def test_without_fetch_an_address_costs_itself_a_line(place: Place, web: Web, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "both", {"0.png": picture(50)})
    report = place.ingest(_table(folder / "web.csv", [f"{web.url}/0.png", "0.png"]))
    (row,) = rows_of(report, "rejected")
    assert (row.code, report.new_images, web.asked) == ("image_outside", 1, [])
    assert "--fetch" in row.sentence


def test_a_folder_and_an_archive_may_name_addresses_beside_files(
    place: Place, web: Web, tmp_path: Path
) -> None:
    rows = f"image,caption\n{web.url}/1.png,fetched\nown.png,beside\n"
    folder = folder_of(tmp_path / "both", {"own.png": picture(51), "t.csv": rows})
    assert place.ingest(folder, fetch=True, networks=OPENED).new_images == 2
    again = place.ingest(folder, fetch=True, networks=OPENED)
    assert (again.unchanged, again.new_images, len(web.asked)) == (2, 0, 1)
    upload = zip_of(tmp_path / "u.zip", {"own.png": picture(52), "t.csv": rows.replace("1.png", "2.png")})
    report = place.ingest(upload, fetch=True, networks=OPENED, pictures_beside=False)
    assert (report.new_images, report.rejected) == (2, 0)


def test_an_upload_may_be_a_table_alone_within_the_bounds_of_uploads(
    place: Place, web: Web, tmp_path: Path
) -> None:
    table = _table(tmp_path / "web.csv", [f"{web.url}/{n}.png" for n in range(4)])
    with pytest.raises(BadUpload, match="A table alone has no pictures"):
        place.ingest(table, pictures_beside=False)
    sent: dict[str, Any] = {"fetch": True, "networks": OPENED, "pictures_beside": False}
    # Each is taken to cost at least 100 kB; those that are under way already still come.
    some = _table(tmp_path / "some.csv", [f"{web.url}/{n}.png" for n in range(12)])
    report = place.ingest(some, **sent, limits=Limits(unpacked_bytes=150_000))
    assert 2 <= report.new_images < 12
    assert {row.code for row in rows_of(report, "rejected")} == {"upload_too_large"}
    assert place.ingest(table, **sent).rejected == 0
