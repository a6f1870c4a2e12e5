# The sidecar in a container. Nothing is installed that the lock files do not name with a hash, the build tool included.
#
#   docker build -t guardrail-sidecar .
#   docker run --rm -p 8080:8080 guardrail-sidecar
#
# Set it up with the variables of docs/operating.md, and mount a policy of your own over /policies.

FROM python:3.13-slim AS build
RUN python -m venv /opt/sidecar
ENV PATH=/opt/sidecar/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.txt requirements-dev.txt ./
RUN pip install --require-hashes --requirement requirements.txt
RUN python -m venv /opt/tools \
    && sed -n '/^setuptools==/,/# via/p' requirements-dev.txt > build.txt \
    && /opt/tools/bin/pip install --require-hashes --requirement build.txt
COPY pyproject.toml README.md LICENSE ./
COPY policies ./policies
COPY sidecar ./sidecar
RUN /opt/tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && pip install --no-deps --no-index /dist/*.whl

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin sidecar
COPY --from=build /opt/sidecar /opt/sidecar
COPY policies /policies
ENV PATH=/opt/sidecar/bin:$PATH SIDECAR_POLICY=/policies/default.yaml
USER 10001
EXPOSE 8080
# Not by urllib: it would take HTTP_PROXY, which is for the way to the provider.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["python", "-c", "import http.client as h, os, sys; c = h.HTTPConnection('127.0.0.1', int(os.environ.get('SIDECAR_PORT') or 8080), timeout=2); c.request('GET', '/readyz'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["sidecar"]
CMD ["serve", "--host", "0.0.0.0"]
