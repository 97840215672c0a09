"""Whatever is refused is refused everywhere, at the same path and with the same sentence.

The places: API, the page's forms, `manage.py subagents lint`, a file of the file backend, for subagents config.yaml.
"""

from __future__ import annotations

import io
import json
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client

from subagents import registry
from subagents.admin.agents.form import AgentForm
from subagents.admin.forms import SubagentForm
from subagents.api import examples
from subagents.kinds import AGENT, SUBAGENT
from tests.access.calling import is_problem

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.access.calling import Api
    from tests.subagents.conftest import WriteConfig

pytestmark = pytest.mark.django_db
# field, wrong value, path of the fault, its pointer
WRONG = [
    ("description", "", "description", "/description"),
    ("description", " \n ", "description", "/description"),
    ("description", "a\x00b", "description", "/description"),
    ("description", 7, "description", "/description"),
    ("description", "x" * 2_001, "description", "/description"),
    ("system_prompt", "", "system_prompt", "/system_prompt"),
    ("system_prompt", "x" * 200_001, "system_prompt", "/system_prompt"),
    ("display_name", "x" * 121, "display_name", "/display_name"),
    ("model", "", "model", "/model"),
    ("model", "m" * 301, "model", "/model"),
    ("model", [], "model", "/model"),
    ("tools", "bash", "tools", "/tools"),
    ("tools", ["bash", 7], "tools[1]", "/tools/1"),
    ("tools", {"bash": True}, "tools", "/tools"),
    ("tools", ["x" * 301], "tools[0]", "/tools/0"),
    ("tools", [f"t{number}" for number in range(501)], "tools", "/tools"),
    ("disallowed_tools", ["x" * 301], "disallowed_tools[0]", "/disallowed_tools/0"),
    ("disallowed_tools", "bash", "disallowed_tools", "/disallowed_tools"),
    ("skills", [""], "skills[0]", "/skills/0"),
    ("max_turns", 0, "max_turns", "/max_turns"),
    ("max_turns", 1_001, "max_turns", "/max_turns"),
    ("max_turns", -1, "max_turns", "/max_turns"),
    ("max_turns", 10**17, "max_turns", "/max_turns"),
    ("max_turns", "007", "max_turns", "/max_turns"),
    ("max_turns", True, "max_turns", "/max_turns"),
    ("max_turns", 1.5, "max_turns", "/max_turns"),
    ("max_turns", "many", "max_turns", "/max_turns"),
    ("timeout_seconds", 86_401, "timeout_seconds", "/timeout_seconds"),
    ("timeout_seconds", "30m", "timeout_seconds", "/timeout_seconds"),
    ("token_budget", 5, "token_budget", "/token_budget"),
    ("token_budget", {"max_tokens": -1}, "token_budget.max_tokens", "/token_budget/max_tokens"),
    ("token_budget", {"warn_threshold": 2}, "token_budget.warn_threshold", "/token_budget/warn_threshold"),
    ("token_budget", {"enabled": "yes"}, "token_budget.enabled", "/token_budget/enabled"),
    ("enabled", "yes", "enabled", "/enabled"),
]
WRONG_OF_AGENTS = [
    ("description", "x" * 2_001, "description", "/description"),
    ("description", "a\x00b", "description", "/description"),
    ("description", 7, "description", "/description"),
    ("system_prompt", "", "system_prompt", "/system_prompt"),
    ("system_prompt", "x" * 200_001, "system_prompt", "/system_prompt"),
    ("display_name", "x" * 121, "display_name", "/display_name"),
    ("model", "", "model", "/model"),
    ("model", True, "model", "/model"),
    ("tools", "bash", "tools", "/tools"),
    ("tools", ["x" * 301], "tools[0]", "/tools/0"),
    ("skills", [""], "skills[0]", "/skills/0"),
    ("skills", ["x" * 301], "skills[0]", "/skills/0"),
    ("subagent_enabled", "yes", "subagent_enabled", "/subagent_enabled"),
    ("allowed_subagents", "scout", "allowed_subagents", "/allowed_subagents"),
    ("allowed_subagents", ["scout", 7], "allowed_subagents[1]", "/allowed_subagents/1"),
    ("allowed_subagents", ["x" * 65], "allowed_subagents[0]", "/allowed_subagents/0"),
    ("allowed_subagents", ["a\x07b"], "allowed_subagents[0]", "/allowed_subagents/0"),
    ("allowed_subagents", [f"s{number}" for number in range(501)], "allowed_subagents", "/allowed_subagents"),
    ("enabled", 1, "enabled", "/enabled"),
]
ACCEPTED = [("max_turns", "80"), ("timeout_seconds", "1800"), ("tools", None), ("tools", []), ("display_name", "{x}")]


