"""The words of the Compare tab."""

from __future__ import annotations

from app.desk.hits import ManyCompared
from app.desk.opinions import Votes
from app.query.snapshot import Answer, CompareAnswer
from app.ui.drawn import Markup, tag
from app.ui.grid import Picture
from app.ui.wording import Captions, escaped, overlap_line, thumbnail_url
from app.ui.words import ENGLISH, Words
from ingest.sentence import phrase

HINT = phrase(
    "## Ask two releases the same\n\n"
    "Choose a release on each side and type a query. On the right, ▲2 means two places up, ▼1 one down, "
    "*new* that the left release did not find the picture. A blind vote hides which release is on which side until "
    "you have said which answer is better."
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


def status_line(compared: CompareAnswer, say: Words = ENGLISH) -> str:
    """Returns overlap, readings, and how long either release took."""
    times = f"A {_milliseconds(compared.a)} ms · B {_milliseconds(compared.b)} ms"
    return f"{overlap_line(compared, say)} · {times}"


def blind_pictures(answer: Answer, captions: Captions, base: str, say: Words = ENGLISH) -> list[Picture]:
    """Returns a grid whose notes give nothing away but places."""
    return [
        Picture(
            thumbnail_url(base, hit.image_id),
            captions.get(hit.image_id) or say("A picture without a caption"),
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
        nobody = say("Nobody has preferred one of {a} and {b} yet.", a=counted.a, b=counted.b)
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
    sure = [] if is_sure else [say("That does not yet tell them apart.")]
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
