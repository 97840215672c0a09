"""Entry errors: a bad entry is listed with its reasons and hides nothing else."""

from __future__ import annotations

import pytest

from engine.config.schema import EnvKeyPolicy, PermissionPolicy
from tests.engine.config.reading import found, messages, read

SOUND_AND_BROKEN = [
    ("models: [{name: a, use: 'x.y:Z'}, {name: b, use: nonsense}]", "models[1]"),
    ("tools: [{name: a, use: 'x.y:Z'}, {use: 'x.y:Z'}]", "tools[1]"),
    (
        "async_subagents: [{name: a, description: b, graph_id: c}, {name: A_B, description: b, graph_id: c}]",
        "async_subagents[1]",
    ),
    ("mcp_servers: {a: {command: x}, b: {}}", "mcp_servers.b"),
    ("acp_agents: {a: {command: x, description: y}, b: 5}", "acp_agents.b"),
    ("subagents: {agents: {a: {}, b: {max_turns: many}}}", "subagents.agents.b"),
    (
        "subagents: {custom_agents: {a: {description: b, system_prompt: c}, b: {}}}",
        "subagents.custom_agents.b",
    ),
]


@pytest.mark.parametrize(("text", "broken"), SOUND_AND_BROKEN)
def test_a_broken_entry_is_listed_and_its_neighbour_stays(text, broken):
    result = read(text)
    assert list(result.invalid_entries) == [broken]
    assert result.invalid_entries[broken] == result.problems
    assert {problem.severity.value for problem in result.problems} == {"entry"}
    config = result.config
    entries = [
        *config.models,
        *config.tools,
        *config.async_subagents,
        *config.mcp_servers,
        *config.acp_agents,
        *config.subagents.agents,
        *config.subagents.custom_agents,
    ]
    assert len(entries) == 1


def test_an_unknown_option_inside_an_entry_makes_only_that_entry_invalid():
    result = read("acp_agents:\n  a:\n    comand: npx\n    command: npx\n    description: d\n")
    assert result.config is not None
    assert messages(result) == 'config.yaml:3:5 acp_agents.a.comand: unknown option; did you mean "command"?'


def test_a_duplicate_key_inside_an_entry_refuses_the_file():
    result = read("subagents: {agents: {bash: {max_turns: 1, max_turns: 2}}}")
    assert result.config is None


def test_two_spellings_of_one_name_are_both_invalid_and_point_at_each_other():
    result = read("subagents:\n  agents:\n    bash: {max_turns: 1}\n    Bash: {max_turns: 2}\n    scout: {}\n")
    assert list(result.config.subagents.agents) == ["scout"]
    assert found(result) == [("entry", 3, "subagents.agents.bash"), ("entry", 4, "subagents.agents.Bash")]
    assert "stands on line 4" in result.problems[0].message
    assert "stands on line 3" in result.problems[1].message


@pytest.mark.parametrize(
    ("section", "rest"),
    [
        ("models", "use: 'x.y:Z'"),
        ("tools", "use: 'x.y:Z'"),
        ("async_subagents", "description: d, graph_id: g"),
    ],
)
def test_listed_entries_that_share_a_name_are_all_invalid(section, rest):
    entry = f"  - {{name: twin, {rest}}}\n"
    result = read(f"{section}:\n{entry}{entry}  - {{name: single, {rest}}}\n")
    assert found(result) == [("entry", 2, f"{section}[0].name"), ("entry", 3, f"{section}[1].name")]
    assert [item.name for item in getattr(result.config, section)] == ["single"]


def test_keys_of_agents_are_kept_under_the_normal_spelling_with_a_warning():
    result = read("subagents: {agents: {' Scout ': {max_turns: 5}}}".replace("' Scout '", '" Scout "'))
    assert result.config.subagents.agents["scout"].max_turns == 5
    assert found(result) == [("warning", 1, 'subagents.agents." Scout "')]


def test_an_override_remembers_which_fields_it_sets():
    agents = read("subagents: {agents: {a: {max_turns: 5, skills: [], model: null}, b: }}").config.subagents.agents
    assert agents["a"].model_fields_set == {"max_turns", "skills"}
    assert agents["a"].skills == ()
    assert agents["b"].model_fields_set == set()


def test_null_skills_in_an_override_change_nothing():
    agents = read("subagents: {agents: {a: {skills: null}}}").config.subagents.agents
    assert (agents["a"].skills, agents["a"].model_fields_set) == (None, set())


