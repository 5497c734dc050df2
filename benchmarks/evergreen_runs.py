"""Parts (d) and (e): what evergreen, the default, does to what is known when styles, words and photographs come."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from real_input_data import LANGUAGES, emoji_rows, emoji_splits, keyword_rows, photo_pictures, photo_rows
from real_input_runs import (
    DOMAIN,
    HELD_OUT,
    TRAINED,
    Bench,
    Values,
    add,
    as_hits,
    emoji_template,
    live_encoder,
    names_hits,
    names_slice,
    run_update,
    teach,
)

from app.desk.jobs import UpdateRequest
from app.home.workspace import Workspace
from app.learning import adding, going_live, lessons
from app.learning.yardstick import held_out
from index.generation import Generation
from ingest.images import decode
from ingest.intake import IntakeOptions
from ingest.pair import SliceKey
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.features import image_features, text_features
from model_updates.measurement import measure
from model_updates.routes import BASE
from model_updates.search_encoder import unit

STYLES = ("noto", "fluent3d", "line")
INK, INK_PICTURES = "ink", 1000
COMPARED = 200  # of the texts of a language, embedded anew by both encoders
PHOTOS = 200
LEARNED = ("en", *LANGUAGES)


def run_evergreen(bench: Bench, seed: int) -> Values:
    """Teaches seven languages, the style line, ink scenes, and more English of noto; checks every route after each."""
    settings = bench.settings(f"evergreen-{seed}")
    learned = languages_home(bench, seed)
    shutil.rmtree(settings.home, ignore_errors=True)
    shutil.copytree(learned, settings.home)
    splits = emoji_splits(bench.data, bench.limit)
    with Workspace.open(settings) as workspace:
        base = {
            kind: names_hits(workspace, live_encoder(workspace), LEARNED, kind)
            for kind in (TRAINED, HELD_OUT)
        }
        found: Values = {"languages": base, "query_ms_before": query_ms(live_encoder(workspace)), "steps": {}}
        chunk = add(bench, workspace, "line", emoji_rows(bench.data, splits, "en", ("line",)))
        before = {"mixed": mixed_hits(workspace, live_encoder(workspace)), **line_hits(workspace)}
        step = evolve(bench, workspace, chunk, seed, moved=("image", "line"))
        step |= {
            "before": before,
            "after": {"mixed": mixed_hits(workspace, live_encoder(workspace)), **line_hits(workspace)},
        }
        step["routes"] = router_shares(bench, workspace, ("line",))
        found["steps"]["line"] = step

        chunk = add_ink(bench, workspace)
        before = own_hits(workspace, INK)
        step = evolve(bench, workspace, chunk, seed, moved=("image", INK))
        step |= {
            "before": before,
            "after": own_hits(workspace, INK),
            "routes": router_shares(bench, workspace, ("line", INK)),
        }
        step["mixed"] = mixed_hits(workspace, live_encoder(workspace))
        found["steps"][INK] = step

        # Before the keywords come: they are captions of noto, too, and no names.
        encoder = live_encoder(workspace)
        found["languages_after"] = {kind: names_hits(workspace, encoder, LEARNED, kind) for kind in base}
        found["mixed_after"] = mixed_hits(workspace, encoder)

        chunk = add(bench, workspace, "keywords", keyword_rows(bench.data, splits, DOMAIN))
        before = keyword_hits(workspace, chunk)
        step = evolve(bench, workspace, chunk, seed, moved=("text", "en"))
        step |= {"before": before, "after": keyword_hits(workspace, chunk)}
        found["steps"]["words"] = step
        encoder = live_encoder(workspace)
        found["query_ms_after"] = query_ms(encoder)
        found["adapter_bytes"] = {
            insert.owner.name or insert.kind: sum(
                v.numel() * v.element_size() for v in insert.state_dict().values()
            )
            for insert in encoder.inserts
        }
    shutil.rmtree(settings.home)
    return found


def run_evergreen_photos(bench: Bench, seed: int) -> Values:
    """Teaches photographs with English captions as a domain of the embedded encoder, after noto."""
    settings = bench.settings(f"evergreen-photos-{seed}")
    shutil.rmtree(settings.home, ignore_errors=True)
    shutil.copytree(emoji_template(bench), settings.home)
    with Workspace.open(settings) as workspace:
        chunk = add(bench, workspace, "photo", photo_rows(bench.data, "en", photos=bench.photos))
        before = own_hits(workspace, "photo")
        step = evolve(bench, workspace, chunk, seed, moved=("image", "photo"))
        step |= {"before": before, "after": own_hits(workspace, "photo")}
    shutil.rmtree(settings.home)
    return {"step": step, "photos": bench.photos}


def run_seven_languages(bench: Bench, seed: int) -> Values:
    """Teaches the seven languages by the default under the default gate, which alone promotes; returns its verdicts."""
    settings = bench.settings(f"default-languages-{seed}", permissive=False)
    shutil.rmtree(settings.home, ignore_errors=True)
    shutil.copytree(emoji_template(bench), settings.home)
    verdicts = {}
    with Workspace.open(settings) as workspace:
        chunks = {chunk.name: chunk.id for chunk in workspace.catalog.chunks()}
        for language in LANGUAGES:
            outcome = run_update(workspace, UpdateRequest(chunk=chunks[language], seed=seed, by="benchmark"))
            verdicts[language] = {"verdict": outcome.verdict, "reason": outcome.sentence}
            bench.say(f"default seed {seed} {language}: {outcome.verdict}; {outcome.sentence}")
    shutil.rmtree(settings.home)
    return {"verdicts": verdicts}


def languages_home(bench: Bench, seed: int) -> Path:
    """Returns a home that has learned the seven languages by the default strategy, made once a seed."""
    settings = bench.settings(f"evergreen-languages-{seed}")
    done = settings.home.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(settings.home, ignore_errors=True)
        shutil.copytree(emoji_template(bench), settings.home)
        with Workspace.open(settings) as workspace:
            chunks = {chunk.name: chunk.id for chunk in workspace.catalog.chunks()}
            for language in LANGUAGES:
                outcome = run_update(
                    workspace, UpdateRequest(chunk=chunks[language], seed=seed, by="benchmark")
                )
                if outcome.release is not None and outcome.commit is None:
                    going_live.promote(
                        workspace, outcome.release, why="benchmark", by="benchmark", force=True
                    )
                bench.say(f"evergreen seed {seed} {language}: {outcome.strategy}, {outcome.seconds} s")
        done.touch()
    return settings.home


def evolve(bench: Bench, workspace: Workspace, chunk: str, seed: int, *, moved: tuple[str, str]) -> Values:
    """Teaches a chunk by the default, judges it by today's gate, and compares every other route to the bit.

    Args:
        bench: for progress.
        workspace: of the home.
        chunk: what is taught.
        seed: of the update.
        moved: tower and route that may change.
    """
    _, record = going_live.live_release(workspace)
    old, generation = live_encoder(workspace), workspace.open_generation(record.generation)
    name, why = lessons.choose_strategy(workspace, chunk)
    request = UpdateRequest(chunk=chunk, seed=seed, by="benchmark")
    step = teach(workspace, request, list(record.manifest.languages))
    _, record = going_live.live_release(workspace)
    step |= {"default": name, "why": why}
    step |= same_routes(workspace, old, live_encoder(workspace), moved)
    step |= same_vectors(workspace, generation, workspace.open_generation(record.generation), moved)
    bench.say(
        f"evergreen seed {seed} {chunk}: {step['verdict']} in {step['seconds']} s, {step['images_embedded']} embedded, "
        f"routes that moved: {step['moved_routes'] or 'none'}"
    )
    return step


def same_routes(workspace: Workspace, old: Encoder, new: Encoder, moved: tuple[str, str]) -> Values:
    """Compares fingerprints of all other routes, and vectors that both encoders make anew."""
    catalog = workspace.catalog
    wrong = []
    compared = {"texts": 0, "pictures": 0}
    for language in LEARNED:
        texts = sorted({pair.text for pair in catalog.pairs(language=language)})[::7][:COMPARED]
        if moved == ("text", language):  # texts without a new word; earlier captions have none
            texts = [
                text for text in texts if old.tokenize([text], language).equal(new.tokenize([text], language))
            ]
        elif old.text_fingerprint(language) != new.text_fingerprint(language):
            wrong.append(f"text {language}")
        if not np.array_equal(old.text_features(texts, language), new.text_features(texts, language)):
            wrong.append(f"vectors of {language}")
        compared["texts"] += len(texts)
    for domain in catalog.domains():
        if moved == ("image", domain):
            continue
        if old.image_fingerprint(domain) != new.image_fingerprint(domain):
            wrong.append(f"image {domain}")
        pictures = [workspace.load_image(i) for i in catalog.test_images(domain)[:COMPARED]]
        if not np.array_equal(old.image_features(pictures, domain), new.image_features(pictures, domain)):
            wrong.append(f"vectors of {domain}")
        compared["pictures"] += len(pictures)
    if old.image_fingerprint(BASE) != new.image_fingerprint(BASE):
        wrong.append("image base")
    return {"moved_routes": wrong, "compared": compared}


def same_vectors(workspace: Workspace, old: Generation, new: Generation, moved: tuple[str, str]) -> Values:
    """Compares every other picture's vector in the two indexes."""
    records = workspace.catalog.images(list(old.ids))
    others = [i for i in old.ids if moved != ("image", records[i].domain)]
    same = np.array_equal(old.vectors(others), new.vectors(others))
    return {"index_compared": len(others), "index_identical": bool(same)}


