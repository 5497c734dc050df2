"""The verb `pictures`: what is known of one, taking some out of everything, putting them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.terminal import HomeOption, JsonOption, desk_for, show
from app.desk.errors import AppError, UsageProblem

if TYPE_CHECKING:
    from app.desk.pictures import Item, ItemResults, TakenOut

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
    context: typer.Context,
    names: NamesArgument = None,
    take_out: TakeOutOption = False,
    put_back: PutBackOption = False,
    withheld: WithheldOption = False,
    why: WhyOutOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show a picture's captions; or take pictures out of everything, put them back, list those that are out."""
    wanted = _asked(names, take_out=take_out, put_back=put_back, withheld=withheld, why=why)
    with desk_for(context, home) as desk:
        if withheld:
            _show_taken_out(desk.taken_out(), is_json=is_json)
        elif take_out:
            _show_changed(desk.take_out(wanted, why), take_out=True, is_json=is_json)
        elif put_back:
            _show_changed(desk.put_back(wanted), take_out=False, is_json=is_json)
        else:
            _show_picture(desk.item(wanted[0]), is_json=is_json)


def _asked(
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
    return [name.removeprefix("#") for name in dict.fromkeys(names)]


def _show_picture(known: Item, *, is_json: bool) -> None:
    from app.words.messages import plain, table

    size = f"{known.width} × {known.height} {known.format}"
    parts: list[Any] = [plain(f"{known.id}  {size}, domain {known.domain}, chunk {known.chunk}")]
    out = known.withheld
    if out:
        parts.append(plain(f"Taken out by {out.by} ({_when(out)}): {out.why}"))
    rows = [(one.language, one.text) for one in known.captions]
    show(is_json, known, *parts, *([table(("language", "caption"), rows)] if rows else []))


def _show_taken_out(found: Sequence[TakenOut], *, is_json: bool) -> None:
    from app.words.messages import table

    rows = [(one.id[:24], _when(one), one.by, one.why) for one in found]
    none = "No picture was taken out."
    show(is_json, found, table(("picture", "taken out", "by", "why"), rows) if rows else none)


def _show_changed(became: ItemResults, *, take_out: bool, is_json: bool) -> None:
    """Says what became of the pictures.

    Raises:
        AppError: one of them could not be changed; the others are.
    """
    from app.words.messages import plain

    for one in became.results:
        if one.error:
            raise _refused(one.error, one.code)
    done = sum(one.changed for one in became.results)
    said = f"{_count(done)} {_done(done, take_out)}." if done else "All of them were so already."
    if became.job:
        said += f" Job {became.job.id} makes the index anew."
    show(is_json, became, plain(said))


def _refused(sentence: str, code: str | None) -> AppError:
    from app.desk.troubles import exit_code_of

    error = AppError(sentence, exit_code_of(code or "", 400))
    error.code = code or "refused"  # type: ignore[attr-defined]
    return error


def _when(out: TakenOut) -> str:
    return f"{out.since[:16].replace('T', ' ')} UTC"


def _done(count: int, take_out: bool) -> str:
    if take_out:
        return "is out: nothing shows it" if count == 1 else "are out: nothing shows them"
    return "is back" if count == 1 else "are back"


def _count(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"
