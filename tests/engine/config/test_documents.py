"""Document errors: whatever stands outside the entries refuses the file, with everything found in it."""

from __future__ import annotations

import pytest

from engine.config import nodes
from engine.config.reader import default_config, read_config, signature
from tests.engine.config.reading import found, messages, read


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def parser(request, monkeypatch):
    """Both of PyYAML's parsers, since libyaml is not built everywhere."""
    monkeypatch.setattr(nodes, "PARSER", getattr(nodes.yaml, request.param))
    return request.param


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a comment\n", "---\n", "{}", "~", "null\n"])
def test_a_file_without_content_means_the_defaults(text):
    result = read(text)
    assert result.problems == ()
    assert result.config == default_config()


def test_a_byte_order_mark_is_no_part_of_the_first_key():
    result = read_config(b"\xef\xbb\xbfsubagents:\r\n  max_total_per_run: 9\r\n")
    assert result.problems == ()
    assert result.config.subagents.max_total_per_run == 9


def test_a_utf_16_file_is_named_as_such():
    result = read_config("subagents: {}".encode("utf-16"))
    assert result.config is None
    assert "UTF-16" in messages(result)


def test_a_byte_that_is_not_utf_8_is_placed_by_line_and_offset():
    result = read_config("subagents: {}\n# é: ".encode() + b"\xff\n")
    assert found(result) == [("refused", 2, "")]
    assert "byte 0xFF at byte offset 20" in messages(result)
    assert result.problems[0].column == 6


@pytest.mark.parametrize(("character", "name"), [("\0", "a NUL byte"), ("\x1b", "U+001B"), ("\x7f", "U+007F")])
def test_control_characters_are_refused_with_their_place(character, name):
    result = read(f"subagents:\n  max_turns: 5 # {character}\n")
    assert found(result) == [("refused", 2, "")]
    assert name in messages(result)
    assert result.problems[0].column == 18


def test_a_file_above_one_mebibyte_is_refused():
    assert read("#" * (1024 * 1024)).config is not None
    result = read("#" * (1024 * 1024 + 1))
    assert result.config is None
    assert "1048577 bytes" in messages(result)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("subagents: one: two", 1, "quotes"),
        ("models: [a, b\nsubagents: {}\n", 2, "not readable as YAML"),
        ("models: 'abc\n", 2, "not readable as YAML"),
        ("subagents: *nowhere", 1, "names no anchor"),
        ("tools: &loop [*loop]", 1, "names no anchor"),
        ("models: []\n---\ntools: []\n", 2, "second document"),
        ("[" * 60 + "]" * 60, 1, "nested deeper than 40 levels"),
        ("subagents:\n  max_turns: 5\n \ttimeout_seconds: 9\n", 3, "tabs are not allowed"),
    ],
)
def test_a_file_that_is_no_yaml_document_is_refused_with_its_line(text, line, hint):
    result = read(text)
    assert found(result) == [("refused", line, "")]
    assert hint in messages(result)


@pytest.mark.usefixtures("parser")
def test_an_escape_no_character_has_is_refused():
    result = read('langgraph_json: "\\UFFFFFFFF"')
    assert result.config is None
    assert "not readable as YAML" in messages(result)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("escape", ["\\0", "\\uD800"])
def test_text_that_no_database_can_hold_is_refused(escape):
    result = read(f'langgraph_json: "a{escape}b"')
    assert result.config is None
    assert result.problems[0].line == 1


@pytest.mark.usefixtures("parser")
def test_both_parsers_place_problems_alike():
    text = "subagents:\n  max_turns: 5m\n  nope: 1\nmodels:\n  - use: [a]\n"
    places = [(problem.line, problem.column, problem.path) for problem in read(text).problems]
    assert places == [
        (2, 14, "subagents.max_turns"),
        (3, 3, "subagents.nope"),
        (5, 5, "models[0].name"),
        (5, 10, "models[0].use"),
    ]


