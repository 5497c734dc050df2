"""The words of the Compare tab."""

from __future__ import annotations

from app.desk.hits import ManyCompared
from app.desk.opinions import Votes
from app.query.snapshot import Answer, CompareAnswer
from app.ui.drawn import Markup, tag
from app.ui.grid import Picture
from app.ui.wording import Captions, escaped, overlap_line, thumbnail_url
from app.ui.words import ENGLISH, Words

HINT = (
    "## Ask two releases the same\n\n"
    "Choose a release on each side and type a query. On the right, ▲2 means two places up, ▼1 one down, "
    "*new* that the left release did not find the picture. A blind vote hides which release is on which side until "
    "you have said which answer is better."
)
CHOOSE = "Choose a release on each side."
SAME = "Both sides are the same release; a vote is between two. Choose another one."
BLIND = "**Which answer is better?** The names are shown when you have voted."
CHOICES = {"a": "A is better", "b": "B is better", "tie": "A tie", "both_bad": "Both are bad"}
NO_ROUND = "There is nothing to vote on yet. Type a query and choose “Blind vote”."
MANY_HEADERS = ["query", "read in A", "read in B", "in common", "first picture", "moved by", "A ms", "B ms"]
MANY_HINT = "One query a line, at most 64. Select a row of the table to see both answers above."
NO_ANSWER = "No query could be answered; the table says why."
NO_QUERIES = (
    "There are no held-out captions or canaries to ask. Accept a chunk as measuring material, or type "
    "queries above."
)
NOTHING_CHANGED = (
    "No answer changed: both releases answer all {queries} held-out captions and canaries alike."
)

_WIDTH, _HEIGHT, _EDGE = 360, 44, 12
_LONGEST_REFUSED = 60  # characters; most are refused for their length


def status_line(compared: CompareAnswer) -> str:
    """Returns overlap, readings, and how long either release took."""
    return f"{overlap_line(compared)} · A {_milliseconds(compared.a)} ms · B {_milliseconds(compared.b)} ms"


def blind_pictures(answer: Answer, captions: Captions, base: str) -> list[Picture]:
    """Returns a grid whose notes give nothing away but places."""
    return [
        Picture(
            thumbnail_url(base, hit.image_id),
            captions.get(hit.image_id, "A picture without a caption"),
            str(hit.rank),
        )
        for hit in answer.hits
    ]


def voted_line(choice: str, a: str, b: str) -> str:
    """Says what a vote was for, once the names may be known.

    Args:
        choice: of `CHOICES`.
        a: the release that was shown as A.
        b: the one that was shown as B.
    """
    said = {
        "a": f"You preferred **{a}**, which was A; B was {b}.",
        "b": f"You preferred **{b}**, which was B; A was {a}.",
        "tie": f"A tie between {a} (A) and {b} (B).",
        "both_bad": f"Both are bad: {a} (A) and {b} (B).",
    }
    return said[choice]


def votes_line(counted: Votes) -> str:
    """Returns the votes between two releases in a sentence."""
    decided = counted.for_a + counted.for_b
    more = [(counted.ties, "tie", "ties"), (counted.both_bad, "both bad", "both bad")]
    rest = ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in more if n)
    others = f" Besides: {rest}." if rest else ""
    if counted.share_b is None or counted.low is None or counted.high is None:
        return f"Nobody has preferred one of {counted.a} and {counted.b} yet.{others}"
    sure = "" if counted.low > 50 or counted.high < 50 else " That does not yet tell them apart."
    return (
        f"{counted.for_b} of {decided} votes preferred {counted.b} to {counted.a}: {counted.share_b:.0f} %, "
        f"95 % interval {counted.low:.0f} to {counted.high:.0f} %.{sure}{others}"
    )


def votes_view(counted: Votes, say: Words = ENGLISH) -> Markup:
    """Returns the sentence with the interval drawn above it."""
    return tag("div", interval_plot(counted, say) or [], tag("p", say.said(votes_line(counted))))


def interval_plot(counted: Votes, say: Words = ENGLISH) -> Markup | None:
    """Draws the share for the later release on a scale from 0 to 100 %; None when nobody preferred one."""
    if counted.share_b is None or counted.low is None or counted.high is None:
        return None
    return _interval(counted.share_b, counted.low, counted.high, say.said(votes_line(counted)))


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
                say.said("the same" if change.same_first else "another"),
                f"{change.moved:.1f}",
                f"{1000 * change.seconds_a:.0f}",
                f"{1000 * change.seconds_b:.0f}",
            ]
        )
    return rows


def many_line(compared: ManyCompared, *, only_changed: bool) -> str:
    """Says how many queries were asked, and how much the answers have in common."""
    if compared.overlap is None:
        return NO_ANSWER if compared.results else NO_QUERIES
    if only_changed and not compared.results:
        return NOTHING_CHANGED.format(queries=compared.queries)
    common = f"{100 * compared.overlap:.0f} % of the pictures in common on average"
    if only_changed:
        of = f"of {compared.queries} held-out captions and canaries"
        return f"**The {len(compared.results)} answers that changed most** {of} · {common} of all"
    refused = sum(one.change is None for one in compared.results)
    asked = "1 query" if compared.queries == 1 else f"{compared.queries} queries"
    return f"**{asked}** · {common}" + (f" · {refused} refused" if refused else "")


def side_title(letter: str, release: str = "") -> str:
    """Returns what stands above one side."""
    return f"## {letter} · {escaped(release)}" if release else f"## {letter}"


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


def _milliseconds(answer: Answer) -> str:
    return f"{1000 * (answer.encode_seconds + answer.index_seconds):.0f}"
