"""What `benchmarks/peers.py` sets beside one another: each program installed, filled with vectors, asked and added to.

All have one ViT-B/32 at 256 pixels, with random weights, and the same vectors. rclip reads that shape alone; speed does
not depend on what weights know. Each program runs in a process of its own, and OpenMP has one thread in it: several
wait for one another on a machine that has other work. rclip's graphs have as many threads as there are cores.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import psutil
from peers_bare import DIM, HITS, asked, queries
from speed_timing import ROOT, Took, run

ARCHITECTURE = "ViT-B-32-256"
CLIENTS = (1, 8, 64)
FILLED = "filled"  # the folder with what the programs keep
_RCLIP_FOLDER = "ViT-B-32-256-datacomp_s34b_b86k"  # where rclip looks for its graphs
_BARE = Path(__file__).with_name("peers_bare.py")
_READY_SECONDS, _AGAIN_SECONDS = 300.0, 0.2
INSTALLED = {
    "rclip": ("rclip==3.3.0", "faiss-cpu==1.15.1", "hnswlib==0.8.0", "usearch==2.26.6"),
    "clip-retrieval": (
        *("numpy<2", "pandas<3", "pyarrow<21", "flask<4", "flask_restful<1", "flask_cors<5", "autofaiss"),
        *("h5py", "fire", "prometheus-client<1", "fsspec", "faiss-cpu", "tqdm", "pillow", "braceexpand"),
    ),
}
# As installed it needs versions that exclude one another.
UNASKED = {"clip-retrieval": ("clip-retrieval==2.45.0", "all_clip==1.3.0")}
# Loads clip-retrieval without what these rows do not run: loaders of other models, a logging service, text models.
_LAUNCH = """
import sys, types
def absent(name, *inside):
    module = sys.modules[name] = types.ModuleType(name)
    for one in inside:
        setattr(module, one, None)
for name, loader in (("hf", "hf"), ("deepsparse", "deepsparse"), ("ja", "japanese"), ("openai", "openai")):
    absent(f"all_clip.{name}_clip", f"load_{loader}" + ("" if name == "deepsparse" else "_clip"))
absent("wandb")
absent("sentence_transformers", "SentenceTransformer")
from clip_retrieval.cli import main
if __name__ == "__main__":
    main()
