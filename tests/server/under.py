"""A sidecar under a policy, its provider and its record: what tests of guarded exchanges talk to."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .talk import Answer, Sidecar, request, sidecar, wait_for
from .upstream import Upstream

CHAT = b"/v1/chat/completions"
JSON = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Talk:
    """A sidecar under a policy, its provider and its record."""

    running: Sidecar
    upstream: Upstream
    log: Path

    def ask(self, content: Any = "hi", *headers: tuple[bytes, bytes], path: bytes = CHAT, **more: Any) -> Answer:
        """A chat completion."""
        return self.post(path, {"model": "m", "messages": [{"role": "user", "content": content}], **more}, *headers)

    def post(self, path: bytes, document: Any, *headers: tuple[bytes, bytes]) -> Answer:
        return self.running.ask(request(b"POST", path, json.dumps(document).encode(), JSON, *headers))

    def send(self, method: bytes, path: bytes, body: bytes = b"", *headers: tuple[bytes, bytes]) -> Answer:
        return self.running.ask(request(method, path, body, *headers))

    def line(self) -> dict[str, Any]:
        """The record's last line; waits for one that has not been read before."""
        wait_for(lambda: self.log.exists() and self.log.read_text().endswith("}\n"))
        line: dict[str, Any] = json.loads(self.log.read_text().splitlines()[-1])
        self.log.write_text("")
        return line

    @property
    def sent(self) -> Any:
        """The document that reached the provider."""
        return json.loads(self.upstream.requests[-1].body)


Start = Callable[..., AbstractContextManager[Talk]]


def under(upstream: Upstream, folder: Path) -> Start:
    """Starts a sidecar under these guardrails."""

    @contextmanager
    def start(*guardrails: str, provider: str = "", more: str = "") -> Iterator[Talk]:
        log = folder / "log"
        policy = f'version: 1\nproviders: {{p: {{base_url: "{upstream.url}/v1"{provider}}}}}\n'
        policy += f'guardrails: [{", ".join(guardrails)}]\ntelemetry: {{log: "{log}"}}\n{more}'
        with sidecar(policy=policy, folder=folder) as running:
            yield Talk(running, upstream, log)

    return start
