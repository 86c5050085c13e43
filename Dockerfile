# gibbous as a command that runs without root, on a file system that it cannot write to:
#   docker build -t gibbous .
#   docker run --rm --read-only --network none --tmpfs /scratch --cap-drop ALL --security-opt no-new-privileges \
#     -v "$PWD:/data" -v gibbous-home:/home/gibbous -u "$(id -u)" gibbous plan --schema schema.toml --epsilon 1 --delta 1e-9
# The volume gibbous-home keeps the ledger: without it every run would begin with an empty account.
# Pin the base by digest where you deploy: FROM python:3.11-slim@sha256:...
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements/core.txt requirements/extras.txt requirements/
RUN python -m venv /opt/gibbous \
    && /opt/gibbous/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/core.txt -r requirements/extras.txt
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir -c constraints.txt hatchling \
    && /opt/build/bin/python -m hatchling build -t wheel -d /dist \
    && /opt/gibbous/bin/pip install --no-cache-dir --no-index --no-deps /dist/*.whl

FROM python:3.11-slim
COPY --from=build /opt/gibbous /opt/gibbous
RUN useradd --create-home --uid 10001 gibbous && chmod 1777 /home/gibbous
USER gibbous
ENV PATH=/opt/gibbous/bin:$PATH GIBBOUS_HOME=/home/gibbous GIBBOUS_SCRATCH=/scratch TMPDIR=/scratch PYTHONDONTWRITEBYTECODE=1
VOLUME ["/home/gibbous", "/data"]
WORKDIR /data
ENTRYPOINT ["gibbous"]
CMD ["--help"]
