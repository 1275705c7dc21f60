"""Before the model speaks: route, search, rank, format."""
