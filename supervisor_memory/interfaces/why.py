"""The parts of a score in words."""

from collections.abc import Mapping

__all__ = ["why"]


def why(parts: Mapping[str, float]) -> str:
    """Why a record was found, for people: `parts` are those of a `Hit`.

    Source: docs/cli.md explains each word.
    """
    signals = [f"meaning {parts['sim']:.2f}"] if "sim" in parts else []
    signals.append(f"words {parts.get('coverage', 0.0):.2f}")
    if "named" in parts:
        signals.append("defines a word of the question")
    reasons = ["always recalled"] if parts.get("standing") else []
    reasons.append(f"relevance {parts.get('relevance', 0.0):.2f} ({', '.join(signals)})")
    reasons.append(f"recency {parts.get('decay', 0.0):.2f}")
    reasons.append(f"source {parts.get('source', 0.0):.2f}")
    return ", ".join(reasons)
