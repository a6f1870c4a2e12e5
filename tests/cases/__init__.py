"""Cases drawn from public bug reports, played against a running sidecar through real sockets."""
