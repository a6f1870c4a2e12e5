"""The official client's own tests, direct and through the sidecar: `python -m tests.conformance`."""
