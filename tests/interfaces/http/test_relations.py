from supervisor_memory import SupervisorMemory
from tests.interfaces.http.conftest import Client


def test_relations_are_of_the_tokens_user_alone(memory: SupervisorMemory, client: Client) -> None:
    memory.write("fct_ships reads from raw_ships.", user_id="ada")
    memory.write("raw_ships is maintained by Nils Berg.", user_id="ada")
    memory.write("raw_ships is maintained by Eve Holm.", user_id="bo")

    told = client.get("/v1/relations", "ada", about="fct_ships", to="Nils Berg")

    assert [each["destination"]["name"] for each in told["path"]] == ["raw_ships", "Nils Berg"]
    assert told["upstream"] == [{"name": "raw_ships", "kind": "identifier", "record_id": None}]
    assert "Eve" not in str(told)
    of_bo = {"user_id": "bo", "about": "raw_ships"}
    assert client("GET", "/v1/relations", "ada", params=of_bo).status_code == 403
    assert client("GET", "/v1/relations", "ada", params={"about": "x" * 300}).status_code == 422
