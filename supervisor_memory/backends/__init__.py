"""Where records are kept: one protocol, one module per store."""
