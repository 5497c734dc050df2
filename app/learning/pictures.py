"""Single pictures: what is known of one, taking some out of everything, putting them back."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.desk.errors import UsageProblem
from app.desk.probes import probe_chunks
from app.home.workspace import Workspace
from ingest.errors import UnknownImage
from ingest.pair import Caption, ImageId
from ingest.records import ImageRecord
from ingest.sentence import phrase
from ingest.withheld import Withheld

_BEGINNING = re.compile("[0-9a-f]{6,64}")


@dataclass(frozen=True)
class KnownPicture:
    """A picture with its captions, by language; and who took it out, if somebody did."""

    record: ImageRecord
    captions: tuple[Caption, ...]
    withheld: Withheld | None


def picture(workspace: Workspace, name: str) -> KnownPicture:
    """Returns what is known of a picture, by its id or a beginning of it that no other picture's id has.

    Raises:
        UnknownImage: none or several match, or it left the home with its chunk.
    """
    image_id = named(workspace, name)
    record = workspace.catalog.image(image_id)
    out = {one.image_id: one for one in workspace.catalog.withheld.all()}.get(image_id)
    if record is None or (record.withdrawn and out is None):
        raise UnknownImage(
            phrase("There is no picture {name}: its chunk was withdrawn.", name=f"{name[:64]!r}")
        )
    return KnownPicture(record, tuple(workspace.catalog.captions_of(image_id)), out)


def named(workspace: Workspace, name: str) -> ImageId:
    """Returns the id of the picture that begins so.

    Raises:
        UsageProblem: so begins no id at all.
        UnknownImage: none or several do.
    """
    wanted = name.strip().removeprefix("#").lower()
    if not _BEGINNING.fullmatch(wanted):
        raise UsageProblem(
            phrase(
                "{name} is no picture's id: write 6 or more of its digits, as a result of a search has them.",
                name=f"{name[:64]!r}",
            )
        )
    found = workspace.catalog.ids_beginning(wanted, limit=2)
    if len(found) == 1:
        return found[0]
    name = f"{wanted[:64]!r}"
    if found:
        raise UnknownImage(
            phrase(
                "Several pictures have ids that begin with {name}. Take the id from a result of a search.",
                name=name,
            )
        )
    raise UnknownImage(
        phrase(
            "No picture has an id that begins with {name}. Take the id from a result of a search.", name=name
        )
    )


def take_out(workspace: Workspace, names: Sequence[str], *, by: str, why: str) -> list[ImageId]:
    """Takes pictures out of everything: nothing shows them, trains on them or measures by them.

    What encoders learned from them stays learned, and an update that runs goes on with what it has read. Search leaves
    them out at once, the index when it is made anew. Returns the ids of those that were not out before.

    Raises:
        UnknownImage: there is none of a name; nothing changed.
        UsageProblem: no reason was given, or one is a probe.
        BadOption: too many.
    """
    if not why.strip():
        raise UsageProblem(phrase("Say why a picture is taken out: the reason is kept."))
    wanted = list(map(takeable(workspace), names))
    return workspace.catalog.withheld.take_out(wanted, by=by, why=why) if wanted else []


def put_back(workspace: Workspace, names: Sequence[str]) -> list[ImageId]:
    """Puts pictures back where they were; search has them once the gallery was made whole.

    Raises:
        UnknownImage: there is none of a name, or it is not out; nothing changed.
        BadOption: too many.
    """
    wanted = list(map(returnable(workspace), names))
    return workspace.catalog.withheld.put_back(wanted) if wanted else []


def takeable(workspace: Workspace) -> Callable[[str], ImageId]:
    """Returns what finds a picture by a name and refuses one that cannot be taken out.

    It raises as `take_out` does of a single name, and of one that was withdrawn with its chunk.
    """
    chunks = probe_chunks(workspace.catalog)
    probes = workspace.catalog.ids_where(chunks=chunks) if chunks else set()

    def find(name: str) -> ImageId:
        image_id = picture(workspace, name).record.id
        if image_id in probes:
            raise UsageProblem(
                phrase(
                    "Picture {id} is one of the built-in checks that every update is measured by; it stays.",
                    id=image_id[:24],
                )
            )
        return image_id

    return find


def returnable(workspace: Workspace) -> Callable[[str], ImageId]:
    """Returns what finds a picture by a name and refuses one that nobody took out."""
    out = workspace.catalog.withheld.ids()

    def find(name: str) -> ImageId:
        image_id = named(workspace, name)
        if image_id not in out:
            raise UnknownImage(phrase("Picture {id} is not one that somebody took out.", id=image_id[:24]))
        return image_id

    return find
