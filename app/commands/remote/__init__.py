"""The verbs that work on a running server, with `--server URL`; named and shown like those that work on a home."""

from app.commands.homes import models
from app.commands.learning import methods
from app.commands.remote.assistants import mcp
from app.commands.remote.canaries import canaries
from app.commands.remote.held import decide, held
from app.commands.remote.judging import changes, diff, drift, feedback, quality
from app.commands.remote.learning import ingest, remove, update
from app.commands.remote.pictures import pictures
from app.commands.remote.searching import compare, search
from app.commands.remote.shadowing import shadow
from app.commands.remote.standing import accept, check, gate, withdraw
from app.commands.remote.transfer import export, import_
from app.commands.remote.upkeep import doctor
from app.commands.remote.what_is_live import promote, releases, rollback, status
from app.commands.remote.words import keep, pin, reject, unpin

VERBS = (
    *(search, compare, ingest, update, check, gate, accept, withdraw, remove),
    *(held, decide, pictures),
    *(changes, diff, drift, quality, feedback),
    *(releases, promote, rollback, reject, keep, pin, unpin, export, import_),
    *(shadow, canaries, status, doctor, mcp),
    *(methods, models),  # which ask this program and no home
)
