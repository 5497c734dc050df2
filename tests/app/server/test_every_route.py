"""Who may do what, asked of the running server: every route and every function of a page, by everybody, in every way.

What an operation of the desk declares is what its route has to ask for; the few other routes stand in `OTHERS`. A new
route is tried because it is there, and one that stands in neither fails by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import gradio as gr
import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Mount

from app.desk.desk import Desk
from app.desk.operation import operations
from app.server.api_context import role_of
from app.server.guard import ACCOUNT_KEY
from app.server.security import Account, Passwords, Role, password_line
from tests.app.server.served import Served, make_home, served

EVERYBODY = "everybody"
SWITCHED_OFF = "nobody"
ROLES = (EVERYBODY, "searcher", "contributor", "admin", SWITCHED_OFF)
"""Each may do what those before it may; nobody may what is switched off."""
PEOPLE: dict[Role, tuple[str, str]] = {
    "searcher": ("sam", "seven quiet tortoises"),
    "contributor": ("cora", "nine patient herons"),
    "admin": ("ada", "correct horse battery"),
}
REFUSED = {401, 403, 429}
pytestmark = [
    # Gradio asks pandas for two things that pandas 3 has retired.
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated"),
]

OTHERS: list[tuple[str, str]] = [
    (EVERYBODY, r"GET /(health|healthz|ready|readyz)"),
    (SWITCHED_OFF, r"\w+ (/admin)?/(login|logout|monitoring)(/.*)?"),
    ("admin", r"(GET|POST) /admin/gradio_api/(upload|upload_progress)"),
    (SWITCHED_OFF, r"(GET|HEAD) /admin/gradio_api/file=r1"),  # of what nobody has uploaded
    ("admin", r"(GET|POST) /admin/gradio_api/(queue/(join|data)|run/predict|heartbeat/[^/]+|info)"),
    ("searcher", r"(GET|POST) /gradio_api/(queue/(join|data)|run/predict|heartbeat/[^/]+|info)"),
    (SWITCHED_OFF, r"\w+ (/admin)?/gradio_api/.*"),
    ("admin", r"(GET|HEAD) /admin(/.*)?"),
    ("searcher", r"(GET|HEAD) /(config/?|theme\.css|favicon\.ico|robots\.txt|manifest\.json|openapi\.json)?"),
    ("searcher", r"GET /(assets|static|svelte|pwa_icon|static-offline-docs)(/.*)?"),
    ("searcher", r"GET /(docs|docs/oauth2-redirect|redoc|metrics|version|v1|v1/|v1/openapi\.json)"),
    ("searcher", r"GET /(coming|indices-list|ping)"),
    ("searcher", r"POST /(pictures|knn-service|metadata|predict)"),
    # What the server does in a process of its own has no operation of the desk.
    ("contributor", r"POST /v1/chunks"),
    ("admin", r"POST /v1/(packages|doctor)"),
    ("admin", r"GET /v1/releases/r1/package"),
    ("searcher", r"GET /v1/(strategies|strategies/[^/]+|doctor|jobs/[^/]+/events)"),
    # Nothing is there, whoever asks.
    ("searcher", r"GET /v1/nothing"),
    ("admin", r"(POST|PUT|PATCH|DELETE) /v1/nothing"),
]


@dataclass(frozen=True)
class Asked:
    """A method and a path as a client sends it, and who may."""

    method: str
    path: str
    needs: str

    def may(self, role: str) -> bool:
        return ROLES.index(role) >= ROLES.index(self.needs)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("passwords") / "passwords"
    lines = [password_line(name, role, password) for role, (name, password) in PEOPLE.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)
    settings = make_home(tmp_path_factory.mktemp("home")).model_copy(update={"password_file": path})
    with served(settings, Passwords.load(path), with_pages=True, with_jobs=False) as running:
        yield running


def every_route(app: Any, before: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yields method, path and route of an application, of whatever is mounted in it and of routers within."""
    for route in app.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from every_route(inner, before + route.include_context.prefix)
        elif isinstance(route, Mount):
            if hasattr(route.app, "routes"):
                yield from every_route(route.app, before + route.path)
            else:
                yield "GET", f"{before}{route.path}/x", route
        else:
            methods = getattr(route, "methods", None)
            assert methods, f"{route!r} has no methods: say here who may open it"
            for method in sorted(methods):
                yield method, before + route.path, route