# ------------------------------------------------------------------------------------------------- measuring


def line_hits(workspace: Workspace) -> Values:
    """Returns hits of the style's English names in its own gallery."""
    encoder = live_encoder(workspace)
    return {
        kind: names_hits(workspace, encoder, ["en"], kind, domain="line")["en"]
        for kind in (TRAINED, HELD_OUT)
    }


def mixed_hits(workspace: Workspace, encoder: Encoder) -> dict[str, Values]:
    """Returns which English names find their picture of each style among all styles' pictures."""
    return {kind: _mixed(workspace, encoder, kind) for kind in (TRAINED, HELD_OUT)}


def _mixed(workspace: Workspace, encoder: Encoder, kind: str) -> Values:
    slices = {style: names_slice(workspace, "en", kind, style) for style in STYLES}
    gallery = [i for style in STYLES for i in slices[style].gallery]
    place = {image_id: n for n, image_id in enumerate(gallery)}
    vectors = unit(
        image_features(
            encoder,
            gallery,
            workspace.load_image,
            workspace.features,
            routes={i: encoder.image_route(style) for style in STYLES for i in slices[style].gallery},
        )
    )
    found: Values = {}
    for style in STYLES:
        captions = slices[style].captions
        texts = unit(text_features(encoder, [text for _, text in captions], "en", workspace.features))
        own = np.asarray([place[image_id] for image_id, _ in captions], dtype=np.int64)
        found[style] = as_hits(caption_ranks(texts @ vectors.T, own, tolerance=1e-6))
    return found


