"""The verb `pictures`: what is known of one, taking some out of everything, putting them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for
from app.desk.errors import UsageProblem

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...", help="Ids, or their beginnings, as a search shows them.", show_default=False
    ),
]
TakeOutOption = Annotated[
    bool,
    typer.Option(
        "--take-out", help="Nothing shows, teaches or measures by them any more.", show_default=False
    ),
]
PutBackOption = Annotated[
    bool, typer.Option("--put-back", help="Put back what was taken out.", show_default=False)
]
WithheldOption = Annotated[
    bool, typer.Option("--withheld", help="List what was taken out.", show_default=False)
]
WhyOutOption = Annotated[
    str, typer.Option("--why", help="The reason for taking out; it is kept.", show_default=False)
]


def pictures(
    names: NamesArgument = None,
    take_out: TakeOutOption = False,
    put_back: PutBackOption = False,
    withheld: WithheldOption = False,
    why: WhyOutOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show a picture's captions; or take pictures out of everything, put them back, list those that are out."""
    wanted = asked(names, take_out=take_out, put_back=put_back, withheld=withheld, why=why)
    with workspace_for(home) as workspace:
        from dataclasses import asdict

        from app.jobs import requests, worker
        from app.learning import pictures as single

        if withheld:
            show_withheld([asdict(one) for one in workspace.catalog.withheld.all()], is_json=is_json)
            return
        if not (take_out or put_back):
            known = single.picture(workspace, wanted[0])
            out = asdict(known.withheld) if known.withheld else None
            document = asdict(known.record) | {
                "captions": [asdict(one) for one in known.captions],
                "withheld": out,
            }
            show_picture(document, is_json=is_json)
            return
        ids = [single.named(workspace, one) for one in wanted]
        done = (
            single.take_out(workspace, ids, by=who(), why=why)
            if take_out
            else single.put_back(workspace, ids)
        )
        job = requests.pictures_job(workspace, why=_why(len(done), take_out), by=who()) if done else None
        if job is not None:
            worker.spawn(workspace.settings, job.id)
    show_changed(ids, done, take_out=take_out, job=job.id if job else None, is_json=is_json)


def asked(
    names: Sequence[str] | None, *, take_out: bool, put_back: bool, withheld: bool, why: str
) -> list[str]:
    """Returns the names, after refusing what says nothing or two things at once.

    Raises:
        UsageProblem: it does.
    """
    if sum((take_out, put_back, withheld)) > 1:
        raise UsageProblem("Choose one of --take-out, --put-back and --withheld.")
    if withheld:
        if names:
            raise UsageProblem("--withheld lists all that are out, and takes no names.")
        return []
    if not names:
        raise UsageProblem("Name a picture by its id, or a beginning of it, as a search shows it.")
    if not (take_out or put_back) and len(names) > 1:
        raise UsageProblem("One picture is shown at a time; name one, or say --take-out or --put-back.")
    if take_out and not why.strip():
        raise UsageProblem('Say why: the reason is kept. For example: --why "she asked for it"')
    return list(dict.fromkeys(names))


def show_picture(known: Mapping[str, Any], *, is_json: bool) -> None:
    """Shows what is known of a picture."""
    from app.words.messages import plain, table

    size = f"{known['width']} × {known['height']} {known['format']}"
    parts: list[Any] = [plain(f"{known['id']}  {size}, domain {known['domain']}, chunk {known['chunk_id']}")]
    out = known["withheld"]
    if out:
        parts.append(plain(f"Taken out by {out['by']} ({_when(out)}): {out['why']}"))
    rows = [(one["language"], one["text"]) for one in known["captions"]]
    show(is_json, dict(known), *parts, *([table(("language", "caption"), rows)] if rows else []))


def show_withheld(found: Sequence[Mapping[str, Any]], *, is_json: bool) -> None:
    """Shows a row for each picture that is out."""
    from app.words.messages import table

    rows = [(str(one["image_id"])[:24], _when(one), one["by"], one["why"]) for one in found]
    none = "No picture was taken out."
    show(is_json, list(found), table(("picture", "taken out", "by", "why"), rows) if rows else none)


def show_changed(
    named: Sequence[str], done: Sequence[str], *, take_out: bool, job: str | None, is_json: bool
) -> None:
    """Says what became of the pictures that were named, by their ids."""
    from app.words.messages import plain

    document = {"pictures": list(named), "changed": list(done), "job": job}
    said = f"{_count(len(done))} {_done(len(done), take_out)}." if done else "All of them were out already."
    if job:
        said += f" Job {job} makes the index anew."
    show(is_json, document, plain(said))


def _when(out: Mapping[str, Any]) -> str:
    return f"{str(out['since'])[:16].replace('T', ' ')} UTC"


def _why(count: int, take_out: bool) -> str:
    return f"{count} pictures {'were taken out' if take_out else 'came back'}"


def _done(count: int, take_out: bool) -> str:
    if take_out:
        return "is out: nothing shows it" if count == 1 else "are out: nothing shows them"
    return "is back" if count == 1 else "are back"


def _count(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"
