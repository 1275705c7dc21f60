"""A person shares a record with the team from its page, after seeing who would read it."""

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app
from tests.interfaces.dashboard.conftest import REVIEWER, TOKENS, Visitor


def test_a_person_shares_a_definition_with_the_team_after_seeing_who_reads_it() -> None:
    with SupervisorMemory(Settings(embedding_model="none", team="flights")) as memory:
        mine = memory.write("the night feed means the one that Meridian Air sends", user_id="ada")
        about = memory.write("The user lives in Rome.", user_id="ada", kind="user-profile")
        told = f"{REVIEWER}:{TOKENS['operator']}:*:write, bo:{TOKENS['bo']}:ada:write"
        app = create_app(memory, tokens=Tokens.read(told), rate=100_000)
        visitor, bound = Visitor(app, "operator"), Visitor(app, "bo")
        assert "Share with the team" in visitor.text(f"/dashboard/records/{mine.id}")
        assert "Share with the team" not in visitor.text(f"/dashboard/records/{about.id}")
        assert "Share with the team" not in bound.text(f"/dashboard/records/{mine.id}")
        page = visitor.text(f"/dashboard/records/{mine.id}/share")
        assert "All users of the team flights would read it" in page
        assert "These are no names of people: Meridian Air" in page

        path, form = f"/dashboard/records/{mine.id}/share", {"on-erase": "erase", "version": "1"}
        ticked = {**form, "names-ok": "yes"}
        assert visitor.post(path, **form).status_code == 422, "nobody said that these are no names"
        assert visitor.post(path, **{**ticked, "version": "7"}).status_code == 409
        assert visitor.post(path, **{**ticked, "on-erase": ""}).status_code == 422
        assert bound.post(path, **ticked).status_code == 403, "it concerns all users"
        assert bound.get(path).status_code == 403
        assert memory.review.shared() == []

        assert visitor.post(path, **ticked).status_code == 303
        [shared] = memory.review.shared()
        page = visitor.get(f"/dashboard/records/{shared.id}").text
        assert "team:flights" in page
        assert "/users/forget" not in page
        assert "Share with the team" not in page
        visitor.post(f"/dashboard/records/{shared.id}/delete")
        assert memory.review.shared() == []
        assert 'value="team:flights"' not in visitor.get("/dashboard/experience").text
