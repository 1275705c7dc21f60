"""Where records are kept: one protocol, one folder for each store."""
