"""A-Mem: notes, links and what changes in the neighbours, by the published code and a scripted model."""

import json
import math

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import EMBEDDED_AS
from supervisor_memory.recipes.a_mem import NOTE, PUBLISHED, framed
from supervisor_memory.recipes.operators.links import LINKS
from supervisor_memory.testing.scripted import ScriptedModel
from tests.cases import every_case
from tests.recipes.vectors import Given

SETTINGS = Settings(embedding_model="none", queue_worker=False)
ANGLES = {"depot": 0, "pump": 40, "pipe": 50, "tea": 90}  # degrees


def embedder() -> Given:
    return Given(
        {word: (math.cos(math.radians(at)), math.sin(math.radians(at))) for word, at in ANGLES.items()}
    )


def note(*keywords: str, context: str = "About water.", tags: tuple[str, ...] = ("works",)) -> str:
    return json.dumps({"keywords": keywords, "context": context, "tags": tags})


def test_a_note_is_embedded_as_the_published_code_writes_it() -> None:
    # memory_layer.py, add_note: "content:" + … + " context:" + … + " keywords: " + … + " tags: " + …
    told = framed({"keywords": ["Kiel", "flood"], "context": "A depot.", "tags": ["works", "water"]})
    assert told[EMBEDDED_AS].replace("{content}", "The depot floods.") == (
        "content:The depot floods. context:A depot. keywords: Kiel, flood tags: works, water"
    )


def test_without_a_model_words_are_keywords_and_what_is_near_enough_is_linked() -> None:
    given = embedder()
    with SupervisorMemory(SETTINGS, recipe="a_mem", embedder=given) as memory:
        texts = [
            "The depot in Kiel floods.",
            "Then tea is at five.",
            "A pump came.",
            "The pipe broke.",
        ]
        depot, tea, pump, pipe = (memory.add_many([t], user_id="ada", infer=False)[0].id for t in texts)
        assert (
            "content:The depot in Kiel floods. context:General keywords: depot, Kiel, floods tags: "
            in given.texts
        )
        # cosines: pump-depot cos 40° = .766, pump-tea cos 50° = .643; pipe-pump cos 10° = .985,
        # pipe-tea cos 40° = .766, pipe-depot cos 50° = .643. From .7 on they are linked, the nearest first.
        links = {id: memory.get(id).metadata.get(LINKS) for id in (depot, tea, pump, pipe)}
        assert links == {depot: None, tea: None, pump: [depot], pipe: [pump, tea]}
        found = memory.search("the pipe", user_id="ada", threshold=0.0, limit=10)
        assert [hit.record.id for hit in found] == [pipe, pump, tea, depot]
        assert "the nearest notes from a cosine of .7" in found.notes[-1]


def test_what_a_hit_links_to_comes_behind_all_hits() -> None:
    with SupervisorMemory(
        SETTINGS, recipe=PUBLISHED.recipe(top_k=1, linked=1), embedder=embedder()
    ) as memory:
        for text in ("A pump came.", "Then tea is at five.", "The pipe broke."):
            memory.add_many([text], user_id="ada", infer=False)
            memory.add_many([text], user_id="bob", infer=False)
        found = memory.search("the pipe", user_id="ada", threshold=0.0, limit=10)
        assert [(hit.record.content, hit.found) for hit in found] == [
            ("The pipe broke.", None),
            ("A pump came.", "linked"),
        ]
        assert {hit.record.user_id for hit in found} == {"ada"}
        memory.delete(found[1].record.id, user_id="ada")
        again = memory.search("the pipe", user_id="ada", threshold=0.0, limit=10)
        assert [hit.record.content for hit in again] == ["The pipe broke.", "Then tea is at five."]


def test_the_model_describes_links_and_changes_the_right_neighbour() -> None:
    """The packaged code takes a place among the nearest for a place among all notes; ids are meant."""
    given = embedder()
    evolved = json.dumps(
        {
            "links": [1, 7, "x"],
            "tags": ["repair"],
            "neighbours": [{"note": 2, "context": "Tea and pipes.", "tags": ["kitchen"]}, {"note": 9}, "x"],
        }
    )
    none = json.dumps({"links": [], "tags": [], "neighbours": []})
    model = ScriptedModel(
        script=[
            note("depot"),
            note("pump"),
            none,
            note("tea"),
            none,
            note("pipe", context="A pipe."),
            evolved,
        ]
    )
    with SupervisorMemory(SETTINGS, recipe="a_mem", embedder=given, llm=model) as memory:
        texts = ["The depot floods.", "A pump came.", "Then tea is at five.", "The pipe broke."]
        depot, pump, tea, pipe = (memory.add_many([t], user_id="ada", infer=False)[0].id for t in texts)
        assert (
            "1. A pump came. (context: About water.; tags: works)\n2. Then tea is at five."
            in model.prompts[-1]
        )
        assert memory.get(pipe).metadata[LINKS] == [pump]
        assert memory.get(pipe).metadata[NOTE]["tags"] == ["repair"]
        assert memory.get(tea).metadata[NOTE] == {
            "keywords": ["tea"],
            "context": "Tea and pipes.",
            "tags": ["kitchen"],
        }
        assert memory.get(pump).version == memory.get(depot).version == 1
        assert given.texts[-2:] == [
            "content:The pipe broke. context:A pipe. keywords: pipe tags: repair",
            "content:Then tea is at five. context:Tea and pipes. keywords: tea tags: kitchen",
        ]


@every_case("answer", ["no", "{}", '{"keywords": 3, "context": [], "tags": [1]}', "[1]"])
def test_an_answer_that_describes_nothing_leaves_the_note_to_the_rules(answer: str) -> None:
    with SupervisorMemory(
        SETTINGS, recipe="a_mem", embedder=embedder(), llm=ScriptedModel(script=[answer] * 4)
    ) as memory:
        done = memory.add_many(["The depot in Kiel floods.", "A pump came."], user_id="ada", infer=False)
        assert memory.get(done[0].id).metadata[NOTE] == {
            "keywords": ["depot", "Kiel", "floods"],
            "context": "General",
            "tags": [],
        }
        assert LINKS not in memory.get(done[1].id).metadata
