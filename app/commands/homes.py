"""Verbs about the whole installation: init, models, serve, work, mcp, account, demo."""

from __future__ import annotations

import getpass
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app import DISTRIBUTION
from app.commands.options import argument, option
from app.commands.terminal import HomeOption, JsonOption, connected, server_of, settings_for, show
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.home.commits import CommitRecord
    from app.home.settings import Settings

DEFAULT_MODEL = "perennial-photo"


def init(
    model: Annotated[
        str,
        typer.Option(
            help="An embedded encoder or an open_clip architecture (`models` lists them), or the folder of a "
            "sentence-transformers CLIP model."
        ),
    ] = DEFAULT_MODEL,
    pretrained: Annotated[
        str | None,
        typer.Option(help="For an architecture: a tag or a local .safetensors file.", show_default=False),
    ] = None,
    texts: Annotated[
        str | None,
        typer.Option(help="For a folder: that of the text model beside it.", show_default=False),
    ] = None,
    languages: Annotated[
        str,
        typer.Option(
            help="For a folder or an architecture: what its text tower knows, such as en,de,fr.",
            show_default=False,
        ),
    ] = "",
    release: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a model: the encoder of a release, from a file that `export` wrote.",
            show_default=False,
        ),
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Make a home with its first release.

    The release has the encoder that `--model` or `--release` names, and no picture yet.
    """
    settings = settings_for(home)
    from app.home.folder import home_option

    if release is None:
        commit, lacks = _from_model(settings, model, pretrained, texts, languages)
    else:
        from app.learning.transfer import begin_with

        commit, lacks = begin_with(settings, release), None
    named = home_option(settings.home)
    show(
        is_json,
        {"home": settings.home, **asdict(commit)},
        f"{settings.home} is ready; release {commit.release} is live (commit {commit.number}).",
        *filter(None, [lacks]),
        f"Next: `perennial add PICTURES{named}`, then `perennial search WORDS{named}`.",
    )


def _from_model(
    settings: Settings, model: str, pretrained: str | None, texts: str | None, languages: str
) -> tuple[CommitRecord, str | None]:
    from app.learning.beginning import initialise
    from model_updates.embedded import lacking
    from model_updates.errors import UnknownModel

    try:
        commit = initialise(
            settings, model=model, pretrained=pretrained, texts=texts, languages=_tags(languages)
        )
    except UnknownModel as error:
        raise UnknownModel(f"{error}. `perennial models` lists what there is") from error
    return commit, lacking(model)


def _tags(languages: str) -> tuple[str, ...]:
    from ingest.captions import normalise_language

    return tuple(normalise_language(tag) for tag in languages.replace(" ", "").split(",") if tag)


def models(
    part: Annotated[
        str, typer.Argument(help="Only names that contain this, such as ViT-B-16.", show_default=False)
    ] = "",
    is_json: JsonOption = False,
) -> None:
    """List the encoders that `init --model` takes."""
    from app.words import messages
    from model_updates.available import available

    found = available(part)
    if not found.embedded and not found.architectures:
        raise UsageProblem(f"No encoder has {part!r} in its name; `perennial models` lists all.")
    said: list[Any] = []
    if found.embedded:
        names = [name + " (the default)" * (name == DEFAULT_MODEL) for name in found.embedded]
        said.append(f"Nothing to download: {', '.join(names)}.")
    if found.architectures:
        said += [
            "From a local file: `init --model ARCHITECTURE --pretrained weights.safetensors`, any of those below; "
            "XLM-RoBERTa and SigLIP cut texts by the `tokenizer.json` that lies beside the weights.",
            "From sentence-transformers: `init --model FOLDER` with a CLIP model saved there; `--texts FOLDER "
            "--languages en,de,…` for a text model of its own beside it.",
            "From a hub: `init --model ARCHITECTURE --pretrained TAG` downloads a tag's weights."
            if found.hub
            else "From a hub: not now, as none answers from here; a tag's weights could not be downloaded.",
            messages.table(
                ("architecture", "pretrained tags"),
                [(name, ", ".join(tags)) for name, tags in found.architectures.items()],
            ),
        ]
    show(is_json, asdict(found), *said)


def serve(
    host: Annotated[str | None, typer.Option(help="Where to listen.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="On which port.", show_default=False)] = None,
    processes: Annotated[
        int | None, typer.Option(help="How many processes answer searches; 1 by itself.", show_default=False)
    ] = None,
    home: HomeOption = None,
) -> None:
    """Serve the pages and the REST interface."""
    settings = settings_for(home, host=host, port=port, processes=processes)
    from app.commands.starting import starting
    from app.home.folder import Home

    Home.open(settings.home).require_stores()
    with starting(settings) as server:
        server.run()


def work(home: HomeOption = None) -> None:
    """Run the jobs of a server.

    Of one whose setting `jobs` is elsewhere; until it is stopped.
    """
    import signal

    # Jobs run here, whatever the server beside it has been told.
    settings = settings_for(home, jobs="here")
    from app.home.folder import Home

    Home.open(settings.home)  # refuses at once, before the heavy imports
    from app.home import logs
    from app.home.cluster import require_cluster
    from app.home.workspace import Workspace
    from app.server.work import Work

    require_cluster(settings.ray)
    logs.configure(settings.log_level, home=settings.home, to_stderr=True)
    with Workspace.open(settings) as workspace:
        waiting = Work(workspace, on_ended=lambda: None)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: waiting.stop())
        typer.echo(f"Waiting for jobs of {settings.home} (Ctrl-C ends it; jobs at work go on)")
        waiting.take_all()


def mcp(context: typer.Context, home: HomeOption = None) -> None:
    """Serve search as tools for assistants.

    It asks the server that runs on this machine, or --server.
    """
    url = server_of(context)
    if url is None:
        settings = settings_for(home)
        url = f"http://{settings.host}:{settings.port}"
    try:
        from app.client.assistant import assistant_server
    except ModuleNotFoundError as error:
        raise UsageProblem(
            f"Tools for assistants need a package more: pip install '{DISTRIBUTION}[mcp]'."
        ) from error
    with connected(url) as desk:
        assistant_server(desk).run("stdio")


def account(
    user: Annotated[str, argument("Who signs in.", "USER")],
    role: Annotated[str, argument("searcher, contributor or admin.", "ROLE")],
    to: Annotated[
        Path | None, option("--to", says="The password file; it is made where there is none.")
    ] = None,
    replace: Annotated[
        bool, option("--replace", says="The account stands there and gets a new line.")
    ] = False,
) -> None:
    """Write an account of a server's password file.

    The password is asked for at a terminal, and else read from standard input.
    """
    from app.server.password_file import require_place, write_account
    from app.server.security import password_line, require_account

    require_account(user, role)
    if to is None:
        typer.echo(password_line(user, role, _password()))
        return
    require_place(to, user, replace=replace)
    count = write_account(to, password_line(user, role, _password()))
    typer.echo(f"{user} is in {to} as {role}, one of {count}. A server reads the file when it starts.")


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("The same again: ") != password:
        raise UsageProblem("These were two passwords; nothing was written. Try again.")
    return password


def demo(
    script: Annotated[bool, typer.Option("--script", help="Tell the story without a browser.")] = False,
    port: Annotated[int | None, typer.Option(help="On which port.", show_default=False)] = None,
    home: HomeOption = None,
) -> None:
    """Show the whole story on drawn pictures."""
    # Never the home in use: the demo rolls back and forward as it likes.
    settings = settings_for(home or Path("perennial-demo-script" if script else "perennial-demo"), port=port)
    if script:
        from app.demo.script import run_script

        raise typer.Exit(run_script(settings))
    from app.commands.starting import starting

    with starting(settings) as server:
        from app.demo.script import make_guided_home

        make_guided_home(settings)
        server.run()