"""

Load = dict[str, Any]


class Program:
    """One that is measured. What it cannot do stands in `cannot`, by row, with the reason."""

    name = ""
    rows: tuple[str, ...] = ("search", "serve", "take in", "grow")
    cannot: Mapping[str, str] = MappingProxyType({})

    def __init__(self, work: Path) -> None:
        self.work = work
        self.folder = work / FILLED / self.name.replace(" ", "-")
        self.weights, self.model = work / "random.safetensors", work / "model" / _RCLIP_FOLDER

    def fill(self, size: int, vectors: Path) -> None:
        """Puts the vectors of a file into what the program keeps them in."""

    def search(self, size: int, text: str) -> Took:
        """Runs a search in a process of its own."""
        raise NotImplementedError

    def serve(self, size: int, seconds: float) -> Load:
        """Returns `load`, what `asked` says by number of clients, `memory` in MB, and `ready` in processor seconds."""
        raise NotImplementedError

    def add(self, size: int, pictures: Path) -> Took:
        """Takes a folder of pictures in."""
        raise NotImplementedError

    def _python(self, environment: str) -> Path:
        return self.work / "environments" / environment / "bin" / "python"


class Perennial(Program):
    """This project, as its command line runs."""

    name = "Perennial"

    def fill(self, size: int, vectors: Path) -> None:
        """Makes a home whose catalog has pictures with these vectors."""
        from interface_home import make_home

        make_home(
            self.folder / str(size),
            size,
            np.load(vectors, mmap_mode="r"),
            model=ARCHITECTURE,
            pretrained=str(self.weights),
        )

    def search(self, size: int, text: str) -> Took:
        """Runs `perennial search`."""
        return self._run("search", text, "--home", self._home(size), "--json")

    def serve(self, size: int, seconds: float) -> Load:
        """Asks `perennial serve` over REST; pages included."""
        port = free_port()
        words = [sys.executable, "-m", "perennial", "serve", "--home", self._home(size), "--port", port]
        return served(
            words,
            clean() | {"PYTHONPATH": str(ROOT)},
            port,
            "/v1/search",
            lambda text: {"text": text, "k": HITS},
            seconds,
        )

    def add(self, size: int, pictures: Path) -> Took:
        """Runs `perennial add`."""
        return self._run("add", pictures, "--home", self._home(size), "--json")

    def _home(self, size: int) -> Path:
        return self.folder / str(size) / "home"

    def _run(self, *words: object) -> Took:
        return run([sys.executable, "-m", "perennial", *words], env=clean() | {"PYTHONPATH": str(ROOT)})[0]


class Rclip(Program):
    """The command line that people compare with."""

    name = "rclip"
    cannot = MappingProxyType({"serve": "it has no server"})

    def fill(self, size: int, vectors: Path) -> None:
        """Makes its database by its own first run, and puts rows of pictures that are not there into it."""
        data = self.folder / str(size)
        data.mkdir(parents=True)
        for linked in (_RCLIP_FOLDER, "tokenizer"):
            (data / linked).symlink_to(self.model.parent / linked)
        pictures = self._pictures(size)
        pictures.mkdir()
        self.add(size, pictures)
        rows = np.load(vectors, mmap_mode="r")
        with sqlite3.connect(data / "db.sqlite3") as database:
            database.executemany(
                "INSERT INTO images (filepath, modified_at, size, vector, hash) VALUES (?, 0, 1, ?, ?)",
                ((str(pictures / f"{n:07}.jpg"), row.tobytes(), f"{n:064x}") for n, row in enumerate(rows)),
            )

    def search(self, size: int, text: str) -> Took:
        """Runs `rclip --no-indexing`."""
        return self._run(size, self._pictures(size), "--no-indexing", "--top", HITS, text)

    def add(self, size: int, pictures: Path) -> Took:
        """Runs a search in the folder, which takes in what is new there: it has no command for that alone."""
        return self._run(size, pictures, queries().__next__())

    def _pictures(self, size: int) -> Path:
        return self.folder / str(size) / "pictures"

    def _run(self, size: int, where: Path, *words: object) -> Took:
        environment = clean() | {"RCLIP_DATADIR": str(self.folder / str(size))}
        program = self._python("rclip").with_name("rclip")
        return run([program, *words], env=environment, cwd=where, stderr=subprocess.DEVNULL)[0]


class ClipRetrieval(Program):
    """The service that people compare with, with the torch and the open_clip that Perennial has."""

    name = "clip-retrieval"
    cannot = MappingProxyType(
        {
            "search": "its only command that searches, `filter`, reads weights of a hub alone",
            "grow": "it adds nothing: `inference` and `index` run over all pictures again",
        }
    )

    def fill(self, size: int, vectors: Path) -> None:
        """Writes an exact FAISS index and its table."""
        index = self.folder / str(size)
        (index / "metadata").mkdir(parents=True)
        table = "import sys, pandas; n = int(sys.argv[1]); pandas.DataFrame({'url': [f'{i}.jpg' for i in range(n)]})"
        python = self._python("clip-retrieval")
        run(
            [python, "-c", f"{table}.to_parquet(sys.argv[2])", size, index / "metadata" / "0.parquet"],
            env=clean(),
        )
        build = "import sys, faiss, numpy; i = faiss.IndexFlatIP(512); i.add(numpy.load(sys.argv[1]))"
        run(
            [python, "-c", f"{build}; faiss.write_index(i, sys.argv[2])", vectors, index / "image.index"],
            env=clean(),
        )
        (index / "indices.json").write_text(json.dumps({"peers": str(index)}), encoding="utf-8")
        (self.folder / "launch.py").write_text(_LAUNCH, encoding="utf-8")

    def serve(self, size: int, seconds: float) -> Load:
        """Asks `clip-retrieval back`."""
        port = free_port()
        options = {
            "indices_paths": self.folder / str(size) / "indices.json",
            "port": port,
            "clip_model": self._clip_model,
            "enable_mclip_option": False,
            "provide_aesthetic_embeddings": False,
            "use_jit": False,
        }
        body = {"modality": "image", "num_images": HITS, "indice_name": "peers", "deduplicate": True}
        words = [*self._launch, "back", *flags(options)]
        return served(words, clean(), port, "/knn-service", lambda text: {"text": text, **body}, seconds)

    def add(self, size: int, pictures: Path) -> Took:
        """Runs `inference` over a folder; what is embedded is not put into an index yet."""
        options = {
            "input_dataset": pictures,
            "output_folder": self.folder / "embedded",
            "clip_model": self._clip_model,
            "enable_text": False,
            "enable_metadata": False,
            "use_jit": False,
            "num_prepro_workers": 1,
            "batch_size": 16,  # it warms up with two batches
            "enable_wandb": False,
        }
        took, _ = run([*self._launch, "inference", *flags(options)], env=clean(), stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder / "embedded")
        return took

    @property
    def _launch(self) -> list[object]:
        return [self._python("clip-retrieval"), self.folder / "launch.py"]

    @property
    def _clip_model(self) -> str:
        return f"open_clip:{ARCHITECTURE}/{self.weights}"


class Bare(Program):
    """A loop around onnxruntime and an index library: what no program can be below."""

    def __init__(self, work: Path, library: str) -> None:
        self.name, self._library = f"bare {library}", library
        if library != "faiss":  # around the same graphs
            self.rows = ("serve",)
        super().__init__(work)

    def fill(self, size: int, vectors: Path) -> None:
        """Has the library build and write its index."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._run("build", size, vectors)

    def search(self, size: int, text: str) -> Took:
        """Opens graph and index, and asks one text."""
        return self._run("search", size, self.model, text)[0]

    def serve(self, size: int, seconds: float) -> Load:
        """Asks in the process itself, without any server."""
        load: Load = json.loads(self._run("loop", size, self.model, seconds, *CLIENTS)[1])
        return load

    def add(self, size: int, pictures: Path) -> Took:
        """Embeds a folder, puts it into the index, and writes that."""
        return self._run("add", size, self.model, pictures)[0]

    def _run(self, verb: str, size: int, *words: object) -> tuple[Took, bytes]:
        index = self.folder / f"{size}.index"
        return run([self._python("rclip"), _BARE, verb, self._library, index, *words], env=clean())


