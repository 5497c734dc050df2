"""A running server from Python: `Client("http://127.0.0.1:7860").search("two red boats")`.

Loads neither torch nor FAISS. What a newer server adds to an answer is kept and does no harm; what the server refuses
is raised with the server's own sentence.
"""

from app.client.answers import Compared, FoundHit, ListedRelease, SearchAnswer, WentLiveAnswer
from app.client.errors import Refused, ServerAway
from app.client.judging import Judging
from app.client.pictures import ChangedPictures, Pictures
from app.client.releasing import Releasing
from app.client.searching import Searching
from app.client.teaching import Teaching

__all__ = [
    "ChangedPictures",
    "Client",
    "Compared",
    "FoundHit",
    "ListedRelease",
    "Refused",
    "SearchAnswer",
    "ServerAway",
    "WentLiveAnswer",
]


class Client(Searching, Teaching, Releasing, Judging, Pictures):
    """A server's REST interface; a context manager.

    Every method raises `Refused` with the server's sentence, or `ServerAway`. What has no method of its own is asked
    with `get` and `post`.
    """
