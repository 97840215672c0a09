"""Remote agents as definitions: what they may say, how their headers are kept, and who holds which name."""

from __future__ import annotations

import json

import pytest

from engine.config.connections import EnvKeyPolicy
from subagents import registry, remote_contacts, sealing, services
from subagents.actor import Actor
from subagents.definitions import Source
from subagents.errors import InvalidDefinition, NameTaken
from subagents.kinds import AGENT, REMOTE, SUBAGENT
from subagents.matching import Refusal
from subagents.models import RemoteAgent, Revision
from subagents.remote_agents import callee, validate_remote

pytestmark = pytest.mark.django_db
TESTER = Actor(label="test")
SECRET = "Bearer 0123456789abcd1f3a"
CODER = {
    "name": "coder",
    "description": "Writes code.",
    "graph_id": "coder",
    "url": "https://agents.example/x",
    "headers": {"Authorization": SECRET},
}


def made(**fields):
    return services.create(REMOTE, {**CODER, **fields}, actor=TESTER)


def remotes():
    return {(one.name, one.source.value): one for one in registry.current(max_age=0).remotes}


def test_a_header_s_value_is_stored_sealed_shown_as_a_mask_and_opened_only_to_be_sent(write_config):
    write_config("")
    agent = made()
    row = RemoteAgent.objects.get()
    stored = json.dumps([row.headers, *Revision.objects.values_list("document", flat=True)])
    assert "0123456789" not in stored
    assert agent.masked_headers == {"Authorization": "••••1f3a"}
    assert callee(agent, {}).headers == {"Authorization": SECRET}
    assert "0123456789" not in repr(agent) + repr(callee(agent, {}))


def test_a_short_value_shows_nothing_of_itself(write_config):
    write_config("")
    assert made(headers={"X-Key": "abc1f3a"}).masked_headers == {"X-Key": "••••"}


def test_a_mask_that_comes_back_keeps_what_is_stored_and_anything_else_replaces_it(write_config):
    write_config("")
    first = made()
    kept = services.update(
        REMOTE,
        "coder",
        {"headers": {"authorization": "••••1f3a", "X-Team": "blue"}},
        expected_version=first.version,
        actor=TESTER,
    )
    assert callee(kept, {}).headers == {"authorization": SECRET, "X-Team": "blue"}
    gone = services.update(
        REMOTE, "coder", {"headers": {"authorization": "", "X-Team": ""}}, expected_version=kept.version, actor=TESTER
    )
    assert callee(gone, {}).headers == {}


@pytest.mark.parametrize(
    "url", ["https://evil.example/x", "http://agents.example/x", "https://agents.example:444/x", None]
)
def test_a_secret_does_not_follow_to_another_address(write_config, url):
    write_config("")
    first = made()
    with pytest.raises(InvalidDefinition, match="Enter it again"):
        services.update(REMOTE, "coder", {"url": url}, expected_version=first.version, actor=TESTER)
    moved = services.update(
        REMOTE, "coder", {"url": "https://agents.example/y"}, expected_version=first.version, actor=TESTER
    )
    assert callee(moved, {}).headers == {"Authorization": SECRET}


def test_with_another_key_the_agent_is_one_broken_row(write_config):
    write_config("")
    made()
    sealing.configure("another installation's key")
    try:
        RemoteAgent.objects.update(version=7)
        found = remotes()["coder", "managed"]
    finally:
        from django.conf import settings

        sealing.configure(settings.FIELD_KEY)
    assert found.state == "invalid"
    assert "Enter it again" in found.problems[0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"graph_id": None}, "graph_id: this field is required"),
        ({"url": "ftp://x"}, "url: expected a URL"),
        ({"url": "https://me:pw@x"}, "must not hold a user name"),
        ({"headers": {"X Bad": "v"}}, "a header's name"),
        ({"headers": {"X": "a\nb"}}, "printable ASCII"),
        ({"headers": {"X": "ключ"}}, "printable ASCII"),
        ({"headers": {"X": "a\x00"}}, "headers"),
        ({"headers": [1]}, "headers"),
        ({"use_env_key": "maybe"}, "use_env_key: expected auto, true or false"),
        ({"update_strategy": "reject"}, "update_strategy"),
        ({"tools": []}, "tools: there is no such field"),
    ],
)
def test_what_breaks_the_rules_is_refused_with_the_field(fields, words):
    with pytest.raises(InvalidDefinition, match=words):
        validate_remote({**CODER, **fields})


def test_the_keys_of_newer_deepagents_are_taken():
    agent = validate_remote(
        {**CODER, "webhook": "https://h.example", "update_strategy": "enqueue", "notify_parent": False, "mode": "fork"}
    )
    assert (agent.update_strategy, agent.notify_parent, agent.mode) == ("enqueue", False, "fork")
    assert validate_remote({**CODER, "use_env_key": False}).use_env_key is EnvKeyPolicy.NEVER


