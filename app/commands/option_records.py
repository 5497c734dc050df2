"""The options of verbs that have many, as one record each: written once for a home and for a server.

A verb takes the record; `with_options` makes its fields the verb's options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, get_type_hints

from app.commands.options import (
    AskedRelease,
    CancelOption,
    CaptionedFilter,
    CaptionFilter,
    CaptionsInOption,
    CaptionsOption,
    ChunkFilter,
    CsvOption,
    CursorOption,
    DomainFilter,
    DryRunOption,
    ExplainOption,
    FoldOption,
    GalleryOption,
    HitsOption,
    LanguageOption,
    LeastOption,
    LikeOption,
    MappingOption,
    ModeOption,
    NameOption,
    OffsetOption,
    PinOption,
    PromoteOption,
    QueryArgument,
    ReportOption,
    RerankOption,
    ResumeOption,
    SeedOption,
    SinceFilter,
    SourceArgument,
    StatedDomain,
    StatedLanguage,
    StrategyOption,
    StrategyOptions,
    TaughtChunk,
    TaughtSource,
    TranslationOption,
    UntilFilter,
    WhyOption,
    ZipOption,
)
from app.commands.terminal import pairs_of, require_place
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.hits import SearchRequest


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """What `search` is asked."""

    query: QueryArgument = None
    language: LanguageOption = "auto"
    translation: TranslationOption = ""
    k: HitsOption = None
    like: LikeOption = None
    mode: ModeOption = "vectors"
    domain: DomainFilter = None
    captioned: CaptionedFilter = None
    chunk: ChunkFilter = None
    since: SinceFilter = None
    until: UntilFilter = None
    caption: CaptionFilter = ""
    fold: FoldOption = False
    page: CursorOption = ""
    offset: OffsetOption = 0
    least: LeastOption = None
    captions: CaptionsOption = 0
    captions_in: CaptionsInOption = None
    explain: ExplainOption = False
    release: AskedRelease = None
    pin: PinOption = False
    rerank: RerankOption = False
    csv: CsvOption = None
    zip: ZipOption = None

    @property
    def text(self) -> str:
        """The query; of words that a shell has split, a lone + or - is an operator as in one argument."""
        return " ".join(self.query or [])

    @property
    def items(self) -> list[str]:
        """The pictures of the gallery to be like."""
        return [one.removeprefix("#").lower() for one in self.like or []]

    def request(self, pictures: dict[str, str]) -> SearchRequest:
        """Returns what the desk is asked; `pictures` are the files that the query names, in base64.

        Raises:
            UsageProblem: an option has no value that it can have.
        """
        from pydantic import ValidationError

        from app.desk.hits import SearchRequest
        from app.desk.troubles import invalid_sentence

        said = {
            "text": self.text or None,
            "images": pictures,
            "items": self.items,
            "language": self.language,
            "translation": self.translation,
            "k": self.k,
            "mode": _one_of(self.mode, "--mode", "vectors", "captions", "hybrid"),
            "domains": self.domain,
            "languages": self.captioned,
            "chunks": self.chunk,
            "since": self.since.date() if self.since else None,
            "until": self.until.date() if self.until else None,
            "caption": self.caption,
            "dedup": self.fold,
            "cursor": self.page,
            "offset": self.offset,
            "min_relevance": self.least
            and _one_of(self.least, "--min-relevance", "strong", "weak", "nothing"),
            "captions": self.captions,
            "caption_languages": self.captions_in,
            "explain": self.explain,
            "release": self.release,
            "rerank": self.rerank,
        }
        try:
            return SearchRequest.model_validate(said)
        except ValidationError as error:
            raise UsageProblem(invalid_sentence(error.errors())) from error

    def check(self) -> None:
        """Refuses files that could not be written, before anything is searched."""
        for option, file in (("--csv", self.csv), ("--zip", self.zip)):
            if file is not None:
                require_place(file, option)


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """What `ingest` takes in, and how it is to be read."""

    source: SourceArgument
    language: StatedLanguage = None
    domain: StatedDomain = None
    mapping: MappingOption = None
    name: NameOption = None
    gallery: GalleryOption = True
    report: ReportOption = None

    def columns(self) -> dict[str, str]:
        """Returns a table's columns by ours; refuses what cannot work before anything is taken in."""
        if self.report is not None:
            require_place(self.report, "--report")
        return pairs_of(self.mapping, "--map", "text=caption")


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """What `update` learns from, and how."""

    source: TaughtSource = None
    chunk: TaughtChunk = None
    language: StatedLanguage = None
    domain: StatedDomain = None
    strategy: StrategyOption = None
    option: StrategyOptions = None
    seed: SeedOption = 0
    promote: PromoteOption = True
    dry_run: DryRunOption = False
    why: WhyOption = ""
    resume: ResumeOption = None
    cancel: CancelOption = None


def _one_of(name: str, option: str, *choices: str) -> str:
    if name not in choices:
        raise UsageProblem(f"{option} is one of {', '.join(choices)}; found {name!r}.")
    return name


def with_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Makes the fields of the record that a verb takes its options on the command line."""
    hints = get_type_hints(verb, include_extras=True)
    taken = next(name for name, hint in hints.items() if is_dataclass(hint))
    record: Any = hints[taken]
    of_record = get_type_hints(record, include_extras=True)
    names = [field.name for field in fields(record)]
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name == taken:
            parameters += [_parameter(one.name, one.default, of_record[one.name]) for one in fields(record)]
        else:
            parameters.append(_parameter(parameter.name, parameter.default, hints[parameter.name]))

    @wraps(verb)
    def command(**given: Any) -> None:
        asked = record(**{name: given.pop(name) for name in names})
        verb(**{taken: asked}, **given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _parameter(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=annotation)
