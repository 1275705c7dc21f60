"""Text to vectors: the protocol, one module per embedder, and `open.py` which picks one by name."""