def needed(method: str, path: str) -> str:
    """Returns who may ask: as the operation declares, else as the list says."""
    for one in operations(Desk).values():
        if (one.verb, one.path) == (method, path):
            return "searcher" if one.role == "anyone" else one.role
    said = f"{method} {filled(path)}"
    for role, pattern in OTHERS:
        if re.fullmatch(pattern, said):
            return role
    raise AssertionError(f"{said} is new: declare who may ask it, in the desk's protocol or in OTHERS")


def filled(path: str) -> str:
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: "nothing" if found[1] == "rest" else "r1", path)


def all_asked(app: FastAPI) -> list[Asked]:
    found = {Asked(method, filled(path), needed(method, path)) for method, path, _ in every_route(app)}
    return sorted(found, key=lambda one: (one.path, one.method))


def test_nothing_is_listed_that_is_not_there(server: Served) -> None:
    said = [f"{method} {filled(path)}" for method, path, _ in every_route(server.app)]
    assert [pattern for _, pattern in OTHERS if not any(re.fullmatch(pattern, one) for one in said)] == []


def status(client: httpx.Client, one: Asked, **more: Any) -> int:
    """Asks for what no route takes, so that nothing happens where it is allowed; of a stream the beginning is read."""
    # What was not asked for is refused by name, but after the role.
    address = one.path if "gradio_api" in one.path else f"{one.path}?no-such-field=1"
    body: dict[str, Any] = {} if one.method in {"GET", "HEAD"} else {"json": {"no-such-field": 1}}
    with client.stream(one.method, address, **body, **more) as answer:
        is_guarded(answer.headers, one)
        return answer.status_code


def is_guarded(headers: httpx.Headers, one: Asked) -> None:
    """Every answer tells browsers not to do what nothing here needs, whoever asks and whatever comes of it."""
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    scripts = set(policy["script-src"].split())
    assert {name for name in scripts if not name.startswith("'sha256-")} == {"'self'"}, one
    assert (policy["default-src"], policy["frame-ancestors"]) == ("'none'", "'self'"), one
    assert headers["x-content-type-options"] == "nosniff", one
    assert headers["referrer-policy"] == "same-origin", one
    assert "server" not in headers, one


def test_every_route_is_for_those_it_is_for_and_for_nobody_else(server: Served) -> None:
    asked = all_asked(server.app)
    assert len(asked) > 200
    wrong: list[str] = []
    for role, who in PEOPLE.items():
        with server.client(auth=who) as client:
            for one in asked:
                got = status(client, one)
                if (got in REFUSED) is one.may(role):
                    wrong.append(f"{role}: {one.method} {one.path}: {got}")
    assert wrong == []


