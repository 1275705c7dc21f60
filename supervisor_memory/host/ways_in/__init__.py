"""The ways memory enters a graph: attach, middleware, an agent of its own, a turn."""
