"""The verb `pictures`: what is known of one, taking some out of everything, putting them back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from app.commands.options import argument, option
from app.commands.terminal import require_place
from app.commands.verb import Shown, verb
from app.desk.errors import AppError, UsageProblem
from app.words.messages import size, table

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.hits import SeenAt
    from app.desk.pictures import Item, ItemResults, TakenOut


@verb
def pictures(
    desk: Desk,
    names: Annotated[
        list[str] | None, argument("Ids, or their beginnings, as a search shows them.", "[ID]...")
    ] = None,
    take_out: Annotated[
        bool, option("--take-out", says="Nothing shows, teaches or measures by them any more.")
    ] = False,
    put_back: Annotated[bool, option("--put-back", says="Put back what was taken out.")] = False,
    save: Annotated[Path | None, option("--save", says="Write the original file here.")] = None,
    withheld: Annotated[bool, option("--withheld", says="List what was taken out.")] = False,
    why: Annotated[str, option(says="The reason for taking out; it is kept.")] = "",
) -> Shown:
    """Show a picture's captions, or withhold it.

    Pictures are taken out of everything and put back, and those that are out are listed.
    """
    if save is not None:
        require_place(save, "--save")
    wanted = _asked(names, take_out=take_out, put_back=put_back, withheld=withheld, why=why)
    if withheld:
        return _taken_out(desk.taken_out())
    if take_out or put_back:
        return _changed(desk.take_out(wanted, why) if take_out else desk.put_back(wanted), take_out=take_out)
    known = desk.item(wanted[0])
    if save is not None:
        written = size(save.write_bytes(desk.original(known.id).data))
        return known, f"The original is in {save} ({written})."
    return _picture(known)


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


def _picture(known: Item) -> Shown:
    size = f"{known.width} × {known.height} {known.format}"
    parts: list[Any] = [f"{known.id}  {size}, domain {known.domain}, chunk {known.chunk}"]
    out = known.withheld
    if out:
        parts.append(f"Taken out by {out.by} ({_when(out)}): {out.why}")
    if known.taken or known.camera:
        parts.append(f"Taken {' '.join(filter(None, (known.taken.replace('T', ' '), known.camera)))}")
    rows = [(one.language, one.text) for one in known.captions]
    parts += [table(("language", "caption"), rows)] if rows else []
    seen = [(one.path, one.key, _fields(one), "gone" if one.gone else "") for one in known.sources]
    return known, *parts, *([table(("seen at", "own id", "own fields", ""), seen)] if seen else [])


def _fields(seen: SeenAt) -> str:
    return ", ".join(f"{name} = {value}" for name, value in seen.fields.items())


def _taken_out(found: Sequence[TakenOut]) -> Shown:
    rows = [(one.id[:24], _when(one), one.by, one.why) for one in found]
    return found, table(("picture", "taken out", "by", "why"), rows) if rows else "No picture was taken out."


def _changed(became: ItemResults, *, take_out: bool) -> Shown:
    """Says what became of the pictures.

    Raises:
        AppError: one of them could not be changed; the others are.
    """
    for one in became.results:
        if one.error:
            raise _refused(one.error, one.code)
    done = sum(one.changed for one in became.results)
    said = f"{_count(done)} {_done(done, take_out)}." if done else "All of them were so already."
    if became.job:
        said += f" Job {became.job.id} makes the index anew."
    return became, said


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
