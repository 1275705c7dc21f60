"""The chat models of LangChain are wrapped once, and can be unwrapped."""

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from supervisor_memory import SupervisorMemory
from supervisor_memory.host import prompts
from tests.host.graphs import asking, config, model, team

METHODS = ("generate", "agenerate", "stream", "astream", "_chat_model_stream_v3", "_achat_model_stream_v3")


def methods() -> list[object]:
    return [*(vars(BaseChatModel)[name] for name in METHODS), vars(BaseTool)["run"], vars(BaseTool)["arun"]]


def test_what_is_wrapped_already_is_not_wrapped_again() -> None:
    prompts.install()
    first = methods()
    prompts.install()
    assert methods() == first


def test_unwrapped_models_are_those_of_langchain_and_graphs_run_without_notes(
    memory: SupervisorMemory,
) -> None:
    boss = model("done", "done")
    graph = memory.attach(team(boss, {})).compile()
    try:
        prompts.uninstall()
        assert all("supervisor_memory" not in getattr(each, "__module__", "") for each in methods())
        assert not any(hasattr(each, "__supervisor_memory_original__") for each in methods())
        graph.invoke(asking(), config(user_id="ada"))
        assert "<memory id=" not in boss.prompts[0]
    finally:
        prompts.install()
    graph.invoke(asking(), config(user_id="ada"))
    assert "<memory id=" in boss.prompts[1]


def test_a_model_that_overrides_a_method_is_wrapped_where_it_does(memory: SupervisorMemory) -> None:
    from supervisor_memory.testing.scripted import ScriptedModel

    class Own(ScriptedModel):
        def generate(self, messages, *args, **options):  # type: ignore[no-untyped-def]
            return super().generate([list(each) for each in messages], *args, **options)

    boss = Own(script=["done"])
    memory.attach(team(boss, {})).compile().invoke(asking(), config(user_id="ada"))
    assert boss.prompts[0].count("<memory id=") == 1
