# `make demo` shows Perennial; `make test` checks it. Both work on a bare checkout and need Python >= 3.11 with venv.

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && echo "$$p" && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The exact versions that an install takes.
PINNED := --constraint constraints.txt

# Where there is a CUDA card, FAISS's GPU build takes the place of the other, which has the same name inside; it is
# built for Linux on x86 alone.
FAISS = ! { [ "$$(uname -sm)" = "Linux x86_64" ] && nvidia-smi; } >/dev/null 2>&1 || { $(PIP) install $(PINNED) --editable '.[learn,gpu]' && \
	$(PIP) install $(PINNED) --force-reinstall --no-deps faiss-gpu; }

# Its client is asked by a test; it wants an older numpy than ours, so it lies apart and without what it depends on.
CLIP_RETRIEVAL := 2.45.0

# Rooms whose tests ask catalogs for most.
IN_CATALOGS := tests/ingest tests/app/learning tests/app/feedback tests/app/jobs tests/app/query

.PHONY: demo install test quick check scale-test docs constraints audit bench-peers soak clean

demo: install
	@$(BIN)/perennial demo

install: .venv/demo-installed

# One thread a process: two with two threads each wait for one another on two cores. One process more than there are
# cores: a test waits for its browser. Jobs stand back for nobody: a test that waits for one would wait for every other
# test, too. What is compiled is kept, whatever the shell says: each worker and each job would compile all again.
WORKERS := $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 4 ? cores + 1 : 4)))
RUN_TESTS := OMP_NUM_THREADS=1 PERENNIAL_NICENESS=0 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q --numprocesses $(WORKERS) \
	--dist loadfile --no-loadscope-reorder

# mypy takes a minute of one core: it looks beside the tests, and what it says comes after theirs.
test: .venv/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	@mkdir -p build; $(BIN)/mypy > build/mypy.txt 2>&1 & typed=$$!; \
	$(RUN_TESTS) -rfEs $(PYTEST); tested=$$?; \
	wait $$typed || tested=$$?; cat build/mypy.txt; exit $$tested

# The inner loop: mypy reads again what changed alone, and the tests are those of `tests/quick.py`.
quick: .venv/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(RUN_TESTS) --quick $(PYTEST)

check: test

# The engines of more than one machine (docs/scale.md): PostgreSQL, Milvus and Ray are started from packages. First what
# is tested of them alone, then the tests of the rooms that keep something in a catalog, with theirs in PostgreSQL; last,
# what it costs.
scale-test: .venv/scale-installed
	$(RUN_TESTS) -rs -m 'postgres or milvus or ray' $(PYTEST)
	$(RUN_TESTS) -p tests.in_postgres -m 'not sqlite and not slow and not gpu and not milvus and not ray' $(IN_CATALOGS) $(PYTEST)
	@OMP_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/scale.py

# Pages and catalogues that follow from the code, and the site made of the pages, in site/.
docs: .venv/test-installed
	@$(BIN)/python -m model_updates.strategy_pages
	@$(BIN)/python docs/write_modules.py
	@$(BIN)/python docs/write_settings.py
	@$(BIN)/python -m app.words.extraction
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Other programs beside Perennial, by turns; they are installed into build/peers, where nothing else looks.
bench-peers: .venv/test-installed
	@nice -n 10 $(BIN)/python benchmarks/peers.py $(PEERS)

# Each promise tried for long, with its figure; hours.
soak: .venv/test-installed
	@OMP_NUM_THREADS=1 PERENNIAL_NICENESS=0 $(BIN)/python benchmarks/soak.py $(SOAK)

# What is installed, with licences, into build/sbom.json, and whether a weakness is known in any of it.
audit: .venv/test-installed
	@$(BIN)/python benchmarks/audit.py

# Writes constraints.txt anew from pyproject.toml, for every platform and Python from 3.11 on. What is pinned stays
# where it still fits; `make constraints UPGRADE=--upgrade` takes the newest of everything.
constraints: | .venv/pyvenv.cfg
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	$(BIN)/python -m venv "$$tools" && \
	"$$tools/bin/python" -m pip --disable-pip-version-check --quiet install uv && \
	"$$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --extra learn --extra dev --extra gpu --extra mcp --extra jxl --extra ray --extra scale --no-annotate $(UPGRADE) \
		--custom-compile-command 'make constraints' --output-file constraints.txt pyproject.toml

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "Perennial needs Python 3.11 or newer, and none was found as python3," \
		"python3.14 ... python3.11. Install one, or name it: make demo PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || { echo "Perennial needs Python 3.11 or newer; $(PYTHON) is" \
		"$$("$(PYTHON)" --version 2>&1). Name another: make demo PYTHON=/path/to/python"; exit 1; }
	@"$(PYTHON)" -m venv .venv || { rm -rf .venv; \
		echo "Python could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv"; exit 1; }

# Editable, so that a change of the code needs no new installation; a change of these two files does.
.venv/demo-installed: pyproject.toml constraints.txt | .venv/pyvenv.cfg
	@echo "Installing Perennial and what it needs into .venv (once; some minutes) ..."
	@$(PIP) install $(PINNED) --editable '.[learn]'
	@$(FAISS)
	@touch $@

.venv/test-installed: pyproject.toml constraints.txt | .venv/pyvenv.cfg
	@echo "Installing Perennial, its tools and what it needs into .venv (once; some minutes) ..."
	@$(PIP) install $(PINNED) --editable '.[learn,dev]'
	@$(FAISS)
	@$(PIP) install --no-deps --upgrade --target .venv/clip-retrieval clip-retrieval==$(CLIP_RETRIEVAL)
	@touch $@ .venv/demo-installed

.venv/scale-installed: .venv/test-installed
	@$(PIP) install $(PINNED) --editable '.[learn,dev,scale]'
	@touch $@
