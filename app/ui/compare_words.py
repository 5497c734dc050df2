"""The words of the Compare tab."""

from __future__ import annotations

from app.desk.hits import Compared, ManyCompared, SearchAnswer
from app.desk.opinions import Votes
from app.desk.slices import SliceSummary
from app.ui.drawn import Markup, tag
from app.ui.grid import Picture
from app.ui.search_words import hit_picture, readings
from app.ui.words import ENGLISH, Words
from ingest.sentence import phrase
from model_updates.evaluation import View
from model_updates.gate.report import points
from model_updates.recalls import LABELS, TEXT_RECALLS

HINT = phrase(
    "## Compare two releases\n\nChoose a release on each side and type a query. On the right, ▲2 means two "
    "places up, ▼1 one place down, and *new* that the left release did not find the picture. A blind vote "
    "hides which release is on which side until you have said which answer is better."
)
CHOOSE = phrase("Choose a release on each side.")
SAME = phrase("Both sides are the same release; a vote is between two. Choose another one.")
BLIND = phrase("**Which answer is better?** The names are shown when you have voted.")
CHOICES = {
    "a": phrase("A is better"),
    "b": phrase("B is better"),
    "tie": phrase("A tie"),
    "both_bad": phrase("Both are bad"),
}
NO_ROUND = phrase("There is nothing to vote on yet. Type a query and choose “Blind vote”.")
MANY_HEADERS = ["query", "read in A", "read in B", "in common", "first picture", "moved by", "A ms", "B ms"]
MANY_HINT = phrase("One query a line, at most 64. Select a row of the table to see both answers above.")
NO_ANSWER = phrase("No query could be answered; the table says why.")
NO_QUERIES = phrase(
    "There are no held-out captions or canaries to ask. Accept a chunk as measuring material, or "
    "type queries above."
)


_WIDTH, _HEIGHT, _EDGE = 360, 44, 12
_LONGEST_REFUSED = 60  # characters; most are refused for their length


COMPARED_HEADERS = ["slice", "images"] + [
    f"{name} {part}" for name in LABELS.values() for part in ("A", "B", "Δ")
]
_VIEWS = list(View)


def lacking(a: str, b: str, query: str) -> str:
    """Says what is to be filled in before two releases can be asked; "" where nothing is lacking."""
    if not (a and b):
        return CHOOSE
    return "" if query.strip() else HINT


def status_line(compared: Compared, say: Words = ENGLISH) -> str:
    """Returns how much two answers have in common, how each read the query, and how long either release took."""
    overlap = say(
        "**{share} % overlap** in the first {count}",
        share=f"{100 * compared.overlap:.0f}",
        count=max(len(compared.a.hits), len(compared.b.hits)),
    )
    sides = {"A": compared.a, "B": compared.b}
    reads = [f"{side} {readings(answer, say)}" for side, answer in sides.items()]
    takes = [f"{side} {_milliseconds(answer)} ms" for side, answer in sides.items()]
    return " · ".join([overlap, *reads, *takes])


def blind_pictures(compared: Compared, base: str, say: Words = ENGLISH) -> list[list[Picture]]:
    """Returns both grids, whose notes give nothing away but places."""
    return [
        [hit_picture(hit, str(hit.rank), base, say) for hit in answer.hits]
        for answer in (compared.a, compared.b)
    ]


def compared_pictures(compared: Compared, base: str, say: Words = ENGLISH) -> list[list[Picture]]:
    """Returns both grids; each picture says its rank, and on the right how far it moved."""
    before = {hit.id: hit.rank for hit in compared.a.hits}
    left = [hit_picture(hit, f"{hit.rank} · {hit.score:.3f}", base, say) for hit in compared.a.hits]
    right = [
        hit_picture(hit, f"{hit.rank} {rank_move(before.get(hit.id), hit.rank, say)}", base, say)
        for hit in compared.b.hits
    ]
    return [left, right]


def rank_move(before: int | None, now: int, say: Words = ENGLISH) -> str:
    """Returns "▲2", "▼1", "=" or "new"."""
    if before is None:
        return say("new")
    if before == now:
        return "="
    return f"▲{before - now}" if before > now else f"▼{now - before}"


def compared_slices(compared: Compared, say: Words = ENGLISH) -> list[list[str]]:
    """Returns recall per slice in both releases and the difference, a row each."""
    sides = [
        {(one.language, one.domain, _VIEWS.index(View(one.view))): one for one in compared.slices[side]}
        for side in ("a", "b")
    ]
    rows = []
    for key in sorted(sides[0].keys() | sides[1].keys()):
        language, domain, view = key
        a, b = (side.get(key) for side in sides)
        counted = b or a
        name = f"{language}/{domain}" + (f" ({say.said(_VIEWS[view])})" if view else "")
        cells = [cell for recall in TEXT_RECALLS for cell in _both(a, b, recall)]
        rows.append([name, str(counted.images) if counted else "–", *cells])
    return rows


def _both(a: SliceSummary | None, b: SliceSummary | None, name: str) -> list[str]:
    cells = ["–" if part is None else f"{part.recalls[name]:.1f}" for part in (a, b)]
    return [*cells, points(b.recalls[name] - a.recalls[name]) if a and b else "–"]


