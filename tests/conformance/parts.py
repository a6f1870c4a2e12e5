"""The two outside parts, mock server and client tests, each installed under tests/.work when missing."""

import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tests.running import WORK, Process, clean_env, free_port, shared_path

FOLDER = WORK / "conformance"
PYTHON = FOLDER / "venv" / "bin" / "python"
OPENAI = "3.3.1"
STEADY = "@stdy/cli@0.22.1"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSTALL_SECONDS = 600
SUITE_SECONDS = 600
BRACKETS = ("query-array", "form-array", "query-object", "form-object")


def must(command: Sequence[str | Path]) -> None:
    """Runs a command of the installation; a SystemExit says which one failed."""
    words = list(map(str, command))
    if code := subprocess.run(words, env=clean_env(), timeout=INSTALL_SECONDS, check=False).returncode:
        raise SystemExit(f"{' '.join(words)} failed with exit code {code}")


def install_tests() -> Path:
    """The folder of the client's source distribution, with an environment that can run its tests."""
    source = FOLDER / f"openai-{OPENAI}"
    ready = FOLDER / "venv" / "ready"
    if not ready.exists() or ready.read_text() != REQUIREMENTS.read_text():
        must([sys.executable, "-m", "venv", "--clear", FOLDER / "venv"])
        must([PYTHON, *_PIP, "install", "-qq", "-r", REQUIREMENTS])
        ready.write_text(REQUIREMENTS.read_text())
    if not source.exists():
        options = ("-qq", "--no-deps", "--no-binary", ":all:", "-d", FOLDER)
        must([PYTHON, *_PIP, "download", *options, f"openai=={OPENAI}"])
        with tarfile.open(FOLDER / f"openai-{OPENAI}.tar.gz") as packed:
            packed.extractall(FOLDER, filter="data")
    return source


_PIP = ("-m", "pip", "--disable-pip-version-check")


def install_mock() -> Path:
    """The mock server's command."""
    steady = FOLDER / "mock" / "node_modules" / ".bin" / "steady"
    if not steady.exists():
        options = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        must(["npm", "install", "--prefix", FOLDER / "mock", *options, STEADY])
    return steady


def start_mock(steady: Path) -> Process:
    """The mock, answering from the API description."""
    port = free_port()
    formats = [f"--validator-{what}-format=brackets" for what in BRACKETS]
    command = [
        str(steady),
        "--host",
        "127.0.0.1",
        "-p",
        str(port),
        *formats,
        str(shared_path("openai", "openapi.yml")),
    ]
    return Process.start(command, FOLDER / "mock.out", f"http://127.0.0.1:{port}", ready="/_x-steady/health")


def run_suite(source: Path, base_url: str, report: Path) -> None:
    """Runs the client's API tests against `base_url` and leaves a junit report; what fails is in there."""
    report.unlink(missing_ok=True)
    suite = [str(PYTHON), "-m", "pytest", "tests/api_resources", "-q", "-n", "2", "-p", "no:cacheprovider"]
    env = clean_env({"TEST_API_BASE_URL": base_url})
    with report.with_suffix(".out").open("wb") as said:
        subprocess.run(
            [*suite, "--tb=short", f"--junitxml={report}"],
            cwd=source,
            env=env,
            timeout=SUITE_SECONDS,
            check=False,
            stdout=said,
            stderr=said,
        )
