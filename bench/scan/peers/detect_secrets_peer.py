"""Yelp's detect-secrets with all its plugins and filters at their defaults, on a file, as it is meant to be used."""

import os
import tempfile
from importlib.metadata import version

import wire
from detect_secrets import SecretsCollection
from detect_secrets.settings import default_settings


def find(kind, text):
    if kind != "secrets":
        return
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    for secret in scanned(text):
        number = secret.line_number - 1
        at = lines[number].find(secret.secret_value) if secret.secret_value and number < len(lines) else -1
        if at >= 0:
            yield starts[number] + at, starts[number] + at + len(secret.secret_value)


def scanned(text):
    file, path = tempfile.mkstemp(suffix=".txt")
    with os.fdopen(file, "w", encoding="utf-8", errors="replace", newline="") as out:
        out.write(text)
    try:
        collection = SecretsCollection()
        collection.scan_file(path)
        return list(collection[path])
    finally:
        os.unlink(path)


if __name__ == "__main__":
    with default_settings():
        wire.serve(version("detect-secrets"), find)