def voted_line(choice: str, a: str, b: str) -> str:
    """Says what a vote was for, once the names may be known.

    Args:
        choice: of `CHOICES`.
        a: the release that was shown as A.
        b: the one that was shown as B.
    """
    said = {
        "a": phrase("You preferred **{a}**, which was A; B was {b}.", a=a, b=b),
        "b": phrase("You preferred **{b}**, which was B; A was {a}.", b=b, a=a),
        "tie": phrase("A tie between {a} (A) and {b} (B).", a=a, b=b),
        "both_bad": phrase("Both are bad: {a} (A) and {b} (B).", a=a, b=b),
    }
    return said[choice]


def votes_line(counted: Votes, say: Words = ENGLISH) -> str:
    """Returns the votes between two releases in a sentence."""
    rest = []
    if counted.ties:
        rest.append(say("1 tie") if counted.ties == 1 else say("{count} ties", count=counted.ties))
    if counted.both_bad:
        rest.append(say("{count} both bad", count=counted.both_bad))
    others = [say("Besides: {rest}.", rest=", ".join(rest))] if rest else []
    if counted.share_b is None or counted.low is None or counted.high is None:
        nobody = say("No votes between {a} and {b} yet.", a=counted.a, b=counted.b)
        return " ".join([nobody, *others])
    said = say(
        "{n} of {all} votes preferred {b} to {a}: {share} %, 95 % interval {low} to {high} %.",
        n=counted.for_b,
        all=counted.for_a + counted.for_b,
        a=counted.a,
        b=counted.b,
        share=f"{counted.share_b:.0f}",
        low=f"{counted.low:.0f}",
        high=f"{counted.high:.0f}",
    )
    is_sure = counted.low > 50 or counted.high < 50
    sure = [] if is_sure else [say("That is not enough to tell them apart.")]
    return " ".join([said, *sure, *others])


def votes_view(counted: Votes, say: Words = ENGLISH) -> Markup:
    """Returns the sentence with the interval drawn above it."""
    return tag("div", interval_plot(counted, say) or [], tag("p", votes_line(counted, say)))


def interval_plot(counted: Votes, say: Words = ENGLISH) -> Markup | None:
    """Draws the share for the later release on a scale from 0 to 100 %; None when nobody preferred one."""
    if counted.share_b is None or counted.low is None or counted.high is None:
        return None
    return _interval(counted.share_b, counted.low, counted.high, votes_line(counted, say))


def many_rows(compared: ManyCompared, say: Words = ENGLISH) -> list[list[str]]:
    """Returns a row for each query that was asked."""
    rows = []
    for one in compared.results:
        change = one.change
        if change is None:
            rows.append([_short(one.query), say.said(str(one.error)), *["–"] * 6])
            continue
        rows.append(
            [
                one.query,
                change.read_a,
                change.read_b,
                f"{100 * change.overlap:.0f} %",
                say("the same") if change.same_first else say("another"),
                f"{change.moved:.1f}",
                f"{1000 * change.seconds_a:.0f}",
                f"{1000 * change.seconds_b:.0f}",
            ]
        )
    return rows


def many_line(compared: ManyCompared, *, only_changed: bool, say: Words = ENGLISH) -> str:
    """Says how many queries were asked, and how much the answers have in common."""
    if compared.overlap is None:
        return say.said(NO_ANSWER if compared.results else NO_QUERIES)
    if only_changed and not compared.results:
        return say(
            "No answer changed: both releases answer all {queries} held-out captions and canaries alike.",
            queries=compared.queries,
        )
    share = f"{100 * compared.overlap:.0f}"
    if only_changed:
        most = say(
            "**The {count} answers that changed most** of {all} held-out captions and canaries",
            count=len(compared.results),
            all=compared.queries,
        )
        return f"{most} · {say('{share} % of the pictures in common on average of all', share=share)}"
    asked = say("1 query") if compared.queries == 1 else say("{count} queries", count=compared.queries)
    parts = [f"**{asked}**", say("{share} % of the pictures in common on average", share=share)]
    refused = sum(one.change is None for one in compared.results)
    if refused:
        parts.append(say("{count} refused", count=refused))
    return " · ".join(parts)


def _interval(share: float, low: float, high: float, said: str) -> Markup:
    """Draws a share with its interval on a scale from 0 to 100 %, with the middle marked."""

    def at(value: float) -> float:
        return _EDGE + value / 100 * (_WIDTH - 2 * _EDGE)

    scale = [
        tag("line", x1=at(0), x2=at(100), y1=16, y2=16, class_="axis"),
        tag("line", x1=at(50), x2=at(50), y1=6, y2=26, class_="axis dashed"),
        *(
            tag("text", f"{mark} %", x=at(mark), y=40, class_="label", text_anchor=anchor)
            for mark, anchor in ((0, "start"), (50, "middle"), (100, "end"))
        ),
    ]
    found = [
        tag("line", x1=at(low), x2=at(high), y1=16, y2=16, class_="interval"),
        tag("circle", cx=at(share), cy=16, r=6, class_="point"),
    ]
    drawing = (tag("title", said), *scale, *found)
    return tag("svg", *drawing, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", class_="plot", width=_WIDTH)


def _short(query: str) -> str:
    return query if len(query) <= _LONGEST_REFUSED else f"{query[:_LONGEST_REFUSED]}…"


def _milliseconds(answer: SearchAnswer) -> str:
    return f"{1000 * (answer.timing.encode + answer.timing.index):.0f}"
