"""HippoRAG 1 and 2: PageRank solved by hand, links of the question, and hops that words do not show."""

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.flow import Recalling, Turn
from supervisor_memory.model.records import Filter, Hit, Hits, Query, Scope, Source
from supervisor_memory.recipes import hipporag, hipporag2
from supervisor_memory.recipes.hipporag import linked
from supervisor_memory.recipes.hipporag2 import Fact, beginnings
from supervisor_memory.recipes.operators.phrases import (
    PHRASES,
    TRIPLES,
    asked_in,
    phrases_of,
    triples_in,
    walked,
)
from supervisor_memory.signals.pagerank import pagerank
from supervisor_memory.testing.ports import ports, record
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case

SETTINGS = Settings(embedding_model="hashing", queue_worker=False)
# r0-e0, r0-e1, r1-e1, r1-e2, r2-e2: records 0, 1, 2 and names 3, 4, 5
CHAIN = (np.array([0, 0, 1, 1, 2]), np.array([3, 4, 4, 5, 5]))


@every_case(("damping", "records"), [(0.5, (0.30941, 0.02233, 0.00160)), (0.85, (0.32090, 0.10802, 0.03055))])
def test_a_chain_is_walked_as_it_is_solved_exactly(damping: float, records: tuple[float, ...]) -> None:
    """The figures are of (I - dP)x = (1 - d)s, solved by others, with the walk begun at e0."""
    reset = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    at = pagerank(CHAIN, np.ones(5), reset, damping=damping)
    assert at[:3] == pytest.approx(records, abs=1e-5)
    assert at.sum() == pytest.approx(1.0)
    again = walked([["e0", "e1"], ["e1", "e2"], ["e2"]], {}, {"e0": 1.0}, records=[0.0] * 3, damping=damping)
    assert again == pytest.approx(records, abs=1e-5)


