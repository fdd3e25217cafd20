# The environment of README's first line and the package, for jobs in containers (docs/cluster.md). The project itself, with its
# data and results, is mounted. Build it in the project's folder: docker build -t lookalike .
# Its steps were tried with buildah on a base of Debian's packages; ci.yml builds it weekly on the base named here.
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
# Whoever runs it (docker run --user 1234) has a home to write to and names of files in UTF-8, and git trusts a project that is
# mounted from another owner.
RUN git config --system --add safe.directory '*' && mkdir -m 1777 /home/lookalike
ENV HOME=/home/lookalike LANG=C.UTF-8
WORKDIR /lookalike
COPY pyproject.toml README.md LICENSE requirements.lock ./
RUN pip install --no-cache-dir uv && uv pip install --system --no-cache -r requirements.lock
COPY . .
RUN uv pip install --system --no-cache --no-deps -e .