@pytest.mark.parametrize(
    "fields",
    [
        "description: ''",
        "description: '  '",
        f"description: {'x' * 2001}",
        "system_prompt: ''",
        "display_name: [a]",
        f"display_name: {'x' * 121}",
        "tools: 'a, b'",
        "tools: [1]",
        "tools: [null]",
        "max_turns: 1001",
        "timeout_seconds: 0",
        "enabled: 'yes'",
        "token_budget: 5",
        "name: x",
        "model: 4.1",
    ],
)
def test_a_custom_agent_with_a_field_outside_its_rule_is_invalid(fields):
    lines = {"description": "d", "system_prompt": "p"}
    key, _, value = fields.partition(": ")
    body = "".join(f"      {name}: {text}\n" for name, text in (lines | {key: value}).items())
    result = read(f"subagents:\n  custom_agents:\n    a:\n{body}    b: {{description: d, system_prompt: p}}\n")
    assert list(result.invalid_entries) == ["subagents.custom_agents.a"]
    assert list(result.config.subagents.custom_agents) == ["b"]
    assert result.problems[0].path.startswith(f"subagents.custom_agents.a.{key}")


def test_a_custom_agent_that_says_nothing_more_inherits_everything():
    agent = read("subagents: {custom_agents: {a: {description: d, system_prompt: p}}}").config.subagents
    assert agent.custom_agents["a"].model_dump() == {
        "display_name": "",
        "description": "d",
        "system_prompt": "p",
        "model": "inherit",
        "tools": None,
        "disallowed_tools": (),
        "skills": None,
        "max_turns": None,
        "timeout_seconds": None,
        "token_budget": None,
        "enabled": True,
    }


def test_further_options_of_a_model_are_passed_on_as_they_are():
    options = "top_p: 0.9, stop: [x], extra_body: {a: null}, seed: "
    result = read(f"models: [{{name: a, use: 'x.y:Z', {options}}}]")
    assert result.problems == ()
    extra = result.config.models[0].extra
    assert extra == {"top_p": 0.9, "stop": ["x"], "extra_body": {"a": None}, "seed": None}


def test_an_option_passed_on_that_looks_mistyped_is_a_warning():
    result = read("models: [{name: a, use: 'x.y:Z', temprature: 0.5}]")
    assert found(result) == [("warning", 1, "models[0].temprature")]
    assert 'did you mean "temperature"?' in messages(result)
    assert result.config.models[0].extra == {"temprature": 0.5}


@pytest.mark.parametrize(
    "option",
    [
        "temperature: true",
        "temperature: 2.5",
        "temperature: '0.5'",
        "max_tokens: 1.5",
        "timeout_seconds: 0",
        "max_concurrency: 0",
        "price: {input: 1}",
        "price: {input: -1, output: 1}",
        "price: {in: 1}",
        "base_url: ftp://x",
        "base_url: 'http://user:secret@host/'",
        "api_key: 12",
        "name: inherit",
        "name: ' '",
        "use: os.system",
        "use: 'a b:c'",
        "not-a-keyword: 1",
        "display_name: 5",
        "top_p: 1_0",
    ],
)
def test_a_model_with_an_option_outside_its_rule_is_invalid(option):
    fields = {"name": "a", "use": "'x.y:Z'"}
    key, _, value = option.partition(": ")
    body = ", ".join(f"{name}: {text}" for name, text in (fields | {key: value}).items())
    result = read(f"models: [{{{body}}}]")
    assert list(result.invalid_entries) == ["models[0]"]
    assert result.config.models == ()


@pytest.mark.parametrize(
    "text",
    [
        "models: [{name: a, use: 'x.y:Z', api_key: 1234567}]",
        "models: [{name: a, use: 'x.y:Z', api_key: [1234567]}]",
        "models: [{name: a, use: 'x.y:Z', openai_api_key: 01234567}]",
        "models: [{name: a, use: 'x.y:Z', base_url: 'http://u:1234567@h'}]",
        "async_subagents: [{name: a, description: d, graph_id: g, headers: {X-Key: 1234567}}]",
        "acp_agents: {a: {command: c, description: d, env: {SECRET: 1234567}}}",
    ],
)
def test_a_report_never_repeats_what_may_be_a_secret(text):
    result = read(text)
    assert len(result.invalid_entries) == 1
    assert "1234567" not in messages(result)


def test_a_configuration_shows_no_secret_when_printed():
    result = read(
        "models: [{name: a, use: 'x.y:Z', api_key: hush, other_key: hush}]\n"
        "async_subagents: [{name: a, description: d, graph_id: g, headers: {X-Key: hush}}]\n"
        "acp_agents: {a: {command: c, description: d, env: {SECRET: hush}}}\n"
        "mcp_servers: {a: {command: c, env: {SECRET: hush}}}\n"
    )
    assert result.problems == ()
    assert "hush" not in repr(result.config)


@pytest.mark.parametrize(
    ("written", "policy"),
    [("auto", EnvKeyPolicy.AUTO), ("true", EnvKeyPolicy.ALWAYS), ("false", EnvKeyPolicy.NEVER)],
)
def test_the_environment_key_of_a_remote_agent_goes_by_itself_or_as_told(written, policy):
    text = f"async_subagents: [{{name: a, description: d, graph_id: g, use_env_key: {written}}}]"
    assert read(text).config.async_subagents[0].use_env_key is policy


