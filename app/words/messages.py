"""What people read in a terminal: errors as sentences, reports and tables.

Everything from outside (captions, file names, labels) passes through `plain`, so that nothing in it is taken
for markup or steers the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.sentence import Sentence, joined, phrase
from model_updates.recalls import LABELS, TEXT_RECALLS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from app.desk.slices import SliceSummary
    from ingest.records import JobRecord

# Wide enough for a table when nobody's window says how wide it is.
_WIDE = 160
_ID_SHOWN = 12
_STARTED_BY_PYTHON = str(Path("perennial", "__main__.py"))


def command() -> str:
    """Returns what people type here: the command's name, or how Python is told if it was started as a module."""
    return "python -m perennial" if sys.argv[0].endswith(_STARTED_BY_PYTHON) else "perennial"


def plain(text: object) -> str:
    """Returns a text without line breaks, escape sequences or other characters that steer a terminal.

    The commands that a sentence names are named as they are typed here.
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return shown.replace("`perennial ", f"`{command()} ")


def console(*, stderr: bool = False) -> Console:
    """Returns where to write; wide when it is a file or a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(
        stderr=stderr, width=width, highlight=False, emoji=False, markup=False, soft_wrap=width is not None
    )


Move = Callable[[str, str, float | None], None]


@contextmanager
def progress_bar(*, is_quiet: bool = False) -> Iterator[Move]:
    """Shows work going on, on standard error: a live line on a terminal, a line per stage elsewhere.

    Yields a function of stage, message and share done (None: unknown); a quiet one shows nothing.
    """
    out = console(stderr=True)
    if is_quiet or not out.is_terminal:
        said: set[str] = set()

        def tell(stage: str, message: str, fraction: float | None) -> None:
            if not is_quiet and stage not in said:
                said.add(stage)
                out.print(f"{stage}: {plain(message)}")

        yield tell
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[stage]:<8}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("starting", total=None, stage="")

        def move(stage: str, message: str, fraction: float | None) -> None:
            # Without a total the bar pulses.
            total = None if fraction is None else 1.0
            progress.update(
                task, stage=stage, description=plain(message), completed=fraction or 0.0, total=total
            )

        yield move


