from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.test import Client

from runs.event_types import EventType
from tests.web import histories
from tests.web.conftest import BACKEND
from tests.web.log_writer import LogWriter, person

pytestmark = pytest.mark.django_db
INLINE = re.compile(r"<script(?![^>]*(\bsrc=|type=\"application/json\"))|\son[a-z]+=|javascript:|<style|\sstyle=", re.I)


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_front_door_leads_to_the_chat(browser):
    assert browser.get("/").headers["Location"] == "/chat/"


@pytest.mark.parametrize("path", ["/chat/", "/chat/01890000-0000-7000-8000-000000000000/", "/chat/connect-a-model/"])
def test_a_stranger_is_asked_to_sign_in_and_brought_back(path):
    assert Client().get(path).headers["Location"] == f"/login/?next={path}"


def test_signing_in_leads_to_the_chat(db):
    person("lin", password="correct horse")
    answer = Client().post("/login/", {"username": "lin", "password": "correct horse"})
    assert answer.headers["Location"] == "/chat/"


def test_the_login_page_says_what_was_wrong(lin):
    page = Client().post("/login/", {"username": "lin", "password": "wrong"}).content.decode()
    assert 'role="alert"' in page


def test_the_thread_of_another_person_looks_like_one_that_is_not_there(log):
    client = Client()
    client.force_login(person("other"), backend=BACKEND)
    foreign, absent = client.get(f"/chat/{log.thread.pk}/"), client.get(f"/chat/{uuid4()}/")
    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.content == absent.content


def test_conversations_are_grouped_by_whether_they_run(browser, lin):
    busy, idle = LogWriter(lin, title="Busy one"), LogWriter(lin, title="Idle one")
    busy.run()
    page = text(browser, "/chat/")
    assert page.index(">Running<") < page.index("Busy one") < page.index(">Earlier<") < page.index("Idle one")
    assert text(browser, f"/chat/threads?current={idle.thread.pk}").count('aria-current="page"') == 1


def test_the_list_of_another_person_is_not_shown(log):
    client = Client()
    client.force_login(person("other"), backend=BACKEND)
    assert "A conversation" not in text(client, "/chat/threads")
    assert Client().get("/chat/threads").status_code == 401


def test_titles_are_escaped_everywhere(browser, lin):
    thread = LogWriter(lin, title="</title><script>alert(1)</script>").thread
    assert "<script>alert" not in text(browser, f"/chat/{thread.pk}/")


@pytest.mark.parametrize("path", ["/login/", "/chat/", "/chat/{thread}/", "/chat/connect-a-model/"])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_page_needs_inline_code_or_styles(browser, lin, path, language):
    thread = histories.endings(lin, at=datetime.now(UTC)).thread
    client = Client() if path == "/login/" else browser
    client.cookies["django_language"] = language
    assert INLINE.search(text(client, path.format(thread=thread.pk))) is None


def test_the_server_paints_the_theme_that_was_chosen(browser):
    assert "data-theme" not in text(browser, "/chat/")
    answer = browser.post("/theme/", {"theme": "dark", "next": "/chat/"})
    assert answer.headers["Location"] == "/chat/"
    assert 'data-theme="dark"' in text(browser, "/chat/")
    browser.cookies["theme"] = '"><script>'
    assert "data-theme" not in text(browser, "/chat/")


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", ""])
def test_choosing_a_theme_never_leads_off_the_site(browser, target):
    assert browser.post("/theme/", {"theme": "dark", "next": target}).headers["Location"] == "/chat/"


def test_a_subagents_page_has_no_composer_and_leads_back(browser, lin, log):
    child = LogWriter(lin, title="A task")
    child.thread.parent_run = log.run()
    child.thread.save()
    child.run(definition={"display_name": "Fact checker"})
    page = text(browser, f"/chat/{child.thread.pk}/")
    assert '"speaker": "Fact checker"' in page
    assert "<textarea" not in page
    assert f'href="/chat/{log.thread.pk}/"' in page


def test_every_error_page_has_our_look_and_a_way_on(browser):
    missing = browser.get("/nowhere/")
    assert missing.status_code == 404
    assert b'href="/chat/"' in missing.content


def test_the_broken_server_page_needs_nothing_that_may_be_broken(rf):
    from django.views.defaults import permission_denied, server_error

    for answer, status in ((server_error(rf.get("/")), 500), (permission_denied(rf.get("/"), Exception()), 403)):
        assert answer.status_code == status
        assert b'href="/chat/"' in answer.content


def test_an_out_of_date_page_is_explained(lin):
    client = Client(enforce_csrf_checks=True)
    assert b"out of date" in client.post("/login/", {"username": "lin"}).content


def test_every_word_of_the_page_is_there_in_both_forms_where_it_counts():
    from runs.web.strings import page_strings

    words = page_strings()
    singular = {key.removesuffix("_one") for key in words if key.endswith("_one")}
    assert singular == {key.removesuffix("_other") for key in words if key.endswith("_other")}


def test_the_pages_modules_use_no_word_that_the_server_does_not_send():
    from pathlib import Path

    from runs.web.strings import page_strings

    words = set(page_strings())
    plural = {key.removesuffix("_other") for key in words if key.endswith("_other")}
    for module in Path("runs/static/runs").glob("*.js"):
        source = module.read_text(encoding="utf-8")
        assert set(re.findall(r"\bt\('(\w+)'", source)) <= words, module.name
        assert set(re.findall(r"\bmany\('(\w+)'", source)) <= plural, module.name


def test_every_event_type_has_its_case_in_the_page():
    from pathlib import Path

    source = Path("runs/static/runs/state.js").read_text(encoding="utf-8")
    handled = set(re.findall(r"^  '([a-z._]+)': on", source, re.M))
    assert handled == set(map(str, EventType))
