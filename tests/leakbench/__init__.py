"""pii-leak-benchmark, a black box that plays client and provider, against a real sidecar. `make leakbench`."""
