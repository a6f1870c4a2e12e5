"""Tool calls for models that have none: tools are told as text, and calls are read back out of it.

`render` writes the request, `reading` reads text, `bridge` stands between the two and the client.
"""
