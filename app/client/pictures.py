"""Single pictures of a server, and vectors of its releases."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.client.connection import Connection, address_part, given
from app.client.errors import Refused


@dataclass(frozen=True)
class ChangedPictures:
    """Ids of the pictures that were changed, and the job that follows; None where nothing follows."""

    done: tuple[str, ...]
    job: str | None


class Pictures(Connection):
    """What looks at single pictures, adds some, takes some out and puts them back."""

    def item(self, name: str) -> dict[str, Any]:
        """Returns what is known of a picture, by its id or a beginning of it."""
        return dict(self.get(f"/v1/items/{address_part(name.removeprefix('#'))}"))

    def add_pictures(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        name: str = "items",
        domain: str = "",
        in_gallery: bool = True,
    ) -> dict[str, Any]:
        """Adds up to 64 pictures as one chunk; returns a status for each, and the job.

        Args:
            items: each with `image`, the bytes of a file, and `caption` with `language`, or `captions` by language.
            name: of the chunk.
            domain: of the pictures.
            in_gallery: whether search is to find them.
        """
        packed = [{**one, "image": _in_base64(one["image"])} for one in items]
        return self.post(
            "/v1/items", {"items": packed, "name": name, "domain": domain, "gallery": in_gallery}
        )

    def take_out(self, ids: Sequence[str], *, why: str) -> ChangedPictures:
        """Takes pictures out: nothing shows them, trains on them or measures by them."""
        return _changed(self.post("/v1/items/delete", {"ids": list(ids), "why": why}))

    def put_back(self, ids: Sequence[str]) -> ChangedPictures:
        """Puts pictures back that were taken out."""
        return _changed(self.post("/v1/items/restore", {"ids": list(ids)}))

    def withheld(self) -> list[dict[str, Any]]:
        """Returns the pictures that were taken out, the latest first."""
        return list(self.get("/v1/withheld")["withheld"])

    def embed(
        self,
        texts: Sequence[str] = (),
        images: Sequence[bytes] = (),
        *,
        language: str = "auto",
        release: str | None = None,
    ) -> dict[str, Any]:
        """Returns vectors of texts and of pictures' files, a status each, and the version that they are of."""
        asked = given({"language": language, "release": release})
        return self.post(
            "/v1/embed", asked | {"texts": list(texts), "images": [_in_base64(one) for one in images]}
        )


def _in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _changed(answer: Mapping[str, Any]) -> ChangedPictures:
    """Returns what was changed.

    Raises:
        Refused: one of them could not be; the others are changed.
    """
    for one in answer["results"]:
        if one["error"]:
            raise Refused(one["error"], one["status"], one["code"])
    job = answer["job"]
    return ChangedPictures(
        tuple(one["id"] for one in answer["results"] if one["changed"]), job["id"] if job else None
    )
