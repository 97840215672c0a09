"""The Remote agents page: what it shows, what it never shows, and the test of a connection."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from subagents import registry, services
from subagents.actor import Actor
from subagents.kinds import REMOTE
from subagents.models import RemoteAgent
from subagents.remote_agents import callee

pytestmark = pytest.mark.django_db
SECRET = "Bearer 0123456789abcd1f3a"
TESTER = Actor(label="test")


@pytest.fixture
def administrator(client):
    user = User.objects.create_superuser("ada", password="x")
    client.force_login(user)
    return client


def made(**fields):
    document = {
        "name": "coder",
        "description": "Writes code.",
        "graph_id": "coder",
        "url": "https://agents.example",
        "headers": {"Authorization": SECRET},
    }
    return services.create(REMOTE, {**document, **fields}, actor=TESTER)


def page(name="changelist", *args):
    return reverse(f"admin:subagents_remoteagent_{name}", args=args)


def typed(**fields):
    plain = {
        "description": "Writes code.",
        "graph_id": "coder",
        "url": "https://agents.example",
        "enabled": "on",
        "use_env_key": "auto",
        "update_strategy": "interrupt",
        "mode": "isolated",
        "notify_parent": "on",
    }
    return {**plain, **fields}


def test_an_agent_is_made_with_headers_that_no_page_shows_again(administrator, write_config):
    write_config("")
    sent = typed(name="Coder", **{"headers-rows": "3", "headers-0-name": "Authorization", "headers-0-value": SECRET})
    assert administrator.post(page("add"), sent).status_code == 302
    stored = registry.current(max_age=0).remotes[0].agent
    assert callee(stored, {}).headers == {"Authorization": SECRET}
    shown = [
        administrator.get(page()),
        administrator.get(page("change", "managed-coder")),
        administrator.get(page("history", "managed-coder")),
        administrator.get(page("version", "managed-coder", 1)),
        administrator.get(page("add") + "?from=managed-coder"),
        administrator.get(page("delete", "managed-coder")),
    ]
    for answer in shown:
        assert answer.status_code == 200
        assert "0123456789" not in answer.content.decode()
        assert "sealed:" not in answer.content.decode()
    assert "••••1f3a" in shown[1].content.decode()
    assert "agents.example" in shown[0].content.decode()


def test_a_header_is_kept_replaced_and_removed(administrator, write_config):
    write_config("")
    agent = made()
    change = page("change", "managed-coder")
    kept = {"headers-rows": "4", "headers-0-name": "Authorization", "headers-0-mask": "••••1f3a"}
    administrator.post(change, typed(version=agent.version, description="Writes good code.", **kept))
    agent = registry.current(max_age=0).remotes[0].agent
    assert (agent.description, callee(agent, {}).headers) == ("Writes good code.", {"Authorization": SECRET})
    administrator.post(change, typed(version=agent.version, **kept, **{"headers-0-value": "Bearer other"}))
    agent = registry.current(max_age=0).remotes[0].agent
    assert callee(agent, {}).headers == {"Authorization": "Bearer other"}
    administrator.post(change, typed(version=agent.version, **kept, **{"headers-0-gone": "on"}))
    assert registry.current(max_age=0).remotes[0].agent.headers == {}


def test_another_address_asks_for_the_secret_again(administrator, write_config):
    write_config("")
    agent = made()
    kept = {"headers-rows": "4", "headers-0-name": "Authorization", "headers-0-mask": "••••1f3a"}
    answer = administrator.post(
        page("change", "managed-coder"), typed(version=agent.version, url="https://evil.example", **kept)
    )
    assert answer.status_code == 422
    assert "Enter it again" in answer.content.decode()
    assert registry.current(max_age=0).remotes[0].agent.url == "https://agents.example"


def test_an_agent_of_the_file_is_shown_and_not_changed(administrator, write_config):
    write_config(
        "async_subagents: [{name: far, description: Works far away., graph_id: g, url: 'https://a.example',"
        " headers: {X-Key: plain-in-the-file}}]"
    )
    answer = administrator.get(page("change", "config-far"))
    assert answer.status_code == 200
    assert "plain-in-the-file" not in answer.content.decode()
    assert administrator.post(page("change", "config-far"), typed()).status_code == 403
    assert "Remote" in administrator.get(reverse("admin:subagents_managedsubagent_changelist")).content.decode()


def test_a_broken_row_is_shown_without_its_secrets_and_can_be_repaired(administrator, write_config, backend, settings):
    write_config("")
    made()
    if backend == "file":
        path = settings.DEER_FLOW_HOME / "remote-agents" / "coder.json"
        path.write_text(path.read_text().replace('"interrupt"', '"dance"'))
    else:
        RemoteAgent.objects.update(update_strategy="dance", version=2)
    version = registry.current(fresh=True).remotes[0].agent.version
    answer = administrator.get(page("change", "managed-coder"))
    assert answer.status_code == 200
    assert "sealed:" not in answer.content.decode()
    assert administrator.post(page("change", "managed-coder"), typed(version=version)).status_code == 302
    assert registry.current(max_age=0).remotes[0].state == "active"


def test_somebody_without_the_permission_neither_sees_nor_tests(client, write_config):
    write_config("")
    made()
    user = User.objects.create_user("bob", password="x", is_staff=True)
    client.force_login(user)
    assert client.get(page()).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_remoteagent"))
    assert client.get(page("change", "managed-coder")).status_code == 200
    assert client.post(page("try", "managed-coder")).status_code == 403


@pytest.fixture
def server():
    """Answers every POST with the assistants it was told, and keeps what it was sent."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.server.seen.append(self.headers)
            body = self.server.body
            self.send_response(self.server.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words):
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    found.seen, found.status, found.body = [], 200, b'[{"assistant_id": "a"}]'
    thread = Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b'[{"assistant_id": "a"}]', "answers and knows its graph"),
        (200, b"[]", "knows no graph or assistant called coder"),
        (401, b'{"detail": "no"}', "does not accept the credentials"),
        (200, b"<html>", "does not answer like an Agent Protocol server"),
    ],
)
def test_the_test_of_a_connection_says_what_is_wrong_and_is_remembered(
    administrator, write_config, server, status, body, words
):
    write_config("outbound: {allow_private: [127.0.0.1]}")
    made(url=f"http://127.0.0.1:{server.server_port}")
    server.status, server.body = status, body
    answer = administrator.post(page("try", "managed-coder"), follow=True)
    assert words in answer.content.decode()
    assert server.seen[0]["authorization"] == SECRET
    listed = administrator.get(page()).content.decode()
    assert ("answered" if "answers and" in words else "failed") in listed


def test_without_the_operator_s_leave_no_private_address_is_asked(administrator, write_config, server):
    write_config("")
    made(url=f"http://127.0.0.1:{server.server_port}")
    answer = administrator.post(page("try", "managed-coder"), follow=True)
    assert "may not be reached" in answer.content.decode()
    assert server.seen == []
