"""What is measured: how each subject is installed, started on its core, found ready, and ended again."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bench.load import Target

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "bench" / ".work"
DEFAULT_POLICY = ROOT / "policies" / "default.yaml"

LITELLM = "litellm[proxy]==1.108.7"
MASTER_KEY = "sk-bench-master"

# How long a process may take to end by itself before it is killed.
_GRACE = 5.0


class Skipped(Exception):
    """A subject that cannot run here; the message says why and what would change that."""


@dataclass(frozen=True, slots=True)
class Spec:
    """How to start one subject. `slow` ones get a smaller load; `exact` ones must deliver every frame."""

    name: str
    command: tuple[str, ...]
    port: int
    ready: str
    stream_port: int = 0
    key: str = "sk-bench-none"
    env: Mapping[str, str] = field(default_factory=dict)
    start_limit: float = 30.0
    slow: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """A started subject. `pid` leads its session; 0 means that there is no process (direct)."""

    name: str
    pid: int
    buffered: Target
    streamed: Target
    ready_after: float
    slow: bool
    exact: bool


@dataclass(frozen=True, slots=True)
class Cores:
    """The core of the subject under test, and the one that load and upstream share. None: not pinned."""

    subject: int | None
    load: int | None

    @classmethod
    def choose(cls) -> "Cores":
        have = sorted(os.sched_getaffinity(0))
        return cls(have[0], have[-1]) if len(have) > 1 else cls(None, None)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def pin(core: int | None) -> None:
    """Keep this process, and what it starts, on one core."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def _spawn(command: tuple[str, ...], env: Mapping[str, str], core: int | None, log: IO[bytes]) -> int:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**_clean_environment(), **env},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=lambda: pin(core),
    )
    return process.pid