@pytest.mark.parametrize(
    ("text", "path", "suggestion"),
    [
        ("subagent: {}", "subagent", "subagents"),
        ("subagents: {max_total_per_runs: 3}", "subagents.max_total_per_runs", "max_total_per_run"),
        ("subagents: {token_budget: {max_token: 3}}", "subagents.token_budget.max_token", "max_tokens"),
        ("summarization: {keep: {message: 3}}", "summarization.keep.message", "messages"),
        ("runs: {Workers: 3}", "runs.Workers", "workers"),
    ],
)
def test_an_unknown_option_is_refused_with_the_one_that_was_meant(text, path, suggestion):
    result = read(text)
    assert result.config is None
    assert [problem.path for problem in result.problems] == [path]
    assert result.problems[0].message == f'unknown option; did you mean "{suggestion}"?'


def test_an_unknown_option_like_no_other_gets_no_suggestion():
    assert messages(read("zebra: 1")) == "config.yaml:1:1 zebra: unknown option"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "- a\n- b",
            "config.yaml:1:1 expected sections such as models: and subagents: at the top level, got a list",
        ),
        ("models: {name: demo}", "config.yaml:1:9 models: expected a list, got a mapping"),
        ("models: demo", 'config.yaml:1:9 models: expected a list, got "demo"'),
        ("subagents: []", "config.yaml:1:12 subagents: expected a mapping, got a list"),
        ("subagents: {agents: [bash]}", "config.yaml:1:21 subagents.agents: expected a mapping, got a list"),
        ("acp_agents: 5", "config.yaml:1:13 acp_agents: expected a mapping, got 5"),
        ("agent_storage: {backend: redis}", "expected 'db' or 'file', got \"redis\""),
        ("skills: {path: 5}", "config.yaml:1:16 skills.path: expected text in quotes, got 5"),
        ("sandbox: {network: 1}", "config.yaml:1:20 sandbox.network: expected true or false, got 1"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_saying_what_was_expected(text, message):
    result = read(text)
    assert result.config is None
    assert message in messages(result)


@pytest.mark.parametrize("written", ["5m", '"5m"', "true", "900.0", "0", "-1", "86401", "[5]", '"0600"', '"٣"', '""'])
def test_a_number_of_seconds_is_a_whole_positive_number_within_a_day(written):
    result = read(f"subagents:\n  timeout_seconds: {written}\n")
    assert found(result) == [("refused", 2, "subagents.timeout_seconds")]
    assert "expected a positive integer up to 86400" in messages(result)


@pytest.mark.parametrize("written", ["1", '"1"', "'1'", "!!str 1"])
def test_a_whole_number_may_be_written_as_quoted_digits(written):
    assert read(f"subagents: {{timeout_seconds: {written}}}").config.subagents.timeout_seconds == 1


@pytest.mark.parametrize(
    "written",
    [
        "yes",
        "No",
        "ON",
        "off",
        "0600",
        "0x1F",
        "0o17",
        "1_000",
        "1:30",
        "1e3",
        "1.5e3",
        "2026-01-02",
        ".inf",
        ".NaN",
        "9" * 19,
    ],
)
def test_an_unquoted_word_with_two_readings_is_reported_and_a_quoted_one_is_text(written):
    result = read(f"langgraph_json: {written}")
    assert found(result) == [("refused", 1, "langgraph_json")]
    assert "quote it" in messages(result)
    assert read(f"langgraph_json: '{written}'").config.langgraph_json == written


@pytest.mark.parametrize(("text", "path"), [("no: 1", "no"), ("subagents: {12: 1}", "subagents.12"), ("[a]: 1", "?")])
def test_a_key_that_is_no_text_refuses_the_file_outside_of_entries(text, path):
    result = read(text)
    assert found(result) == [("refused", 1, path)]
    assert "a key must be text" in messages(result)


def test_merge_keys_are_not_followed():
    result = read("subagents: &base {max_turns: 5}\nruns:\n  <<: *base\n")
    assert found(result) == [("refused", 3, "runs.<<")]


def test_an_alias_may_repeat_a_small_value():
    text = "subagents:\n  agents:\n    bash: &quick {max_turns: 5}\n    scout: *quick\n"
    agents = read(text).config.subagents.agents
    assert agents["scout"].max_turns == agents["bash"].max_turns == 5


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("subagents: {max_concurrent: 5}", "subagents.max_concurrent"),
        ("subagents: {max_concurrent_limit: 2}", "subagents.max_concurrent"),
        ("loop_detection: {warn_threshold: 6}", "loop_detection.hard_limit"),
        ("loop_detection: {window_size: 4}", "loop_detection.window_size"),
        ("loop_detection: {tool_freq_warn: 51}", "loop_detection.tool_freq_hard_limit"),
        (
            "loop_detection: {tool_freq_overrides: {ls: {warn: 9, hard_limit: 8}}}",
            "loop_detection.tool_freq_overrides.ls.hard_limit",
        ),
        ("summarization: {trigger: {}}", "summarization.trigger"),
        ("summarization: {keep: {messages: 1, tokens: 1}}", "summarization.keep"),
        ("subagents: {token_budget: {warn_threshold: 0}}", "subagents.token_budget.warn_threshold"),
        ("subagents: {token_budget: {warn_threshold: 1.01}}", "subagents.token_budget.warn_threshold"),
        ("runs: {token_budget: {enabled: true}}", "runs.token_budget.max_tokens"),
        ("outbound: {allow_private: [10.0.0.0/8, 10.0.0.1/8]}", "outbound.allow_private[1]"),
        ("outbound: {allow_private: ['http://x']}", "outbound.allow_private[0]"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused_at_their_path(text, path):
    result = read(text)
    assert found(result) == [("refused", 1, path)]


def test_private_hosts_and_networks_are_kept_in_one_spelling():
    result = read("outbound: {allow_private: [Agents.Internal, 10.0.0.0/8, '::1']}")
    assert result.config.outbound.allow_private == ("agents.internal", "10.0.0.0/8", "::1/128")


def test_known_deerflow_options_are_one_warning_each_and_their_content_is_not_looked_at():
    result = read("title: {enabled: yes}\nmemory: 0600\nsandbox:\n  image: x\nskills: {container_path: /mnt}\n")
    assert found(result) == [
        ("warning", 1, "title"),
        ("warning", 2, "memory"),
        ("warning", 4, "sandbox.image"),
        ("warning", 5, "skills.container_path"),
    ]
    assert "no effect here" in messages(result)
    assert result.config == default_config()


def test_document_and_entry_problems_are_reported_together_in_the_order_of_the_file():
    result = read("acp_agents: {a: {}}\nrunz: {}\nmodels: [{name: x}]\nruns: {workers: none}\n")
    assert found(result) == [
        ("entry", 1, "acp_agents.a.command"),
        ("entry", 1, "acp_agents.a.description"),
        ("refused", 2, "runz"),
        ("entry", 3, "models[0].use"),
        ("refused", 4, "runs.workers"),
    ]


def test_long_and_strange_keys_and_values_are_shown_shortened_and_escaped():
    result = read(f'? "{"k" * 500}.\\n\\e"\n: 1\nsandbox: {{provider: "{"v" * 500}\\e"}}\n')
    assert len(result.problems) == 2
    for problem in result.problems:
        assert len(str(problem)) < 250
        assert str(problem).isprintable()


def test_the_name_of_the_file_leads_every_line_of_the_report():
    result = read_config(b"nope: 1", file_name="team.yaml")
    assert str(result.problems[0]) == "team.yaml:1:1 nope: unknown option"


def test_the_signature_changes_with_every_byte():
    assert signature(b"a: 1\n") == signature(b"a: 1\n")
    assert signature(b"a: 1\n") != signature(b"a: 1\r\n")


def test_a_file_of_two_thousand_lines_is_read():
    fields = "      description: Does things\n      system_prompt: Do it.\n      max_turns: 5\n"
    agents = "".join(f"    agent-{number}:\n{fields}" for number in range(500))
    result = read(f"subagents:\n  custom_agents:\n{agents}")
    assert len(result.config.subagents.custom_agents) == 500


def test_a_file_full_of_unknown_options_is_refused():
    result = read("".join(f"option_{number}: {{}}\n" for number in range(9_000)))
    assert len(result.problems) == 9_000


def test_a_file_indented_with_tabs_throughout_names_a_hundred_lines_and_counts_the_rest():
    result = read("models:\n" + "\t- a\n" * 150)
    assert len(result.problems) == 101
    assert result.problems[-1].message.endswith("(and on 49 more lines)")
