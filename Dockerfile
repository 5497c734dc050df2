# syntax=docker/dockerfile:1
# `docker build --target search .` searches, serves and takes in what others have taught; without a target it learns,
# too, and with `--target gpu` on a CUDA card. Those stages install; what runs has neither compiler nor package caches.
FROM python:3.12-slim AS search-build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/perennial
ENV PATH=/opt/perennial/bin:$PATH
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY perennial perennial
COPY ingest ingest
COPY index index
COPY model_updates model_updates
COPY app app
RUN pip install --constraint constraints.txt '.[postgres,s3]'

FROM search-build AS learn-build
RUN pip install --constraint constraints.txt '.[learn]'

FROM learn-build AS gpu-build
RUN pip install --constraint constraints.txt '.[learn,gpu]' \
    && pip install --constraint constraints.txt --force-reinstall --no-deps faiss-gpu

FROM python:3.12-slim AS running
# Sample emoji are drawn with this font; the server itself needs nothing beyond Python.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-noto-color-emoji \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin perennial \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
# 0.0.0.0 alone does not open the server: without PERENNIAL_PASSWORD_FILE or PERENNIAL_ALLOW_OPEN=1 it refuses to start.
ENV PATH=/opt/perennial/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PERENNIAL_HOME=/data/home \
    PERENNIAL_HOST=0.0.0.0 \
    PERENNIAL_PORT=7860 \
    GRADIO_ANALYTICS_ENABLED=False \
    HOME=/tmp
# An empty folder of its own: Gradio may serve files from the working directory.
WORKDIR /srv/empty
USER 10001:10001
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ.get('PERENNIAL_PORT', '7860')}/readyz\", timeout=4)"]
# The first start makes the home; later ones find it.
CMD ["sh", "-c", "test -e \"$PERENNIAL_HOME/FORMAT\" || perennial init || exit; exec perennial serve"]

FROM running AS search
COPY --from=search-build /opt/perennial /opt/perennial

FROM running AS gpu
COPY --from=gpu-build /opt/perennial /opt/perennial

FROM running AS learn
COPY --from=learn-build /opt/perennial /opt/perennial
