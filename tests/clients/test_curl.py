"""The `curl` command: what people try first."""

import json
import shutil
import subprocess

import pytest

from tests.cases.upstream import Seen, Upstream
from tests.running import Process

from .conftest import clean
from .provider import CLIENT_KEY, CLIENTS, PLACEHOLDER, PROVIDERS, answer

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")

ECHO = f"You said my key is {PLACEHOLDER}. I say {PLACEHOLDER}, no more."
ASK = {"model": "m", "messages": [{"role": "user", "content": f"my key is {CLIENTS}"}]}
CURL_SECONDS = 20


def curl(sidecar: Process, *options: str, path: str = "/v1/chat/completions") -> str:
    command = ["curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", str(CURL_SECONDS)]
    key = ["--header", f"authorization: Bearer {CLIENT_KEY}"]
    done = subprocess.run([*command, *key, *options, sidecar.url + path], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return clean(done.stdout.decode())


def body(**more: object) -> list[str]:
    return ["--header", "content-type: application/json", "--data-binary", json.dumps({**ASK, **more})]


def test_buffered(sidecar: Process, provider: Upstream) -> None:
    reply = json.loads(curl(sidecar, *body()))
    assert reply["choices"][0]["message"]["content"] == ECHO


def test_streamed(sidecar: Process, provider: Upstream) -> None:
    lines = curl(sidecar, "--no-buffer", *body(stream=True)).splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == ECHO
    assert [line for line in lines if line][-1] == "data: [DONE]"


@pytest.mark.parametrize("version", ["--http1.1", "--http1.0", "--http2"])
def test_versions(version: str, sidecar: Process, provider: Upstream) -> None:
    assert ECHO in curl(sidecar, version, *body())


def test_chunked_upload(sidecar: Process, provider: Upstream) -> None:
    assert ECHO in curl(sidecar, "--header", "transfer-encoding: chunked", *body())
    assert provider.requests[0].fault == ""


def test_expect(sidecar: Process, provider: Upstream) -> None:
    assert ECHO in curl(sidecar, "--header", "expect: 100-continue", *body())


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate"])
def test_compressed(coding: str, sidecar: Process, provider: Upstream) -> None:
    provider.play([lambda seen: {**answer(seen), "compress": coding}])
    done = subprocess.run(["curl", "--version"], capture_output=True, check=True)
    if {"br": b"brotli", "zstd": b"zstd"}.get(coding, b"") not in done.stdout:
        pytest.skip(f"this curl does not decode {coding}")
    assert ECHO in curl(sidecar, "--compressed", *body())


def test_head(sidecar: Process, provider: Upstream) -> None:
    head = curl(sidecar, "--head", path="/v1/models")
    assert head.startswith("HTTP/1.1 200")
    assert provider.requests[0].method == "HEAD"


def test_options(sidecar: Process, provider: Upstream) -> None:
    assert json.loads(curl(sidecar, "--request", "OPTIONS", path="/v1/files"))["method"] == "OPTIONS"


def test_multipart_is_passed_byte_by_byte(sidecar: Process, provider: Upstream) -> None:
    kept: list[Seen] = []
    provider.play([lambda seen: kept.append(seen) or answer(seen)])
    curl(sidecar, "--form", "purpose=batch", "--form", "file=@-;filename=a.bin", path="/v1/files")
    assert (
        kept[0]
        .header(
            "content-type",
        )
        .startswith("multipart/form-data; boundary=")
    )
    assert b'name="purpose"\r\n\r\nbatch\r\n' in kept[0].body


def test_query_string(sidecar: Process, provider: Upstream) -> None:
    curl(sidecar, path="/v1/files?after=a%2Fb&x=%20&y")
    assert provider.requests[0].target == "/v1/files?after=a%2Fb&x=%20&y"


def test_broken_json_is_refused(sidecar: Process, provider: Upstream) -> None:
    reply = json.loads(curl(sidecar, "--data-binary", '{"messages": [' + PROVIDERS))
    assert reply["error"]["code"] == "invalid_request"
    assert provider.requests == []