def _clean_environment() -> dict[str, str]:
    foreign = ("SIDECAR_", "LITELLM_", "OPENAI_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    return {k: v for k, v in os.environ.items() if not k.upper().startswith(foreign)}


def _ended(pid: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return True


def _end(pid: int) -> None:
    """End the session's process group: politely, then not."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while not (gone := _ended(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not gone:
        os.waitpid(pid, 0)


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _await_ready(pid: int, spec: Spec, log: Path) -> float:
    began = time.monotonic()
    while not _answers(spec.port, spec.ready):
        if _ended(pid):
            raise Skipped(f"it ended while starting; see {log}")
        if time.monotonic() - began > spec.start_limit:
            raise Skipped(f"not ready within {spec.start_limit:.0f} s; see {log}")
        time.sleep(0.005)
    return time.monotonic() - began


@contextmanager
def started(spec: Spec, core: int | None) -> Iterator[Running]:
    """The running subject; on leaving it ends, children and all. Raises Skipped if it does not start."""
    path = WORK / f"{spec.name.replace(' ', '-')}.log"
    with path.open("wb") as log:
        pid = _spawn(spec.command, spec.env, core, log)
    try:
        ready = _await_ready(pid, spec, path)
        streamed = Target(spec.stream_port or spec.port, spec.key)
        yield Running(spec.name, pid, Target(spec.port, spec.key), streamed, ready, spec.slow, spec.exact)
    finally:
        _end(pid)


def upstream(port: int) -> Spec:
    """The provider that all subjects forward to."""
    command = (sys.executable, "-m", "bench.upstream", "--port", str(port))
    return Spec("upstream", command, port, "/", exact=True)


def direct(port: int) -> Running:
    """No subject at all: the load goes straight to the upstream."""
    return Running("direct", 0, Target(port), Target(port), 0.0, slow=False, exact=True)


_NGINX = """\
{user}
daemon off;
worker_processes 1;
pid {work}/nginx.pid;
error_log {work}/nginx-error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path {work}/nginx-body;
  proxy_temp_path {work}/nginx-proxy;
  fastcgi_temp_path {work}/nginx-fastcgi;
  uwsgi_temp_path {work}/nginx-uwsgi;
  scgi_temp_path {work}/nginx-scgi;
  upstream provider {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 100000000; }}
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location = /readyz {{ return 200; }}
    location / {{ proxy_pass http://provider; }}
  }}
  server {{
    listen 127.0.0.1:{stream_port} backlog=1024;
    proxy_buffering off;
    location / {{ proxy_pass http://provider; }}
  }}
}}
"""


def nginx(upstream_port: int) -> Spec:
    """nginx as a plain reverse proxy with one worker; apt installs it where it is missing and we are root."""
    binary = _nginx_binary()
    port, stream_port = free_port(), free_port()
    user = "user root;" if os.getuid() == 0 else ""
    config = WORK / "nginx.conf"
    config.write_text(_NGINX.format(user=user, work=WORK, upstream=upstream_port, port=port, stream_port=stream_port))
    command = (binary, "-p", str(WORK), "-e", str(WORK / "nginx-error.log"), "-c", str(config))
    return Spec("nginx", command, port, "/readyz", stream_port, exact=True)


def _nginx_binary() -> str:
    if found := find_nginx():
        return found
    if os.getuid() != 0 or not shutil.which("apt-get"):
        raise Skipped("nginx is not installed; install nginx-light, or run as root where apt-get is")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for action in (("update", "-qq"), ("install", "-y", "-qq", "--no-install-recommends", "nginx-light")):
        done = subprocess.run(("apt-get", *action), env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"apt-get {action[0]} failed: {done.stderr.strip()[-200:]}")
    return find_nginx() or "/usr/sbin/nginx"


def find_nginx() -> str | None:
    """The nginx program, which is often outside a user's PATH."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def sidecar(name: str, upstream_port: int, policy: Path | None) -> Spec:
    """The sidecar with one worker, inert or with a policy file."""
    binary = Path(sys.executable).with_name("sidecar")
    if not binary.exists() or (policy and not policy.exists()):
        raise Skipped(f"{policy if binary.exists() else binary} does not exist; `make .venv/ready` installs it")
    port = free_port()
    options = ("--policy", str(policy)) if policy else ()
    where = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    provider = f"http://127.0.0.1:{upstream_port}/v1"
    command = (str(binary), "serve", *options, "--upstream", provider, *where)
    return Spec(name, command, port, "/readyz", start_limit=15.0, exact=policy is None)


_LITELLM = """\
model_list:
{models}
general_settings:
  master_key: {key}
litellm_settings:
  telemetry: false
"""
_LITELLM_MODEL = """\
  - model_name: {model}
    litellm_params:
      model: openai/{model}
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: sk-bench-provider"""


def litellm(upstream_port: int, models: tuple[str, ...], *, install: bool) -> Spec:
    """LiteLLM's proxy with one worker, without guardrails, in an environment of its own."""
    binary = _litellm_binary(install)
    listed = "\n".join(_LITELLM_MODEL.format(model=model, upstream=upstream_port) for model in models)
    config = WORK / "litellm.yaml"
    config.write_text(_LITELLM.format(models=listed, key=MASTER_KEY))
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--num_workers", "1")
    command = (str(binary), "--config", str(config), *where)
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": MASTER_KEY}
    return Spec("litellm", command, port, "/health/liveliness", key=MASTER_KEY, env=env, start_limit=120.0, slow=True)


def _litellm_binary(install: bool) -> Path:
    home = WORK / "litellm"
    ready = home / f"ready-{LITELLM.rpartition('=')[2]}"
    if not ready.exists():
        if not install:
            raise Skipped(f"{LITELLM} is not in {home.relative_to(ROOT)}; `make bench` installs it there")
        _install_litellm(home)
        ready.touch()
    return home / "bin" / "litellm"


def _install_litellm(home: Path) -> None:
    print(f"installing {LITELLM} into {home.relative_to(ROOT)}; this takes a minute or two", flush=True)
    python = str(home / "bin" / "python")
    base = str(Path(sys.base_prefix) / "bin" / "python3")
    steps = (
        (base if Path(base).exists() else sys.executable, "-m", "venv", str(home)),
        (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", LITELLM),
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"cannot install {LITELLM}: {done.stderr.strip()[-300:]}")
    # A few files of its packages are templates that do not compile; that is no failure of ours.
    compile_all = (python, "-m", "compileall", "-q", "-j", "0", str(home / "lib"))
    subprocess.run(compile_all, capture_output=True, check=False)
