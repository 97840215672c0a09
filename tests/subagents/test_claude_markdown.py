"""Agent files of coding agents: understood in their dialects, never guessed, never given more than they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subagents.catalogue import Known
from subagents.definitions import Source
from subagents.formats.claude_markdown import AgentFile, read_agent_file
from tests.subagents.making import catalogue

SAMPLES = Path(__file__).parent.parent / "samples"


def sample(start: str) -> AgentFile:
    (path,) = SAMPLES.glob(f"{start}_*.md")
    return read_agent_file(path.read_bytes(), file_name=path.name)


def written(header: str, body: str = "Do it.\n", *, file_name: str = "scout.md") -> AgentFile:
    return read_agent_file(f"---\n{header}\n---\n{body}".encode(), file_name=file_name)


def scout(*lines: str, **options: str) -> AgentFile:
    return written("\n".join(["name: scout", "description: Finds things.", *lines]), **options)


def said(file: AgentFile) -> str:
    return "\n".join(str(problem) for problem in file.problems)


def places(file: AgentFile, severity: str = "entry") -> list[tuple[int, str]]:
    return [(problem.line, problem.path) for problem in file.problems if problem.severity.value == severity]


# --- What is written ------------------------------------------------------------------------------------------
def test_tools_in_one_line_are_a_list_and_those_that_do_not_exist_are_named():
    drafter = sample("01").definition
    assert len(drafter.tools) == 8
    assert drafter.tools[:5] == ("read_file", "write_file", "bash", "glob", "grep")
    for tool in ("contract-lint", "mockserver", "spec-diff"):
        assert f'tools: "{tool}" is no tool that comes with this product' in said(sample("01"))
    known = Known(tools=("read_file", "write_file", "bash", "glob", "grep"))
    (entry,) = catalogue(drafter, known=known).entries
    assert len(entry.warnings) == 3


def test_the_prompt_is_what_follows_the_header_byte_for_byte():
    raw = (SAMPLES / "01_agent_comma_tools_unknown.md").read_bytes()
    assert sample("01").definition.system_prompt.encode() == raw.split(b"---\n\n", 1)[1]
    for body in ("{a} {{b}} %s ${C}\n", "a\r\nb\tc \r\n", "---\nname: x\n---\n", "  indented\n\n\n"):
        assert scout(body="\r\n \n" + body).definition.system_prompt == body


def test_other_languages_and_nested_fences_come_through():
    reviewer, runner = sample("02").definition, sample("03").definition
    assert reviewer.description.startswith("审查配置改动的专家")
    assert (reviewer.model, reviewer.tools, reviewer.skills) == ("inherit", None, None)
    assert reviewer.system_prompt.startswith("您负责审查配置改动。\n\n## 步骤\n")
    assert runner.system_prompt.count("```") == 4
    assert "color: ignored" in said(sample("03"))


def test_a_description_of_many_unindented_lines_is_recovered_in_full_and_said_so():
    tidy = sample("04")
    text = tidy.definition.description
    assert text.startswith("Use this agent after code was written")
    assert text.endswith("</example>")
    assert 'user: "Please add a helper for dates"' in text
    assert tidy.definition.model == "opus"
    assert "04_agent_unindented_examples.md:3:1 description: not valid YAML; taken as plain text" in said(tidy)


def test_a_colon_inside_a_description_is_part_of_it():
    helper = sample("05")
    assert helper.definition.description == (
        "Use this agent when you need help. This covers: task A, task B: urgent, and task C."
    )
    assert helper.definition.model == "sonnet"
    assert "description: not valid YAML" in said(helper)


def test_a_broken_description_before_the_name_is_the_one_that_is_pointed_at():
    file = written('description: "Use \\n it" for: x\\n\\nExamples:\nname: scout')
    assert file.definition.name == "scout"
    assert places(file, "warning") == [(2, "description")]


def test_a_value_on_the_next_line_is_a_value():
    text = sample("10").definition.description
    assert text == (
        "Creates screens and flows. Use PROACTIVELY for layout questions, user flows, or small improvements."
    )


def test_lists_aliases_and_comments_are_understood():
    scanner = sample("06").definition
    assert scanner.tools == ("bash", "read_file", "grep")
    assert {"write_file", "str_replace"} <= set(scanner.disallowed_tools)
    assert scanner.max_turns == 25
    assert scanner.model == "claude-haiku-9"
    (entry,) = catalogue(scanner, known=Known(models=("demo",))).entries
    assert [note.code for note in entry.warnings] == ["unknown_model"]
    for key in ("effort", "memory"):
        assert f"{key}: ignored" in said(sample("06"))


@pytest.mark.parametrize(
    "line",
    [
        "disallowedTools: Write, Edit",
        "disallowedTools: [Write, Edit]",
        "disallowed_tools:\n  - Write\n  - Edit",
        "disallowed-tools: 'write,MultiEdit,'",
    ],
)
def test_every_dialect_of_a_list_means_the_same(line: str):
    assert scout(line).definition.disallowed_tools == ("write_file", "str_replace")


@pytest.mark.parametrize("line", ["maxTurns: 25", "max_turns: 25", "max-turns: '25'"])
def test_every_dialect_of_a_number_means_the_same(line: str):
    assert scout(line).definition.max_turns == 25


def test_a_list_of_denied_tools_alone_leaves_the_rest_inherited():
    checker = sample("07").definition
    assert checker.tools is None
    assert checker.disallowed_tools == ("write_file", "str_replace")
    assert checker.system_prompt.startswith("<Agent_Prompt>\n<Role>")
    assert "level: ignored" in said(sample("07"))


def test_a_file_from_windows_is_read_like_any_other():
    notes = sample("09")
    assert notes.definition.name == "win-notes"
    assert notes.definition.tools == ("read_file", "grep", "glob")
    assert notes.definition.system_prompt == "Line one.\r\nLine two.\tTabbed.\r\n"
    assert notes.definition.description == "Made with a Windows editor; path C:\\Users\\me\\agents"


def test_empty_texts_mean_not_set_and_an_empty_list_means_none():
    engineer = sample("13")
    assert (engineer.definition.model, engineer.definition.tools) == ("inherit", None)
    assert places(engineer, "warning")[-2:] == [(5, "model"), (6, "tools")]
    assert engineer.definition.description == "It's for pipelines."
    assert scout("tools: []").definition.tools == ()
    assert scout("tools:").definition.tools is None


# --- What is never granted ------------------------------------------------------------------------------------
def test_no_word_of_a_file_grants_anything():
    night = sample("08")
    assert night.definition.tools == ("read_file", "grep", "write_todos", "web_search")
    assert 'tools: "Task" is left out: no subagent ever gets it' in said(night)
    assert "permissionMode: ignored: a file never grants permissions" in said(night)
    (entry,) = catalogue(night.definition).entries
    assert "task" not in (entry.effective.tools or ())


@pytest.mark.parametrize("tools", ["All tools", "'*'", "['*']", "all", "Read, *"])
def test_every_tool_means_the_leads_tools_without_those_that_delegate(tools: str):
    file = scout(f"tools: {tools}")
    assert file.definition.tools is None
    assert "read as every tool of the lead, without those no subagent gets" in said(file)
    (entry,) = catalogue(file.definition).entries
    assert "task" in entry.effective.disallowed_tools


def test_a_limit_that_is_not_known_here_neither_grants_the_whole_tool_nor_forgets_a_denial():
    file = scout("tools: Read, Bash(git log, git diff)", "disallowedTools: Edit, Write(/etc/*)")
    assert file.definition.tools == ("read_file", "Bash(git log, git diff)")
    assert file.definition.disallowed_tools == ("str_replace", "write_file")
    assert "it is not granted" in said(file)
    assert "it is denied altogether" in said(file)


def test_a_list_of_nothing_but_tools_that_delegate_is_no_tool_and_not_every_tool():
    assert scout("tools: Task, Agent").definition.tools == ()


# --- Names ----------------------------------------------------------------------------------------------------
def test_one_name_counts_and_label_and_file_name_are_said():
    engineer = sample("13")
    assert (engineer.definition.name, engineer.definition.display_name) == ("data-engineer", "Data Engineer 🦊")
    file = written("name: Data Engineer\ndescription: Builds pipelines.", file_name="team/data_eng.md")
    assert (file.definition.name, file.definition.display_name) == ("data-engineer", "Data Engineer")
    assert said(file).splitlines() == [
        'data_eng.md:2:1 name: "Data Engineer" is called by the name "data-engineer"',
        'data_eng.md:2:1 name: the file is called "data_eng"; the name "data-engineer" counts',
    ]


@pytest.mark.parametrize(
    ("name", "file_name", "expected"),
    [
        ("Scout", "scout.md", "scout"),
        ("data_eng", "data_eng.md", "data-eng"),
        ("Café", "cafe.md", "cafe"),
        ("数据工程师", "data-eng.md", "data-eng"),
        ("'007'", "bond.md", "007"),
        ("../pwned", "x.md", "pwned"),
    ],
)
def test_a_name_becomes_one_that_can_be_called(name: str, file_name: str, expected: str):
    file = written(f"name: {name}\ndescription: Does things.", file_name=file_name)
    assert file.definition.name == expected


def test_a_missing_name_is_the_files_and_a_name_of_nothing_is_refused():
    file = written("description: Does things.", file_name="field-notes.md")
    assert file.definition.name == "field-notes"
    assert 'not set; the file\'s name "field-notes" is used' in said(file)
    assert places(written("name: 数据\ndescription: Does things.", file_name="数据.md")) == [(2, "name")]


@pytest.mark.parametrize("name", ["007", "yes", "2026-01-01", "true", "1e3", "[a]"])
def test_a_name_that_yaml_reads_as_something_else_is_refused_with_its_line(name: str):
    file = written(f"name: {name}\ndescription: Does things.", file_name="bond.md")
    assert file.definition is None
    assert (2, "name") in places(file)


# --- What cannot be imported ----------------------------------------------------------------------------------
def test_a_file_without_header_is_called_that_and_no_fence_in_it_is_taken_for_one():
    panel = sample("11")
    assert panel.definition is None
    assert said(panel) == (
        "11_agent_no_frontmatter_yaml_in_body.md:1:1 no front matter: the file does not begin with a line of three"
        " hyphens"
    )
    assert "not closed" in said(read_agent_file(b"---\nname: a\ndescription: b\n", file_name="a.md"))


def test_a_description_beyond_the_limit_is_an_error_of_that_field():
    winded = sample("12")
    assert winded.definition is None
    assert places(winded) == [(3, "description")]
    assert "at most 2000 characters" in said(winded)


def test_what_is_missing_is_named_field_by_field_and_never_replaced():
    nobody = sample("14")
    assert nobody.definition is None
    assert {path for _line, path in places(nobody)} == {"description", "system_prompt"}


def test_what_is_said_twice_is_refused_with_both_lines():
    file = scout("model: a", "Model: b")
    assert file.definition is None
    assert said(file) == 'scout.md:5:1 "Model" is given twice; the other one stands on line 4'
    aliases = scout("timeout: 5", "timeout_seconds: 6")
    assert places(aliases) == [(5, "timeout_seconds")]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "no front matter"),
        (b"---\nname: a\n\xff\n---\n", "not UTF-8"),
        ("---\nname: 数据\n---\n".encode("gbk"), "can be read as GBK"),
        ("---\nname: a\n---\n".encode("utf-16"), "UTF-16"),
        (b"---\nname: a\x00\n---\nx", "a NUL byte"),
        (b"---\n- a\n- b\n---\nx", "names and values"),
        (b"---\nname: !!python/object/apply:os.getcwd []\ndescription: d\n---\nx", "is not allowed"),
    ],
)
def test_whatever_is_wrong_has_its_reason(raw: bytes, words: str):
    file = read_agent_file(raw, file_name="a.md")
    assert file.definition is None
    assert words in said(file)


def test_a_byte_order_mark_is_no_part_of_the_header():
    raw = b"\xef\xbb\xbf---\r\nname: scout\r\ndescription: Finds things.\r\n---\r\nLook."
    assert read_agent_file(raw, file_name="scout.md").definition.name == "scout"


def test_four_broken_files_hide_none_and_the_fifth_can_be_used():
    files = [sample(start) for start in ("10", "11", "12", "14")] + [scout("max_turns: many")]
    usable = [file.definition.name for file in files if file.definition]
    assert usable == ["screen-designer"]
    for file in files[1:]:
        assert places(file), file.file_name


def test_what_can_be_imported_is_managed_and_keeps_the_rules_of_every_definition():
    assert scout().definition.source is Source.MANAGED
    for line in ("max_turns: true", "max_turns: 0", "timeout: 30m", "skills: {a: 1}", "enabled: 'no'"):
        assert places(scout(line)) == [(4, places(scout(line))[0][1])]


@given(st.binary(max_size=300))
def test_no_bytes_raise(raw: bytes):
    for content in (raw, b"---\n" + raw + b"\n---\nbody", b"---\nname: a\ndescription: " + raw + b"\nmodel: x\n---\nb"):
        file = read_agent_file(content, file_name="a.md")
        assert file.definition is not None or file.problems
