"""From candidates to a note: rank, gate, rerank, format."""
