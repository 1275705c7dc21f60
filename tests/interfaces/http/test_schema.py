"""Requests made up from the OpenAPI document, right and wrong: the server never fails, and keeps its word.

SCHEMATHESIS_CASES: how many requests of each operation; `make slow` asks for more.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app
from tests.breadth import size
from tests.interfaces.http.conftest import ADDRESS, SETTING, TOKENS, fill
from tests.interfaces.http.operations import operations

CASES = int(os.environ.get("SCHEMATHESIS_CASES", "2"))
EACH_BOTH_WAYS = bool(size(1, less=0))


def test_the_page_tells_of_every_operation_with_its_path(tmp_path: Path) -> None:
    page = Path(__file__).parents[3].joinpath("docs/http.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    with SupervisorMemory(Settings(backend="sqlite", path=tmp_path, embedding_model="none")) as memory:
        for each in operations(create_app(memory, tokens=Tokens.read(SETTING))):
            [row] = [row for row in rows if f"`{each.name}`" in row]
            shortened = each.path.replace("/v1/review/{id}", "…")
            assert each.path in row or f"`{shortened}`" in row, each.name
            assert each.method in row


@pytest.mark.parametrize("mode", ["right", "wrong"])  # `make test` asks each operation in one of the two
def test_whatever_is_asked_the_answer_is_one_that_the_document_tells_of(tmp_path: Path, mode: str) -> None:
    import schemathesis  # here, since only one of the processes that collect runs this
    from schemathesis.core.result import Ok

    options = {"embedding_model": "none", "queue_worker": False}
    with SupervisorMemory(Settings(backend="sqlite", path=tmp_path, **options)) as memory:
        ids = fill(memory, "ada", "ada")
        app = create_app(memory, tokens=Tokens.read(SETTING), rate=10**9)
        headers = {"Authorization": f"Bearer {TOKENS['operator']}", "Host": "127.0.0.1"}
        document = schemathesis.openapi.from_asgi("/openapi.json", app, headers=headers)
        statuses: dict[str, Counter[int]] = {}
        asked_otherwise = set()
        for number, found in enumerate(document.get_all_operations()):
            assert isinstance(found, Ok)
            told = found.ok().definition.raw
            can_be_wrong = "parameters" in told or "requestBody" in told
            if can_be_wrong and not EACH_BOTH_WAYS and (mode == "wrong") != bool(number % 2):
                asked_otherwise.add(told["operationId"])
            elif can_be_wrong or mode == "right":
                statuses[told["operationId"]] = _statuses(found.ok(), mode, headers, ids["kept"])
        every = {operation.name for operation in operations(app)}
        assert every - asked_otherwise - set(statuses) <= {"healthz", "health", "metrics"}
        total = Counter(status for each in statuses.values() for status in each.elements())
        assert total[200] > CASES if mode == "right" else total[422] > CASES


def _statuses(operation: Any, mode: str, headers: dict[str, str], record_id: str) -> Counter[int]:
    """What the requests of one operation were answered, every other of them about a record that there is."""
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi import checks

    kept = [
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    generation = GenerationMode.POSITIVE if mode == "right" else GenerationMode.NEGATIVE
    seen: Counter[int] = Counter()

    @given(case=operation.as_strategy(generation_mode=generation))
    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        if "id" in case.path_parameters and seen.total() % 2:
            case.path_parameters["id"] = record_id
        case.headers.update(headers)
        answer = case.call(base_url=ADDRESS)
        seen[answer.status_code] += 1
        assert answer.status_code < 500, answer.text
        case.validate_response(answer, checks=kept)

    ask()
    return seen