STRANGERS: dict[str, dict[str, str]] = {
    "no password": {},
    "a wrong password": {"Authorization": "Basic YWRhOndyb25nIHBhc3N3b3Jk"},
    "a name without a password": {"Authorization": "Basic YWRhOg=="},
    "a token": {"Authorization": "Bearer correct horse battery"},
    "the proxy's header, and no proxy": {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "admin"},
    "what processes tell one another": {"X-Perennial-Asked": '["http", ["127.0.0.1", 1], ["s", null]]'},
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_stranger_is_let_in_nowhere(server: Served, stranger: str) -> None:
    with server.client(headers=STRANGERS[stranger]) as client:
        wrong = [
            one for one in all_asked(server.app) if (status(client, one) in REFUSED) is one.may(EVERYBODY)
        ]
    assert wrong == []


def test_no_foreign_page_changes_anything(server: Served) -> None:
    with server.client(auth=PEOPLE["admin"]) as client:
        for one in all_asked(server.app):
            if one.method not in {"GET", "HEAD"}:
                for origin in ("https://evil.example", "null", f"{server.url}.evil.example"):
                    assert status(client, one, headers={"Origin": origin}) == 403, one


def test_every_operation_asks_for_its_role_by_itself_too() -> None:
    from app.server.routes import desk_router

    for route in desk_router().routes:
        declared = operations(Desk)[route.name].role  # type: ignore[attr-defined]
        role = role_of(route.dependant)  # type: ignore[attr-defined]
        assert role == ("searcher" if declared == "anyone" else declared), route


def pages(app: FastAPI) -> dict[str, gr.Blocks]:
    mounted = {one.path: one.app for one in app.routes if isinstance(one, Mount)}
    return {path: one.get_blocks() for path, one in mounted.items() if hasattr(one, "get_blocks")}


def test_every_function_of_a_page_is_for_those_it_is_for(server: Served) -> None:
    """By index in both ways, and by name in those that are switched off."""
    found = pages(server.app)
    assert sorted(found) == ["", "/admin"]
    wrong: list[str] = []
    for role, who in [(None, None), *PEOPLE.items()]:
        with server.client(auth=who) as client:
            for page, blocks in found.items():
                for number, function in blocks.fns.items():
                    body = {"fn_index": number, "data": [None] * len(function.inputs), "session_hash": "x"}
                    allowed = role == "admin" or (role is not None and page == "")
                    join = client.post(f"{page}/gradio_api/queue/join", json={**body, "data": []})
                    run = client.post(f"{page}/gradio_api/run/predict", json={**body, "data": []})
                    for answer in (join, run):
                        if (answer.status_code in REFUSED) is allowed:
                            wrong.append(f"{role}: {page} {function.api_name}: {answer.status_code}")
                    # What is switched off for an admin is so for everybody.
                    for way in ("call", "call/v2", "run", "api") if role == "admin" else ():
                        by_name = client.post(f"{page}/gradio_api/{way}/{function.api_name}", json=body)
                        if by_name.status_code not in REFUSED:
                            wrong.append(f"{role}: {page} {way}/{function.api_name}")
    assert wrong == []


PLAIN = r"lambda(_\d+)?|_pick"
"""Functions of the teaching page that ask for nobody: they change what the page shows and nothing else."""


def test_every_function_of_the_teaching_page_asks_for_the_role_by_itself(server: Served) -> None:
    """The routes above it are open here: a request that a contributor's account was noted for reaches each function."""
    scope = {ACCOUNT_KEY: Account("cora", "contributor")}
    inner: Any = SimpleNamespace(scope=scope, url=SimpleNamespace(scheme="http"))
    asking: Any = SimpleNamespace(request=inner, headers={}, username="cora")
    for function in pages(server.app)["/admin"].fns.values():
        if re.fullmatch(PLAIN, str(function.api_name)):
            continue
        values = ['["r1"]#1'] * len(function.inputs)
        act: Any = function.fn
        said = act(asking, *values)
        assert "this needs an admin" in str(said), function.api_name


def _events(client: httpx.Client, session: str) -> str:
    """Reads what waits in a session, until it says that it is over or a while has passed."""
    said = ""
    try:
        with client.stream(
            "GET", "/gradio_api/queue/data", params={"session_hash": session}, timeout=5
        ) as answer:
            for part in answer.iter_text():
                said += part
                if "close_stream" in said or "process_completed" in said:
                    break
    except (httpx.ReadTimeout, httpx.RemoteProtocolError):  # nothing waits there
        pass
    return said


def test_nobody_reads_what_waits_in_the_session_of_somebody_else(server: Served) -> None:
    search = next(one for one in pages(server.app)[""].fns.values() if one.api_name == "search")
    body = {"fn_index": search._id, "data": ["a red boat", "auto", None, 3, None], "session_hash": "abc"}
    with server.client(auth=PEOPLE["searcher"]) as sam, server.client(auth=PEOPLE["admin"]) as ada:
        assert sam.post("/gradio_api/queue/join", json=body).status_code == 200
        assert "thumb_url" not in _events(ada, "abc")
        assert "thumb_url" not in _events(ada, "sam:abc")
        assert "thumb_url" in _events(sam, "abc")
        # Said in another way, it is the same session.
        unsaid = httpx.Request("POST", f"{server.url}/x", json=body).content
        headers = {"Content-Type": "application/vnd.perennial+json"}
        assert ada.post("/gradio_api/queue/join", content=unsaid, headers=headers).status_code == 200
        assert "thumb_url" not in _events(sam, "abc")


def test_an_uploaded_file_is_for_the_page_that_took_it(server: Served) -> None:
    with server.client(auth=PEOPLE["admin"]) as ada:
        sent = ada.post("/admin/gradio_api/upload", files={"files": ("secret.txt", b"quiet")})
        (path,) = sent.json()
        assert ada.get(f"/admin/gradio_api/file={path}").text == "quiet"
        assert ada.get(f"/gradio_api/file={path}").status_code == 403
    with server.client(auth=PEOPLE["contributor"]) as cora:
        for page in ("", "/admin"):
            for route in (f"file={path}", f"file/{path}", f"/file={path}", f"FILE={path}"):
                assert cora.get(f"{page}/gradio_api/{route}").status_code == 403