@pytest.mark.parametrize(
    "option",
    [
        "url: example.com",
        "url: 'https://'",
        "url: 'https://h:99999'",
        "url: 'file:///etc'",
        "headers: {X Bad: v}",
        'headers: {X: "a\\nb"}',
        "headers: [a]",
        "use_env_key: maybe",
        "update_strategy: drop",
        "mode: shared",
        "notify_parent: 1",
        "webhook: nowhere",
        "graph_id: ''",
        "description: null",
        "name: a_b",
    ],
)
def test_a_remote_agent_with_an_option_outside_its_rule_is_invalid(option):
    fields = {"name": "a", "description": "d", "graph_id": "g"}
    key, _, value = option.partition(": ")
    body = ", ".join(f"{name}: {text}" for name, text in (fields | {key: value}).items())
    result = read(f"async_subagents: [{{{body}}}]")
    assert list(result.invalid_entries) == ["async_subagents[0]"]


def test_an_acp_agent_asks_or_allows_only_for_the_kinds_it_names():
    permissions = "{default: ask, read: allow_once, edit: deny}"
    result = read(f"acp_agents: {{a: {{command: c, description: d, permissions: {permissions}}}}}")
    agent = result.config.acp_agents["a"]
    policies = [agent.policy_for(kind) for kind in ("read", "edit", "execute", "default", "model_fields")]
    assert policies == [
        PermissionPolicy.ALLOW_ONCE,
        PermissionPolicy.DENY,
        PermissionPolicy.ASK,
        PermissionPolicy.ASK,
        PermissionPolicy.ASK,
    ]


@pytest.mark.parametrize(("written", "policy"), [("deny", "deny"), ("ask", "ask")])
def test_one_word_sets_the_permission_of_every_kind(written, policy):
    text = f"acp_agents: {{a: {{command: c, description: d, permissions: {written}}}}}"
    assert read(text).config.acp_agents["a"].policy_for("read") == policy


def test_an_acp_agent_denies_what_nobody_allowed():
    assert read("acp_agents: {a: {command: c, description: d}}").config.acp_agents["a"].policy_for("read") == "deny"


def test_automatic_approval_is_read_as_allow_once_with_a_warning():
    result = read("acp_agents: {a: {command: c, description: d, auto_approve_permissions: true}}")
    assert found(result) == [("warning", 1, "acp_agents.a.auto_approve_permissions")]
    assert result.config.acp_agents["a"].policy_for("execute") is PermissionPolicy.ALLOW_ONCE


@pytest.mark.parametrize(
    "option",
    [
        "command: ''",
        "args: '-y --stdio'",
        "args: [1]",
        "env: {PORT: 8080}",
        "env: {'A=B': x}",
        "timeout_seconds: 0",
        "auto_approve_permissions: 'yes'",
        "permissions: allow_once",
        "permissions: 5",
        "permissions: {reed: ask}",
        "permissions: {default: allow_once}",
        "permissions: ask, auto_approve_permissions: true",
    ],
)
def test_an_acp_agent_with_an_option_outside_its_rule_is_invalid(option):
    fields = {"command": "c", "description": "d"}
    key, _, value = option.partition(": ")
    body = ", ".join(f"{name}: {text}" for name, text in (fields | {key: value}).items())
    result = read(f"acp_agents: {{a: {{{body}}}, b: {{command: c, description: d}}}}")
    assert list(result.invalid_entries) == ["acp_agents.a"]
    assert list(result.config.acp_agents) == ["b"]


@pytest.mark.parametrize(
    ("server", "transport"),
    [
        ("command: c", "stdio"),
        ("url: https://h", "streamable_http"),
        ("url: https://h, transport: sse", "sse"),
    ],
)
def test_an_mcp_server_speaks_what_fits_the_way_it_is_reached(server, transport):
    assert read(f"mcp_servers: {{a: {{{server}}}}}").config.mcp_servers["a"].transport == transport


@pytest.mark.parametrize(
    "server", ["command: c, url: https://h", "command: c, transport: sse", "url: https://h, transport: stdio"]
)
def test_an_mcp_server_that_contradicts_itself_is_invalid(server):
    assert list(read(f"mcp_servers: {{a: {{{server}}}}}").invalid_entries) == ["mcp_servers.a"]


def test_text_that_no_database_can_hold_makes_only_its_entry_invalid():
    text = '  - {name: a, use: "x.y:Z", model: "m\\0"}\n  - {name: b, use: "x.y:Z"}\n'
    result = read(f"models:\n{text}")
    assert list(result.invalid_entries) == ["models[0]"]
    assert [model.name for model in result.config.models] == ["b"]
