"""The recipes that come with the package, but for the default."""

from supervisor_memory.recipes.open import OURS

NAMES = tuple(name for name in OURS if name != "default")