def own_hits(workspace: Workspace, domain: str) -> Values:
    """Returns hits of a domain's held-out English captions among its held-out pictures."""
    chunks = [chunk.id for chunk in workspace.catalog.chunks()]
    slices = [held for held in held_out(workspace, {"en"}, chunks) if held.key == SliceKey("en", domain)]
    results = measure(live_encoder(workspace), slices, workspace.load_image, workspace.features)
    return as_hits(results[SliceKey("en", domain)].text_ranks)


def keyword_hits(workspace: Workspace, chunk: str) -> Values:
    """Returns hits of a chunk's captions, taught and held out, among the pictures of noto of their kind."""
    encoder, found = live_encoder(workspace), {}
    for kind in (TRAINED, HELD_OUT):
        captions = names_slice(workspace, "en", kind)
        ours = {(pair.image_id, pair.text) for pair in workspace.catalog.pairs(chunk=chunk)}
        chosen = tuple(caption for caption in captions.captions if caption in ours)
        held = type(captions)(captions.key, captions.gallery, chosen)
        results = measure(encoder, [held], workspace.load_image, workspace.features)
        found[kind] = as_hits(results[captions.key].text_ranks)
    return found


def router_shares(bench: Bench, workspace: Workspace, routes: Sequence[str]) -> dict[str, dict[str, float]]:
    """Returns the share in percent of held-out pictures, and of photographs, that take each route unasked."""
    encoder = live_encoder(workspace)
    shown = {
        domain: [workspace.load_image(i) for i in workspace.catalog.test_images(domain)]
        for domain in workspace.catalog.domains()
    }
    shown["photographs"] = [decode(path.read_bytes()).image for path in photo_pictures(bench.data, PHOTOS)]
    shares = {}
    for domain, pictures in shown.items():
        guessed = encoder.guess_routes(encoder.trunk_features(pictures))
        shares[domain] = {route: 100.0 * guessed.count(route) / len(guessed) for route in routes}
    return shares


def query_ms(encoder: Encoder) -> float:
    """Returns the median time of one text query's vector in milliseconds."""
    taken = []
    for n in range(200):
        started = time.perf_counter()
        encoder.encode_texts([f"a red boat {n}"], "en")
        taken.append(time.perf_counter() - started)
    return float(np.median(taken) * 1000)


def add_ink(bench: Bench, workspace: Workspace) -> str:
    """Uploads drawn ink scenes with English captions; the same ones for every seed."""
    everything = list(scenes.all_scenes())
    count = INK_PICTURES if bench.limit is None else min(INK_PICTURES, 3 * bench.limit)
    chosen = np.random.default_rng(0).permutation(len(everything))[:count]
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        source = Path(folder) / "ink.zip"
        write_chunk(source, scenes=[(everything[int(n)], INK, 1) for n in chosen], languages=["en"])
        report = adding.add_chunk(workspace, source, IntakeOptions(name=INK), by="benchmark").report
    bench.say(f"chunk {INK}: {report.new_pairs} pairs, {report.new_images} pictures")
    return report.chunk_id