def duration(seconds: float) -> str:
    """Returns seconds as people say them: "8 s", "3 min", "1 h 20 min"."""
    if seconds < 1:
        return phrase("under a second")
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return phrase("{count} min", count=minutes)
    return phrase("{count} h {minutes} min", count=minutes // 60, minutes=minutes % 60)


def paced(message: str, details: Mapping[str, Any] | None) -> Sentence:
    """Returns what a stage says with its rate and the time left, where they are told and not said already."""
    found = details or {}
    parts: list[str] = [message]
    if "pairs_per_second" not in found:
        if found.get("rate"):
            rate = float(found["rate"])
            parts.append(phrase("{rate} a second", rate=f"{rate:.0f}" if rate >= 10 else f"{rate:.1f}"))
        if found.get("seconds_left") is not None and found.get("fraction", 0.0) != 1.0:
            parts.append(phrase("{time} left", time=duration(float(found["seconds_left"]))))
    return joined(parts, " · ")


def as_json(document: object) -> str:
    """Returns JSON for machines; text stays readable."""
    return json.dumps(document, ensure_ascii=False, indent=2, default=str)


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> Table:
    """Builds a table; numbers go right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    built = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, name in enumerate(header):
        is_number = bool(listed) and all(_is_number(row[position]) for row in listed)
        built.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in listed:
        built.add_row(*(Text(plain(_cell(value))) for value in row))
    return built


def moved_table(a: str, b: str, moves: Iterable[tuple[str, int | None, int | None, str]]) -> Table:
    """Builds the table of how pictures moved between two releases.

    A move is a picture, its rank in a, its rank in b and a caption.
    """
    rows = [(image[:_ID_SHOWN], old, new, _step(old, new), caption) for image, old, new, caption in moves]
    return table(("picture", f"rank in {a}", f"rank in {b}", "moved", "caption"), rows)


def _step(before: int | None, after: int | None) -> str:
    if before is None:
        return "new"
    if after is None:
        return "gone"
    return "=" if before == after else f"{before - after:+d}"


def grid(rows: Iterable[Sequence[str]]) -> Table:
    """Builds columns without lines, so that long sentences keep their indentation."""
    from rich.table import Table
    from rich.text import Text

    built = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        built.add_row(*map(Text, row))
    return built


def intake(report: Mapping[str, Any]) -> list[str]:
    """Says what became of an upload."""
    counts = {
        "new pictures": report["new_images"],
        "new pairs": report["new_pairs"],
        "known pairs": report["known_pairs"],
        "held": report["held"],
        "rejected": report["rejected"],
    }
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "nothing new"
    lines = [f"Chunk {report['chunk_id']} ({report['name']}): {told}."]
    for key, counts in report["per_slice"].items():
        lines.append(f"  {key}: " + ", ".join(f"{count} {split}" for split, count in counts.items() if count))
    if report["english_share"] is not None:
        lines.append(
            f"  {100 * report['english_share']:.0f} % of the other-language pairs have an English caption."
        )
    lines += [f"  Note: {note}" for note in report["notes"]]
    examples: dict[str, str] = {}
    for row in report["rows"]:
        if row["outcome"] != "accepted":
            examples.setdefault(row["code"], f"{row['where']}: {row['sentence']}")
    for code, example in examples.items():
        lines.append(f"  {report['reasons'][code]} x {code}, such as {example}")
    return [plain(line) if not line.startswith("  ") else "  " + plain(line[2:]) for line in lines]


def outcome(job: JobRecord) -> list[str]:
    """Says how a job ended."""
    if job.kind == "update":
        return _update_outcome(job.id, job.state, job.result)
    if job.kind == "removal":
        return _removal_outcome(job)
    lines = intake(job.result["report"]) if "report" in job.result else []
    return [*lines, f"{job.id}: {job.result['images_embedded']} pictures embedded."]


def _update_outcome(job_id: str, state: str, result: Mapping[str, Any]) -> list[str]:
    lines = [*_changed(result), f"{job_id}: {result['sentence']}"]
    if result.get("release"):
        live = f"live since commit {result['commit']}" if result.get("commit") else "not live"
        lines.append(f"Release {result['release']} ({live}), version {result['version']}.")
    lines.append(f"It took {result['seconds']:.0f} s; {result['images_embedded']} pictures embedded again.")
    if state == "review":
        lines.append(
            f"Make it live all the same? `perennial gate {result['release']}` shows every figure; "
            f"`perennial promote {result['release']} --force --why REASON` does it."
        )
    if state == "succeeded" and result.get("release") and not result.get("commit"):
        lines.append(f"Make it live? `perennial promote {result['release']}` does it.")
    if state == "rejected":
        lines.append(f"`perennial gate {job_id}` shows the whole report and what may help.")
    return [plain(line) for line in lines]


def _changed(result: Mapping[str, Any]) -> list[str]:
    """Returns what an update that was judged changed, in a line."""
    from app.words.verdict import verdict_sentences
    from model_updates.gate.report import GateReport

    gate = result.get("gate")
    return [" ".join(verdict_sentences(GateReport.from_json(gate)))] if gate else []


def _removal_outcome(job: JobRecord) -> list[str]:
    lines = [f"{job.id}: {job.result['sentence']}"]
    if job.result["commit"]:
        lines.append(f"Release {job.result['release']} is live since commit {job.result['commit']}.")
    lines.append(f"{job.result['images_embedded']} pictures embedded again.")
    if job.state == "review":
        name = job.result["release"]
        lines.append(
            f"`perennial gate {name}` shows why; `perennial promote {name} --force --why REASON` accepts it."
        )
    return [plain(line) for line in lines]


def slices_table(slices: Iterable[SliceSummary], *, title: str | None = None) -> Table:
    """Shows the recall per slice."""
    rows = [
        (
            part.language,
            part.domain,
            part.view,
            part.images,
            part.captions,
            *(round(part.recalls[name], 1) for name in TEXT_RECALLS),
        )
        for part in slices
    ]
    return table(("language", "domain", "view", "things", "captions", *LABELS.values()), rows, title=title)


def size(count: float) -> str:
    """Returns a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value.replace(".", "", 1).lstrip("-").isdigit()
    return value is None or isinstance(value, (int, float))


def left_out_line(pictures: int, job: JobRecord | None) -> str:
    """Says that pictures are being added to a release that went live again; empty when it lacks none."""
    if job is None:
        return ""
    return phrase(
        "{count} pictures were taken in after it; job {job} is making them searchable.",
        count=pictures,
        job=job.id,
    )