def programs(work: Path) -> list[Program]:
    """Returns all that are measured; ours first."""
    bare = [Bare(work, library) for library in ("faiss", "hnswlib", "usearch")]
    return [Perennial(work), Rclip(work), ClipRetrieval(work), *bare]


def install(work: Path) -> None:
    """Makes the environments that are not there yet; pip asks its index by the packages' names."""
    for name, packages in INSTALLED.items():
        folder = work / "environments" / name
        if (folder / "made").exists():
            continue
        print(f"installing {name} into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        run([*pip, *packages], env=clean())
        if name in UNASKED:
            run([*pip, "--no-deps", *UNASKED[name]], env=clean())
            ours = sysconfig.get_path("purelib")
            next((folder / "lib").glob("python3*")).joinpath("site-packages", "zz-torch.pth").write_text(
                ours + "\n"
            )
        (folder / "made").touch()


def write_model(work: Path) -> None:
    """Writes the random weights, and the graphs that rclip and the bare loop read, where they are not there yet."""
    weights, folder = work / "random.safetensors", work / "model"
    if (folder / "made").exists():
        return
    import open_clip
    import torch
    from safetensors.torch import save_file

    from model_updates.graph_skeletons import filled
    from model_updates.onnx_graphs import Tower
    from model_updates.opening import build_model

    class Whole(Tower):
        def __init__(self, call: Callable[[Any], Any]) -> None:
            super().__init__(model, ())
            self._call = call

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = self._call(given)
            return features

    torch.manual_seed(0)
    model = build_model(ARCHITECTURE).eval()
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, weights)
    (folder / _RCLIP_FOLDER).mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer").mkdir(exist_ok=True)
    shutil.copy(Path(open_clip.__file__).with_name("bpe_simple_vocab_16e6.txt.gz"), folder / "tokenizer")
    torch.backends.mha.set_fastpath_enabled(False)  # its operator has no counterpart in graphs
    examples = {
        "visual": ("encode_image", torch.zeros(2, 3, 256, 256)),
        "textual": ("encode_text", open_clip.tokenize(["a red boat", "a dog"])),
    }
    for name, (call, given) in examples.items():
        graph = filled(name, Whole(getattr(model, call)), {"input": given}, {"input": {0: "n"}})
        (folder / _RCLIP_FOLDER / f"{name}.onnx").write_bytes(graph.SerializeToString())
    (folder / "made").touch()


def write_vectors(path: Path, size: int) -> None:
    """Writes (size, 512) random rows of length 1."""
    rows = np.random.default_rng(size).standard_normal((size, DIM), dtype=np.float32)
    np.save(path, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def served(
    words: Sequence[object],
    environment: dict[str, str],
    port: int,
    path: str,
    body: Callable[[str], dict[str, Any]],
    seconds: float,
) -> Load:
    """Starts a server, waits for its first answer, asks it from `CLIENTS` numbers of clients, and ends it."""
    process = subprocess.Popen(
        list(map(str, words)), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        ask = asker(port, path, body)
        _until_ready(ask, process)
        server = psutil.Process(process.pid)

        def cpu() -> float:
            user, system = server.cpu_times()[:2]
            return float(user + system)

        ready = cpu()
        load = {str(n): asked(ask, n, seconds, cpu) for n in CLIENTS}
        return {"load": load, "memory": server.memory_info().rss / 1e6, "ready": ready}
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def asker(port: int, path: str, body: Callable[[str], dict[str, Any]]) -> Callable[[str], None]:
    """Returns what asks a server a text, by a connection of its own in each thread; who is too busy is asked again."""
    kept = threading.local()

    def ask(text: str) -> None:
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        sent = json.dumps(body(text))
        while True:
            try:
                kept.connection.request("POST", path, sent, {"Content-Type": "application/json"})
                answer = kept.connection.getresponse()
                said = answer.read()
            except (OSError, http.client.HTTPException):
                del kept.connection
                raise
            if answer.status == http.client.OK:
                return
            if answer.status != http.client.SERVICE_UNAVAILABLE:
                raise RuntimeError(f"{path} answered {answer.status}: {said[:200]!r}")
            time.sleep(_AGAIN_SECONDS)

    return ask


def _until_ready(ask: Callable[[str], None], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            return ask(next(queries()))
        except (OSError, http.client.HTTPException, RuntimeError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def flags(options: dict[str, object]) -> Iterator[str]:
    """Yields options as clip-retrieval takes them."""
    return (f"--{name}={value}" for name, value in options.items())


def free_port() -> int:
    """Returns a port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def clean() -> dict[str, str]:
    """Returns the environment without what this process was told for itself, and offline for hubs."""
    left = {"VIRTUAL_ENV", "PERENNIAL_NICENESS"}
    kept = {name: value for name, value in os.environ.items() if name not in left and "PYTHON" not in name}
    return kept | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
