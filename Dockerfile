# Memory as a service of its own: the HTTP API and the dashboard over one store (docs/deploying.md).
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY supervisor_memory supervisor_memory
RUN python -m venv /opt/memory \
    && /opt/memory/bin/pip install --no-cache-dir '.[local,chinese,redact,sql,server,mcp,qdrant]'

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 memory && install -d -o memory -g memory -m 0700 /data
COPY --from=build /opt/memory /opt/memory
USER memory
WORKDIR /home/memory
ENV PATH=/opt/memory/bin:$PATH MEMORY_BACKEND=sqlite MEMORY_PATH=/data PYTHONUNBUFFERED=1
# A container's own disk does not outlive it: without a volume here everything is forgotten.
VOLUME /data
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=3)"]
ENTRYPOINT ["supervisor-memory"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8765"]
