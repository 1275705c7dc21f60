"""Signing in with a token, staying signed in by a cookie, and signing out."""

from fastapi import FastAPI

from tests.interfaces.dashboard.conftest import ADDRESS, PAGES, TOKENS, Visitor


def test_without_a_token_every_page_leads_to_the_door(app: FastAPI) -> None:
    stranger = Visitor(app)
    for page in PAGES:
        answer = stranger.get(f"/dashboard/{page}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/sign-in")
    assert stranger.get("/dashboard/sign-in").status_code == 200


def test_a_wrong_token_opens_nothing(app: FastAPI) -> None:
    stranger = Visitor(app)
    answer = stranger.post("/dashboard/sign-in", token="wrong-0123456789abcdef")
    assert answer.status_code == 401
    assert "This token is not known here." in answer.text
    assert "set-cookie" not in answer.headers
    assert stranger.get("/dashboard/inbox").status_code == 303


def test_the_token_is_kept_where_no_script_and_no_other_site_gets_at_it(app: FastAPI) -> None:
    answer = Visitor(app).post("/dashboard/sign-in", token=TOKENS["operator"])
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/inbox")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_signing_out_ends_it(visitor: Visitor) -> None:
    assert visitor.get("/dashboard/inbox").status_code == 200
    visitor.post("/dashboard/sign-out")
    assert visitor.get("/dashboard/inbox").status_code == 303


def test_a_request_from_outside_a_browser_may_use_a_bearer_token(app: FastAPI) -> None:
    tool = Visitor(app)
    tool.headers = {"Authorization": f"Bearer {TOKENS['operator']}"}
    assert tool.get("/dashboard/health").status_code == 200
    assert ADDRESS not in tool.get("/dashboard/health").text
