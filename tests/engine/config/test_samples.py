"""Whole files in the shapes that people post."""

from __future__ import annotations

from tests.engine.config.reading import found, messages, read_sample

SURPRISING_KEYS = ("no", "on", "0123", "1e3", "2027-05-06", "~", "77")


def test_the_documented_example_loads_unchanged():
    result = read_sample("seed_shape")
    assert result.problems == ()
    subagents = result.config.subagents
    assert subagents.agents["general-purpose"].max_turns == 160
    assert (subagents.agents["bash"].timeout_seconds, subagents.agents["bash"].max_turns) == (300, 80)
    assert subagents.token_budget.max_tokens == 2_000_000
    assert list(result.config.acp_agents) == ["claude_code", "codex"]
    assert result.config.acp_agents["codex"].args == ("-y", "@sample/codex-acp")


def test_a_posted_windows_file_gets_one_report_and_is_not_half_loaded():
    result = read_sample("windows_mix")
    assert result.config is None
    assert found(result) == [
        ("warning", 2, "config_version"),
        ("warning", 10, "sandbox.use"),
        ("warning", 11, "sandbox.mounts"),
        ("refused", 16, "subagents.max_total_per_run"),
        ("entry", 19, "subagents.agents.general-purpose.timeout_seconds"),
        ("entry", 20, "subagents.agents.general-purpose.max_turns"),
        ("warning", 21, "subagents.agents.Bash"),
    ]
    assert 'the name is read as "bash"' in messages(result)


def test_null_empty_and_named_lists_of_tools_are_three_different_things():
    agents = read_sample("custom_agents").config.subagents.custom_agents
    assert agents["free"].tools is None
    assert agents["thinker"].tools == ()
    assert agents["charts"].tools == ("read_file", "read-file")
    assert (agents["free"].skills, agents["thinker"].skills) == (None, ())


def test_a_prompt_keeps_braces_percent_signs_and_tags():
    prompt = read_sample("custom_agents").config.subagents.custom_agents["charts"].system_prompt
    assert prompt == ("Draw what was asked.\n- Leave {names} and {{fields}} alone\n- {% raw %} 100 % <b>of it</b>\n")


def test_a_name_outside_the_rule_hides_no_other_custom_agent():
    result = read_sample("custom_agents")
    assert list(result.config.subagents.custom_agents) == ["charts", "thinker", "free", "bash"]
    assert found(result) == [("entry", 29, "subagents.custom_agents.资料 员")]
    assert list(result.invalid_entries) == ["subagents.custom_agents.资料 员"]


def test_null_sections_are_empty_and_null_agents_miss_their_fields():
    result = read_sample("nulls")
    assert result.config.models == ()
    assert result.config.loop_detection.enabled is True
    assert found(result) == [
        ("entry", 4, "acp_agents.empty.command"),
        ("entry", 4, "acp_agents.empty.description"),
        ("entry", 9, "acp_agents.partial.description"),
    ]
    assert set(result.invalid_entries) == {"acp_agents.empty", "acp_agents.partial"}
    assert result.config.acp_agents == {}


def test_duplicate_keys_on_two_levels_are_each_reported_with_both_lines():
    result = read_sample("duplicate_keys")
    assert result.config is None
    assert [str(problem) for problem in result.problems] == [
        "config.yaml:8:5 subagents.agents.bash: duplicate key; the same key stands on line 4",
        "config.yaml:10:3 subagents.max_turns: duplicate key; the same key stands on line 2",
    ]


def test_tabs_are_named_with_each_of_their_lines():
    result = read_sample("tab_indent")
    assert result.config is None
    assert [problem.line for problem in result.problems] == [2, 3, 4, 5]
    assert all("tabs are not allowed" in problem.message for problem in result.problems)


def test_bytes_that_are_not_utf_8_are_refused_with_offset_and_hint():
    result = read_sample("gbk")
    assert result.config is None
    assert messages(result) == (
        "config.yaml:1:3 not UTF-8: byte 0xC2 at byte offset 2 (the bytes can be read as GBK); save the file as UTF-8"
    )


def test_everything_that_yaml_readers_understand_differently_is_reported():
    result = read_sample("yaml11_surprises")
    assert result.config is None
    assert found(result) == [
        ("refused", 2, "subagents.timeout_seconds"),
        ("refused", 3, "subagents.max_turns"),
        ("refused", 5, "subagents.token_budget.enabled"),
        ("refused", 6, "subagents.token_budget.max_tokens"),
        ("refused", 7, "subagents.token_budget.warn_threshold"),
        *(("entry", 9 + 2 * row, f"subagents.agents.{key}") for row, key in enumerate(SURPRISING_KEYS)),
    ]
    assert 'got "80%"' in messages(result)
    assert "got false" in messages(result)


def test_an_alias_bomb_is_refused_where_it_grows_too_large():
    result = read_sample("alias_bomb")
    assert result.config is None
    assert found(result) == [("refused", 5, "")]
    assert "100000 values" in messages(result)


def test_an_object_tag_is_refused_and_makes_nothing():
    result = read_sample("object_tag")
    assert result.config is None
    assert "the tag !!python/object/apply:os.getcwd is not allowed" in messages(result)
    assert found(result)[0] == ("refused", 1, "subagents")
