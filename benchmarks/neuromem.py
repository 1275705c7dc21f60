"""What isage-neuromem finds: run by a Python that has it, with questions and vectors on its standard input.

    python -m venv .neuromem
    .neuromem/bin/pip install --no-deps isage-neuromem
    .neuromem/bin/pip install numpy pyyaml networkx bm25s PyStemmer faiss-cpu datasketch python-dateutil
    python benchmarks/recipes.py --neuromem .neuromem/bin/python --write

These eight packages are enough; it declares thirty, torch and boto3 among them. Its default service is asked,
words and vectors fused by ranks. It is given each text with its vector, as a list, for without one it makes
up a vector of chance.
"""

import json
import logging
import sys
import time

import sage.neuromem.services.partitional  # noqa: F401  # it registers the services
from sage.neuromem.memory_collection import UnifiedCollection
from sage.neuromem.services import MemoryServiceRegistry

SERVICE = "inverted_vectorstore_combination"


def main() -> None:
    logging.disable(logging.ERROR)
    asked = json.load(sys.stdin)
    told = []
    for number, held in enumerate(asked["held"]):
        collection = UnifiedCollection(f"set-{number}")
        config = {"vector_dim": asked["dimension"], "fusion_strategy": "rrf"}
        service = MemoryServiceRegistry.create(SERVICE, collection=collection, config=config)
        ids = {
            service.insert(item["text"], vector=item["vector"], metadata={"id": item["id"]}): item["id"]
            for item in held["items"]
        }
        for question in held["questions"]:
            begun = time.process_time()
            found = service.retrieve(question["text"], vector=question["vector"], top_k=asked["depth"])
            ms = 1_000 * (time.process_time() - begun)
            told.append({"ids": [ids[each["id"]] for each in found], "ms": ms})
    print(json.dumps(told))


if __name__ == "__main__":
    main()