@every_case("seed", range(20))
def test_any_graph_is_walked_as_it_is_solved_exactly(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count, edges = 30, 40
    ends = draw.integers(0, count, edges), draw.integers(0, count, edges)
    weights, reset = draw.random(edges) + 0.1, draw.random(count)
    matrix = np.zeros((count, count))
    for one, other, weight in zip(*ends, weights, strict=True):
        matrix[other, one] += weight
        matrix[one, other] += weight
    degree, start = matrix.sum(axis=0), reset / reset.sum()
    steps = np.where(degree > 0, matrix / np.where(degree > 0, degree, 1), start[:, None])
    solved = np.linalg.solve(np.eye(count) - 0.7 * steps, 0.3 * start)
    assert pagerank(ends, weights, reset, damping=0.7) == pytest.approx(solved, abs=1e-7)


def test_names_begin_the_walk_by_the_mean_of_their_facts_over_their_holders() -> None:
    # kiel: 1.0 / 2 and .6 / 2, mean .4; lund: 1.0 / 1; pump: .6 / 3
    facts = [Fact("", ("kiel", "lund"), 1.0), Fact("", ("kiel", "pump"), 0.6)]
    found = beginnings(facts, {"kiel": 2, "lund": 1, "pump": 3}, 2)
    assert found == pytest.approx({"lund": 1.0, "kiel": 0.4})


@every_case("seed", range(10))
def test_a_group_is_walked_as_an_edge_between_each_two_of_it(seed: int) -> None:
    draw = np.random.default_rng(seed)
    groups = [draw.choice(12, size=size, replace=False) for size in (1, 2, 3, 5)]
    pairs = np.array([pair for each in groups for pair in combinations(each, 2)])
    ends, weights = draw.integers(0, 12, (2, 6)), draw.random(6) + 0.1
    reset = draw.random(12)
    every = (np.concatenate([ends[0], pairs[:, 0]]), np.concatenate([ends[1], pairs[:, 1]]))
    by_edges = pagerank(every, np.concatenate([weights, np.ones(len(pairs))]), reset, damping=0.5)
    members = np.repeat(np.arange(4), [len(each) for each in groups]), np.concatenate(groups)
    by_groups = pagerank((ends[0], ends[1]), weights, reset, damping=0.5, groups=members)
    assert by_groups == pytest.approx(by_edges, abs=1e-9)


def test_a_record_counts_what_its_names_count_and_joined_names_lead_on() -> None:
    # a-b-c in a line, begun at a, d = .5: (I - dP)x = (1 - d)s gives a 7/12, b 1/3, c 1/12
    held = [["a"], ["b"], ["c"], ["a", "c"]]
    found = walked(held, {("a", "b"): 1, ("b", "c"): 1, ("b", "gone"): 9}, {"a": 2.0}, damping=0.5)
    assert found == pytest.approx([7 / 12, 1 / 3, 1 / 12, 2 / 3], abs=1e-8)


def test_a_name_of_the_question_is_linked_to_the_one_that_shares_most_words() -> None:
    # {churn, cockpit} and {cockpit} share 1 of 2; nothing shares a word with "oslo"
    names = ["churn cockpit", "cockpit", "kiel"]
    assert linked(["cockpit"], names) == {"cockpit": ("cockpit", 1.0)}
    assert linked(["cockpit", "oslo"], names[::2]) == {"cockpit": ("churn cockpit", 0.5), "oslo": ("", 0.0)}


BRIDGE = [
    "The Falcon dashboard reads from mart_churn.",
    "Every night mart_churn is filled by job_nightjar.",
    "On call for job_nightjar is Ada Lind.",
    *(f"The {word} dashboard reads from mart_{word.lower()}." for word in ("Heron", "Osprey", "Wren")),
    *(f"On call for job_{word} is somebody else." for word in ("crow", "swift", "martin", "finch")),
    "Tea is at five on every Friday.",
]


@every_case(("name", "hops"), [("hipporag", 3), ("hipporag2", 2)])
def test_a_walk_finds_what_the_first_facts_name(name: str, hops: int) -> None:
    with SupervisorMemory(SETTINGS, recipe=name) as memory:
        memory.add_many(BRIDGE, user_id="ada", infer=False)
        memory.add_many(["On call for job_nightjar is Eve."], user_id="eve", infer=False)
        found = memory.search(
            "Who is it when the Falcon dashboard is stale?", user_id="ada", limit=4, threshold=0.0
        )
        assert {hit.record.content for hit in found} >= {*BRIDGE[:hops]}
        assert found[0].record.content == BRIDGE[0]
        assert {hit.record.user_id for hit in found} == {"ada"}
        assert found.notes[-1].startswith(f"{name} without a model: ")


@every_case("order", [hipporag.by_names, hipporag2.by_pagerank])
def test_what_was_said_is_joined_by_its_words(order: Any) -> None:
    told = [
        ("It rained all of Sunday.", "Max"),
        ("The bowl is blue.", "Lee"),
        ("I glazed a bowl at the class.", "Lee"),
        ("We went to the pottery class again.", "Kim"),
    ]
    hits = tuple(
        Hit(
            replace(record(text, id=str(n)), layer="history", source=Source("user", speaker=speaker)),
            parts={"cosine": 0.5},
        )
        for n, (text, speaker) in enumerate(told)
    )
    module = hipporag if order is hipporag.by_names else hipporag2
    asked = Query("Who went to pottery?", Filter(user_id="ada"))
    plan = Recalling(Turn(asked.text, Scope("ada"), purpose="hits"), query=asked, hits=Hits(hits))
    found = order(module.Constants())(plan, ports().read_store()).hits
    # "class" joins the glazed one to the first, "bowl" the blue one to that; nothing the rain
    assert [hit.record.content.split()[1] for hit in found] == ["went", "glazed", "bowl", "rained"]


def test_a_fact_by_itself_is_joined_by_its_names_and_what_was_said_by_its_words() -> None:
    fact = record("Ada Lind owns mart_churn.")
    assert phrases_of(fact) == ("mart_churn", "ada lind")
    said = replace(fact, layer="history", source=Source("user", speaker="Kim"))
    assert {*phrases_of(said)} == {"kim", "ada", "lind", "own", "mart_churn", "mart", "churn"}
    read = replace(said, metadata={TRIPLES: [["Ada Lind", "owns", "mart_churn"]]})
    assert phrases_of(read) == ("mart_churn", "ada lind")
    assert asked_in("Who owns the Falcon?", [fact]) == ("falcon",)
    assert asked_in("Who owns the Falcon?", [fact, said]) == ("falcon", "own")


def test_a_model_tells_the_triples_and_keeps_the_facts_that_help() -> None:
    triples = json.dumps({"triples": [["Falcon", "reads from", "churn mart"], ["x"], ["", "is", "y"], "z"]})
    other = json.dumps({"triples": [["churn mart", "is filled by", "Nightjar"]]})
    model = ScriptedModel(script=[triples, other, "{}", '{"facts": [2]}', '{"facts": []}', "nonsense"])
    with SupervisorMemory(SETTINGS, recipe="hipporag2", llm=model) as memory:
        texts = ["Falcon reads from the churn mart.", "Nightjar fills the churn mart.", "Tea at five."]
        first, second, third = (memory.add_many([text], user_id="ada", infer=False)[0].id for text in texts)
        assert memory.get(first).metadata[TRIPLES] == [["Falcon", "reads from", "churn mart"]]
        assert {"falcon", "churn mart"} <= {*memory.get(first).metadata[PHRASES]}
        found = [
            memory.search("What of Falcon, and the mart that Nightjar fills?", user_id="ada", threshold=0.0)
            for _ in range(3)
        ]
        assert {"Falcon reads from churn mart", "churn mart is filled by Nightjar"} == {
            line.partition(". ")[2] for line in model.prompts[3].splitlines()[-2:]
        }
        assert found[0][2].record.id == third
        assert {hit.record.id for hit in found[0]} == {first, second, third}
        # where no fact helps meaning alone decides: the parts are the likeness, from 0 to 1
        assert (found[1][0].parts["hipporag2"], found[1][-1].parts["hipporag2"]) == (1.0, 0.0)
        assert 0.0 < found[2][0].parts["hipporag2"] < 1.0


@every_case("told", [None, "x", [["a", "b"]], [["a", 1, "c"]], [["a", "b", " "]]])
def test_what_is_no_triple_is_left_out(told: object) -> None:
    assert triples_in(told) == []
