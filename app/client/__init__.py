"""A running server from Python: `connect("http://127.0.0.1:7860").search(SearchRequest(text="two red boats"))`.

Loads neither torch nor FAISS. What a newer server adds to an answer does no harm; what the server refuses is raised
with the server's own sentence.
"""

from app.client.errors import Refused, ServerAway
from app.client.server_desk import ServerDesk, connect

__all__ = ["Refused", "ServerAway", "ServerDesk", "connect"]
