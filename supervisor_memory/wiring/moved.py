"""Module paths that the docs of earlier versions showed: they still import, with a warning."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

_PACKAGE = "supervisor_memory."
_NEW = {
    "backends": "stores",
    "backends.base_store": "stores.langgraph.store",
    "backends.in_memory": "stores.memory.in_memory",
    "backends.journal": "stores.journal.store",
    "backends.json_file": "stores.memory.json_file",
    "backends.protocol": "stores.protocol",
    "backends.qdrant": "stores.qdrant.store",
    "backends.qdrant_server": "stores.qdrant",
    "backends.qdrant_server.collection_names": "stores.qdrant.collection_names",
    "backends.sqlite": "stores.sqlite.store",
    "explain": "model.explain",
    "graph": "host",
    "graph.review": "host.review",
    "graph.store": "host.store.store",
    "metrics": "reading.metrics",
    "recall": "stages",
    "recall.rerank": "stages.post_retrieval.rerank",
    "recipes.recent": "recipes.default",
    "records": "model.records",
    "remember": "stages",
    "remember.decide": "stages.insert.place",
    "remember.extractors": "stages.pre_insert.extractors",
    "remember.langmem": "stages.pre_insert.langmem",
    "terms": "language.terms",
    "tokens": "language.tokens",
}


class _Moved(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        old = fullname.removeprefix(_PACKAGE)
        if old == fullname or old not in _NEW:
            return None
        is_package = any(other.startswith(f"{old}.") for other in _NEW)
        return spec_from_loader(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        new = import_module(_PACKAGE + _NEW[module.__name__.removeprefix(_PACKAGE)])
        warnings.warn(
            f"{module.__name__} is {new.__name__} now; public names are importable from supervisor_memory",
            DeprecationWarning,
            stacklevel=2,
        )
        vars(module).update({name: value for name, value in vars(new).items() if not name.startswith("__")})


def find_moved_modules() -> None:
    """Let the import system find moved modules under their old paths."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
