"""What people say of answers: kept with who said it, counted as votes between releases, made a canary query."""

import logging
import math
from collections import Counter
from collections.abc import Iterable

from app.desk.errors import UnknownCanary, UnknownFeedback, UsageProblem
from app.desk.opinions import Votes
from app.home.workspace import Workspace
from app.query.grammar import as_text
from ingest.captions import normalise_language
from ingest.errors import UnknownImage
from ingest.feedback import FeedbackRecord
from ingest.records import Pin
from ingest.sentence import phrase

logger = logging.getLogger(__name__)

_NORMAL_95 = 1.959964


def thumb(
    workspace: Workspace, *, query: str, language: str, release: str, image_id: str, verdict: str, by: str
) -> FeedbackRecord:
    """Keeps a thumb up or down on a picture that an answer showed.

    Raises:
        UnknownRelease, UnknownImage: there is none.
    """
    if workspace.catalog.image(image_id) is None:
        raise UnknownImage(f"There is no picture {image_id[:64]!r}.")
    known = workspace.releases.release(release).id
    return workspace.catalog.feedback.keep(
        by=by, query=query, language=language, release=known, image_id=image_id, verdict=verdict
    )


def vote(
    workspace: Workspace, *, query: str, language: str, a: str, b: str, choice: str, by: str
) -> FeedbackRecord:
    """Keeps which of two releases answered better; the pair is kept in one order, however it was shown.

    Raises:
        UnknownRelease: there is none.
        UsageProblem: both are the same.
    """
    first, second = _in_order(workspace, a, b)
    if first == workspace.releases.release(b).id:
        choice = {"a": "b", "b": "a"}.get(choice, choice)
    return workspace.catalog.feedback.keep(
        by=by, query=query, language=language, release=first, other=second, verdict=choice
    )


def votes_between(workspace: Workspace, a: str, b: str) -> Votes:
    """Counts the votes between two releases; the earlier one is `a` of the answer.

    Raises:
        UnknownRelease: there is none.
        UsageProblem: both are the same.
    """
    first, second = _in_order(workspace, a, b)
    counted = votes(workspace.catalog.feedback.all())
    none = _counted(first, second, Counter())
    return next((one for one in counted if (one.a, one.b) == (first, second)), none)


def votes(records: Iterable[FeedbackRecord]) -> list[Votes]:
    """Counts votes by pair of releases."""
    pairs: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        if record.other:
            pairs.setdefault((record.release, record.other), Counter())[record.verdict] += 1
    return [_counted(a, b, tally) for (a, b), tally in sorted(pairs.items())]


def feedback_of(workspace: Workspace, number: int) -> FeedbackRecord:
    """Returns one thing that somebody said.

    Raises:
        UnknownFeedback: there is no such feedback.
    """
    found = next((one for one in workspace.catalog.feedback.all() if one.id == number), None)
    if found is None:
        raise UnknownFeedback(f"There is no feedback {number}.")
    return found


def pin(workspace: Workspace, number: int, *, image_id: str = "", language: str = "") -> Pin:
    """Makes what somebody said a canary: once a release answers its query with this picture, updates must keep it so.

    A thumb up names the picture. A thumb down and a vote name none that is right, so a person does. `image_id` stands
    in place of the one that a thumb up names, `language` is of a query whose feedback does not say it.

    Raises:
        UnknownFeedback: there is no such feedback.
        UnknownImage: there is no such picture.
        UsageProblem: the picture or the language is not known.
    """
    found = feedback_of(workspace, number)
    picture = image_id or (found.image_id if found.verdict == "up" else "")
    if not picture:
        raise UsageProblem(
            f"Feedback {number} is {found.verdict!r}, which does not say which picture is right for "
            f"{found.query[:60]!r}. Name the picture."
        )
    record = workspace.catalog.image(picture)
    if record is None or record.withdrawn:
        raise UnknownImage(f"There is no picture {picture[:64]!r}.")
    text = as_text(found.query)
    if text is None:
        raise UsageProblem(
            phrase(
                "{query} is no single text, and only such a query can be a canary. Pin the words alone.",
                query=f"{found.query[:60]!r}",
            )
        )
    spoken = found.language.split(" ")[0]
    spoken = normalise_language(language) if language else spoken
    if spoken == "auto":
        raise UsageProblem(
            phrase(
                "Feedback {count} does not say in which language its query was read. Name the language.",
                count=number,
            )
        )
    workspace.catalog.set_pin(text, spoken, picture)
    return Pin(text, spoken, picture)


def remove_canary(workspace: Workspace, query: str, *, language: str = "", by: str) -> Pin:
    """Takes a canary away: from then on updates need not keep its picture as the first answer.

    The language may be left out where the query is pinned in one alone; who says so is in the log.

    Raises:
        UnknownCanary: there is none.
        UsageProblem: it is pinned in several languages, and none was named.
    """
    pinned = [one for one in workspace.catalog.pins() if one.query == query]
    spoken = normalise_language(language) if language else ""
    found = [one for one in pinned if not spoken or one.language == spoken]
    languages = ", ".join(one.language for one in pinned)
    if not found:
        raise UnknownCanary(
            phrase(
                "{query} is no canary in {language}; it is one in {languages}.",
                query=f"{query[:60]!r}",
                language=spoken,
                languages=languages,
            )
            if pinned
            else phrase("{query} is no canary; `canaries` lists those that are.", query=f"{query[:60]!r}")
        )
    if len(found) > 1:
        raise UsageProblem(
            phrase(
                "{query} is a canary in {languages}. Name the language.",
                query=f"{query[:60]!r}",
                languages=languages,
            )
        )
    workspace.catalog.remove_pin(found[0].query, found[0].language)
    logger.info("%s took away a canary in %s", by, found[0].language)
    return found[0]


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """Returns the 95 % score interval of a share of 1 trial or more (Wilson, J. Am. Stat. Assoc. 22, 1927), as shares.

    `successes` may be a sum of shares, which vary less than yes and no.
    """
    square = _NORMAL_95**2
    share = successes / trials
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    half = (
        _NORMAL_95
        * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
        / (1 + square / trials)
    )
    return max(0.0, middle - half), min(1.0, middle + half)


def _in_order(workspace: Workspace, a: str, b: str) -> tuple[str, str]:
    """Returns the ids of two releases, the earlier one first."""
    first, second = sorted(
        (workspace.releases.release(name) for name in (a, b)), key=lambda record: record.seq
    )
    if first.id == second.id:
        raise UsageProblem(f"Both sides are {first.id}; a vote is between two releases.")
    return first.id, second.id


def _counted(a: str, b: str, tally: Counter[str]) -> Votes:
    decided = tally["a"] + tally["b"]
    share = low = high = None
    if decided:
        share = 100 * tally["b"] / decided
        low, high = (100 * bound for bound in wilson(tally["b"], decided))
    return Votes(a, b, tally["a"], tally["b"], tally["tie"], tally["both_bad"], share, low, high)
