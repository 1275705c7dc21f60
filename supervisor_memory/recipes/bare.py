"""Recipes of one signal: what a store finds by meaning or by words, and nothing else."""

from dataclasses import replace

from supervisor_memory.recipes.default import PLAIN
from supervisor_memory.recipes.operators.order import by_meaning, weigh
from supervisor_memory.recipes.operators.signals import search_by
from supervisor_memory.stages.post_retrieval.rerank import reranked

BY_MEANING = replace(
    reranked(PLAIN, weigh("bare", by_meaning)),
    name="bare store",
    pre_retrieval=(*PLAIN.pre_retrieval, search_by(meaning=1.0)),
)
"""The nearest by cosine: what a recipe by meaning has before its own steps."""
BY_WORDS = replace(PLAIN, name="words", pre_retrieval=(*PLAIN.pre_retrieval, search_by(words=1.0)))
"""Those that share the rarest words with the question."""
