"""The clients that agents really use, against a running sidecar and a scripted provider."""