def test_variables_of_the_file_are_expanded_in_header_values_only_and_only_to_be_sent(write_config, monkeypatch):
    write_config(
        "async_subagents:\n"
        "- {name: coder, description: Writes $HOME., graph_id: $G, url: 'https://a.example',"
        " headers: {Authorization: 'Bearer $AGENT_KEY'}}\n"
    )
    monkeypatch.delenv("AGENT_KEY", raising=False)
    registry.forget()
    entry = registry.current(fresh=True).remotes[0]
    assert (entry.state, str(entry.reason)) == (
        "unavailable",
        "These variables of its headers are not set: AGENT_KEY",
    )
    called = callee(entry.agent, {"AGENT_KEY": "k", "G": "no"})
    assert (called.headers, called.graph_id) == ({"Authorization": "Bearer k"}, "$G")
    assert entry.agent.masked_headers == {"Authorization": "••••"}


def test_whoever_names_agents_in_the_file_is_told_that_no_run_calls_them_yet(write_config):
    write_config("async_subagents: [{name: far, description: Works far away., graph_id: g}]\n")
    (problem,) = registry.current(fresh=True).problems
    assert (problem.path, str(problem.message)) == ("async_subagents", "this has no effect in this version yet")


def test_one_bad_entry_of_the_file_makes_only_itself_invalid(write_config):
    write_config(
        "async_subagents:\n- {name: good, description: Works., graph_id: g}\n"
        "- {name: bad, description: 12, graph_id: g, url: nowhere}\n"
    )
    found = remotes()
    assert found["good", "config"].state == "active"
    assert [entry.state for entry in found.values()].count("invalid") == 1


def test_one_name_space_holds_everything_that_can_be_called(write_config):
    write_config("")
    made(name="general-purpose2")
    services.create(SUBAGENT, {"name": "scout", "description": "Finds.", "system_prompt": "Look."}, actor=TESTER)
    for taken, holder in (("bash", Source.BUILTIN), ("scout", Source.MANAGED)):
        with pytest.raises(NameTaken) as refused:
            made(name=taken)
        assert refused.value.source is holder
    services.create(
        SUBAGENT, {"name": "general-purpose2", "description": "Finds.", "system_prompt": "Look."}, actor=TESTER
    )
    shadowed = remotes()["general-purpose2", "managed"]
    assert (shadowed.state, shadowed.shadowed_by) == ("shadowed", Source.MANAGED)
    write_config("async_subagents: [{name: far, description: Works far away., graph_id: g}]")
    with pytest.raises(NameTaken):
        made(name="far")


def test_an_agent_of_the_file_takes_the_name_of_a_managed_one_which_stays_listed(write_config):
    write_config("")
    made()
    write_config("async_subagents: [{name: coder, description: Works far away., graph_id: other}]")
    found = remotes()
    assert (found["coder", "config"].state, found["coder", "managed"].state) == ("active", "shadowed")
    assert registry.current().remote("coder").source is Source.CONFIG


def test_a_remote_agent_is_started_in_the_background_and_never_delegated_to(write_config):
    write_config("")
    made()
    now = registry.current(max_age=0)
    refused = registry.resolve_dispatch("coder", allowed=["coder", "general-purpose"], now=now)
    assert isinstance(refused, Refusal)
    assert "works elsewhere" in refused.text
    found = registry.resolve_dispatch("Coder", allowed=["coder"], now=now, in_background=True)
    assert (found.name, found.source) == ("coder", Source.REMOTE)


def test_the_scope_of_a_custom_agent_may_name_one(write_config):
    write_config("")
    made()
    services.create(AGENT, {"name": "boss", "system_prompt": "Lead.", "allowed_subagents": ["coder"]}, actor=TESTER)
    assert registry.current(max_age=0).agents[0].resolved == ("coder",)
    assert [agent.name for agent in services.named_by("coder")] == ["boss"]


def test_one_that_is_switched_off_is_nobody_s_to_call(write_config):
    write_config("")
    made()
    services.set_enabled(REMOTE, ["coder"], False, actor=TESTER)
    now = registry.current(max_age=0)
    assert now.remote("coder") is None
    assert "coder" not in now.catalogue.runnable


def test_what_is_deleted_takes_its_secrets_along(write_config):
    write_config("")
    agent = made()
    services.delete(REMOTE, "coder", expected_version=agent.version, actor=TESTER)
    newest = services.revisions(REMOTE, "coder")[0]
    assert newest.document["headers"] == {"Authorization": "••••1f3a"}


def test_a_copy_has_everything_but_the_headers(write_config):
    write_config("")
    made()
    copy = services.document_of(remotes()["coder", "managed"])
    assert (copy["name"], copy["url"], copy["headers"]) == ("coder-copy", CODER["url"], {})


def test_the_last_contact_is_kept_with_what_came_of_it(write_config):
    write_config("")
    agent = made(url="http://127.0.0.1:1/x")
    fault = remote_contacts.try_out(agent, registry.current(max_age=0).config)
    remote_contacts.note_contact("coder", fault)
    kept = remote_contacts.contacts(["coder"])["coder"]
    assert kept.fault == "address"
    assert "outbound.allow_private" in kept.sentence
    remote_contacts.note_contact("coder", None)
    assert remote_contacts.contacts(["coder"])["coder"].fault == ""