def lint(name: str) -> list[str]:
    output = io.StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("subagents", "lint", name, "--json", stdout=output, stderr=io.StringIO())
    assert failed.value.returncode == 1
    return [row["problem"] for row in json.loads(output.getvalue())]


def document(field: str, value: Any, of: dict[str, Any] = examples.DOCUMENT) -> dict[str, Any]:
    return {**of, "name": "worker", field: value}


def sentence_over_http(api: Api, path: str, wrong: dict[str, Any], pointer: str) -> str:
    problem = is_problem(api("POST", path, wrong), 422, "invalid")
    return str({error["pointer"]: error["detail"] for error in problem["errors"]}[pointer])


def read_in_a_file(api: Api, write_config: WriteConfig, folder: Path, wrong: dict[str, Any], path: str) -> str:
    """What is wrong with a file of the file backend, as the API says it of the broken entry at `path`."""
    write_config("agent_storage: {backend: file}")
    folder.mkdir(exist_ok=True)
    (folder / "worker.json").write_text(json.dumps(wrong), encoding="utf-8")
    registry.forget()
    return " | ".join(api.ok(path)["problems"])


@pytest.mark.parametrize(("field", "value", "path", "pointer"), WRONG, ids=lambda value: repr(value)[:24])
def test_a_wrong_value_is_refused_alike(
    api: Api,
    write_config: WriteConfig,
    tmp_path: Path,
    settings: Settings,
    field: str,
    value: Any,
    path: str,
    pointer: str,
):
    wrong = document(field, value)
    sentence = sentence_over_http(api, "/subagents", wrong, pointer)
    settings.DEER_FLOW_HOME = tmp_path
    folder = tmp_path / SUBAGENT.folder
    assert f"{path}: {sentence}" in read_in_a_file(api, write_config, folder, wrong, "/subagents/worker")
    assert any(f"{path}: {sentence}" in line for line in lint("worker"))
    (folder / "worker.json").unlink()

    entry = {key: inner for key, inner in wrong.items() if key != "name"}
    write_config(yaml.safe_dump({"subagents": {"custom_agents": {"worker": entry}}}))
    sentence = sentence.replace("an object or null", "a mapping").replace("an object", "a mapping")  # YAML's own words
    said = [line for line in api.ok("/subagents/worker")["problems"] if f"custom_agents.worker.{path}" in line]
    assert any(sentence in line for line in said), (sentence, said)


@pytest.mark.parametrize(("field", "value", "path", "pointer"), WRONG_OF_AGENTS, ids=lambda value: repr(value)[:24])
def test_a_wrong_value_of_a_custom_agent_is_refused_alike(
    api: Api,
    write_config: WriteConfig,
    tmp_path: Path,
    settings: Settings,
    field: str,
    value: Any,
    path: str,
    pointer: str,
):
    wrong = document(field, value, examples.AGENT_DOCUMENT)
    sentence = sentence_over_http(api, "/agents", wrong, pointer)
    settings.DEER_FLOW_HOME = tmp_path
    folder = tmp_path / AGENT.folder
    assert f"{path}: {sentence}" in read_in_a_file(api, write_config, folder, wrong, "/agents/worker")
    assert any(f"{path}: {sentence}" in line for line in lint("worker"))


# --- The page's forms ---------------------------------------------------------------------------------------------
def typed(field: str, value: Any) -> dict[str, Any] | None:
    """What a form sends for a document's value; None for what nobody can say in a form."""
    if field == "token_budget":
        parts = [typed(f"budget_{key}", inner) for key, inner in value.items()] if isinstance(value, dict) else [None]
        return None if None in parts else {name: sent for part in parts if part for name, sent in part.items()}
    if field in {"tools", "skills", "disallowed_tools", "allowed_subagents"}:
        return _ticked(field, value)
    if field in {"enabled", "subagent_enabled"}:
        return {field: "on"} if value is True else {} if value is False else None
    if isinstance(value, bool):
        return None
    is_text = isinstance(value, str)
    is_number = isinstance(value, int | float) and field not in {"description", "name"}
    return {field: str(value)} if is_text or is_number else None


def _ticked(field: str, value: Any) -> dict[str, Any] | None:
    if value is None or value == []:
        return {f"{field}-choice": "none" if value == [] else "all"}
    sayable = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    return {f"{field}-choice": "only", field: value} if sayable else None


