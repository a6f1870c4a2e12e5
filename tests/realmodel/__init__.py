"""A small model that really runs, asked by official clients through a real sidecar. `make real-model`."""
