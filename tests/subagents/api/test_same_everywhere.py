"""Whatever is refused is refused everywhere, at the same path and with the same sentence: API, both files, command."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from subagents import registry
from subagents.api import examples
from tests.subagents.api.conftest import is_problem

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

    from tests.subagents.api.conftest import Api
    from tests.subagents.conftest import WriteConfig

pytestmark = pytest.mark.django_db
# field, wrong value, path of the fault, its pointer
WRONG = [
    ("description", "", "description", "/description"),
    ("description", 7, "description", "/description"),
    ("description", "x" * 2_001, "description", "/description"),
    ("system_prompt", "", "system_prompt", "/system_prompt"),
    ("system_prompt", "x" * 200_001, "system_prompt", "/system_prompt"),
    ("display_name", "x" * 121, "display_name", "/display_name"),
    ("model", "", "model", "/model"),
    ("model", [], "model", "/model"),
    ("tools", "bash", "tools", "/tools"),
    ("tools", ["bash", 7], "tools[1]", "/tools/1"),
    ("tools", {"bash": True}, "tools", "/tools"),
    ("disallowed_tools", "bash", "disallowed_tools", "/disallowed_tools"),
    ("skills", [""], "skills[0]", "/skills/0"),
    ("max_turns", 0, "max_turns", "/max_turns"),
    ("max_turns", 1_001, "max_turns", "/max_turns"),
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
ACCEPTED = [("max_turns", "80"), ("timeout_seconds", "1800"), ("tools", None), ("tools", []), ("display_name", "{x}")]


def lint(name: str) -> list[str]:
    output = io.StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("subagents", "lint", name, "--json", stdout=output, stderr=io.StringIO())
    assert failed.value.returncode == 1
    return [row["problem"] for row in json.loads(output.getvalue())]


def document(field: str, value: Any) -> dict[str, Any]:
    return {**examples.DOCUMENT, "name": "worker", field: value}


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
    problem = is_problem(api("POST", "/subagents", wrong), 422, "invalid")
    sentence = {error["pointer"]: error["detail"] for error in problem["errors"]}[pointer]

    settings.DEER_FLOW_HOME = tmp_path
    write_config("agent_storage: {backend: file}")
    folder = tmp_path / "managed-subagents"
    folder.mkdir(exist_ok=True)
    (folder / "worker.json").write_text(json.dumps(wrong), encoding="utf-8")
    registry.forget()
    assert f"{path}: {sentence}" in " | ".join(api.ok("/subagents/worker")["problems"])
    assert any(f"{path}: {sentence}" in line for line in lint("worker"))
    (folder / "worker.json").unlink()

    entry = {key: inner for key, inner in wrong.items() if key != "name"}
    write_config(yaml.safe_dump({"subagents": {"custom_agents": {"worker": entry}}}))
    sentence = sentence.replace("an object or null", "a mapping").replace("an object", "a mapping")  # YAML's own words
    said = [line for line in api.ok("/subagents/worker")["problems"] if f"custom_agents.worker.{path}" in line]
    assert any(sentence in line for line in said), (sentence, said)


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