def filled(of: dict[str, Any], **said: Any) -> dict[str, Any]:
    """A whole form as a browser sends it, with some of its fields said otherwise."""
    fields: dict[str, Any] = {}
    for field, value in {**of, "name": "worker"}.items():
        fields |= {f"{field}-choice": "all"} if value is None else typed(field, value) or {}
    return {**fields, **said}


SAYABLE = [row for row in WRONG if typed(row[0], row[1]) is not None]
SAYABLE_OF_AGENTS = [row for row in WRONG_OF_AGENTS if typed(row[0], row[1]) is not None]


def refused_by_page(form: type, kind: str, sent: dict[str, Any], path: str) -> list[str]:
    """What the page says beside the field that `path` means, and nothing beside any other."""
    user = get_user_model().objects.create(username="admin", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(f"/admin/subagents/{kind}/add/", sent)
    assert answer.status_code == 422
    errors = answer.context["form"].errors
    field = form.paths.get(path, path.split("[")[0])  # type: ignore[attr-defined]
    assert list(errors) == [field]
    assert unescape(answer.content.decode()).count(errors[field][0]) >= 1
    return list(errors[field])


@pytest.mark.parametrize(("field", "value", "path", "pointer"), SAYABLE, ids=lambda value: repr(value)[:24])
def test_the_form_of_a_subagent_says_the_same(api: Api, field: str, value: Any, path: str, pointer: str):
    sentence = sentence_over_http(api, "/subagents", document(field, value), pointer)
    sent = filled(examples.DOCUMENT, **(typed(field, value) or {}))
    assert refused_by_page(SubagentForm, "managedsubagent", sent, path) == [sentence]


@pytest.mark.parametrize(("field", "value", "path", "pointer"), SAYABLE_OF_AGENTS, ids=lambda value: repr(value)[:24])
def test_the_form_of_a_custom_agent_says_the_same(api: Api, field: str, value: Any, path: str, pointer: str):
    sentence = sentence_over_http(api, "/agents", document(field, value, examples.AGENT_DOCUMENT), pointer)
    sent = filled(examples.AGENT_DOCUMENT, **(typed(field, value) or {}))
    assert refused_by_page(AgentForm, "customagent", sent, path) == [sentence]


def test_only_what_no_form_can_say_is_left_out():
    left_out = [row[:2] for row in (*WRONG, *WRONG_OF_AGENTS) if row not in (*SAYABLE, *SAYABLE_OF_AGENTS)]
    assert all(
        not isinstance(value, str)
        or field in {"tools", "disallowed_tools", "allowed_subagents", "enabled", "subagent_enabled"}
        for field, value in left_out
    )
    assert len(SAYABLE) >= 20


@pytest.mark.parametrize(("field", "value"), ACCEPTED)
def test_what_is_taken_in_one_place_is_taken_in_all(api: Api, write_config: WriteConfig, field: str, value: Any):
    over_http = api("POST", "/subagents", document(field, value))
    assert over_http.status_code == 201, over_http.content
    entry = {key: inner for key, inner in document(field, value).items() if key != "name"}
    write_config(yaml.safe_dump({"subagents": {"custom_agents": {"other": entry}}}))
    in_file = api.ok("/subagents/other")
    assert in_file["problems"] == []
    assert in_file["definition"][field] == over_http.json()["definition"][field]


NAMES = ["", "A B", "-a", "a-", "a" * 65, "../a", "a\x07", "caf\u00e9", 7, True, ["a"]]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_wrong_name_is_refused_when_a_definition_is_made(api: Api, name: Any):
    problem = is_problem(api("POST", "/subagents", {**examples.DOCUMENT, "name": name}), 422, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == ["/name"]
    agent = is_problem(api("POST", "/agents", {**examples.AGENT_DOCUMENT, "name": name}), 422, "invalid")
    assert agent["errors"] == problem["errors"]
    if isinstance(name, str):
        sent = filled(examples.DOCUMENT, name=name)
        assert refused_by_page(SubagentForm, "managedsubagent", sent, "name") == [problem["errors"][0]["detail"]]


def test_the_name_of_the_default_lead_is_refused_to_a_custom_agent(api: Api):
    wrong = {**examples.AGENT_DOCUMENT, "name": "lead-agent"}
    sentence = sentence_over_http(api, "/agents", wrong, "/name")
    assert refused_by_page(AgentForm, "customagent", filled(wrong, name="lead-agent"), "name") == [sentence]
