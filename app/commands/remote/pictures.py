"""The verb `pictures` on a server."""

from __future__ import annotations

import typer

from app.commands.pictures import (
    NamesArgument,
    PutBackOption,
    TakeOutOption,
    WhyOutOption,
    WithheldOption,
    asked,
    show_changed,
    show_picture,
    show_withheld,
)
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption


def pictures(
    context: typer.Context,
    names: NamesArgument = None,
    take_out: TakeOutOption = False,
    put_back: PutBackOption = False,
    withheld: WithheldOption = False,
    why: WhyOutOption = "",
    is_json: JsonOption = False,
) -> None:
    """Show a picture's captions; or take pictures out of everything, put them back, list those that are out."""
    wanted = asked(names, take_out=take_out, put_back=put_back, withheld=withheld, why=why)
    with connected(context) as client:
        if withheld:
            show_withheld([one | {"image_id": one["id"]} for one in client.withheld()], is_json=is_json)
        elif take_out or put_back:
            ids = [str(client.item(one)["id"]) for one in wanted]
            changed = client.take_out(ids, why=why) if take_out else client.put_back(ids)
            show_changed(ids, changed.done, take_out=take_out, job=changed.job, is_json=is_json)
        else:
            known = client.item(wanted[0])
            show_picture(known | {"chunk_id": known["chunk"]}, is_json=is_json)
