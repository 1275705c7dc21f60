import pytest

from supervisor_memory import SupervisorMemory
from tests.interfaces.conftest import Run


@pytest.mark.usefixtures("backend")
def test_the_shell_tells_what_is_around_a_name_and_the_way_to_another(run: Run) -> None:
    with SupervisorMemory.from_env() as memory:
        memory.write("Harbour Board, also called dash_40, is built on top of fct_ships.", user_id="ada")
        memory.write("fct_ships is maintained by Nils Berg.", user_id="ada")
    told = run("relations", "dash_40", "-u", "ada", "--to", "Nils Berg").stdout
    assert told.startswith("dash_40 (also Harbour Board)\n")
    assert "\n  Harbour Board reads_from fct_ships [" in told
    assert "\n  made from: identifier fct_ships\n" in told
    assert "\n  the way to Nils Berg\n    Harbour Board reads_from fct_ships: Harbour Board, also" in told
    page = run("relations", "dash_40", "-u", "ada", "-n", "1", "--json").json
    assert (len(page["neighbours"]), page["next"]) == (1, None)
    assert run("relations", "nobody", "-u", "ada").stdout == "no record names nobody\n"
