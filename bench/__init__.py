"""Costs of the sidecar beside two references, in one run: `python -m bench`."""
