"""The config.yaml in the project's root: what people start from."""

from __future__ import annotations

import re
from pathlib import Path

from engine.config.reader import default_config, read_config
from engine.config.schema import Config, Section
from tests.engine.config.reading import messages, read

SHIPPED = Path(__file__).parents[3] / "config.yaml"
UNSET_BY_DEFAULT = {"subagents.max_turns", "subagents.token_budget"}


def test_the_shipped_file_loads_without_a_problem_and_holds_the_defaults():
    result = read_config(SHIPPED.read_bytes())
    assert result.problems == ()
    assert result.config.model_copy(update={"models": ()}) == default_config()


def test_the_shipped_file_starts_with_a_model_that_needs_no_key():
    demo, gpt = read_config(SHIPPED.read_bytes()).config.models
    assert (demo.name, demo.use, demo.api_key) == ("demo", "engine.models.demo:DemoChatModel", None)
    assert (gpt.use, gpt.api_key) == ("langchain_openai:ChatOpenAI", "$OPENAI_API_KEY")


def test_every_option_of_every_section_stands_in_the_shipped_file():
    written = SHIPPED.read_text("utf-8")
    for name, field in Config.model_fields.items():
        assert re.search(rf"^{name}:", written, re.MULTILINE), name
        options = field.annotation.model_fields if isinstance(field.default, Section) else ()
        for option in options:
            assert re.search(rf"^  (# )?{option}:", written, re.MULTILINE), f"{name}.{option}"


def test_the_examples_in_the_comments_are_valid_when_uncommented():
    result = read(_uncommented(SHIPPED.read_text("utf-8")))
    assert result.problems == (), messages(result)
    config = result.config
    assert [model.name for model in config.models] == ["demo", "gpt"]
    assert config.models[1].price.cached_input == 0.025
    assert config.subagents.agents["bash"].token_budget.max_tokens == 500_000
    assert list(config.subagents.custom_agents) == ["analysis"]
    assert (len(config.tools), len(config.mcp_servers), len(config.acp_agents)) == (1, 2, 1)
    assert config.async_subagents[0].webhook == "https://hooks.example.com/done"


def _uncommented(text: str) -> str:
    """Turn commented options into options; an empty `{}` or `[]` before deeper lines makes room for them."""
    lines = [
        re.sub(r"^( *)#( *(?:- )?[\w-]+:(?: .*)?)$", _without_mark, line)
        for line in text.splitlines()
        if line.strip() and not re.match(r"^ *# [A-Z]", line)
    ]
    filled = [*map(_without_empty_value, lines, [*lines[1:], ""])]
    return "\n".join(filled) + "\n"


def _without_mark(found: re.Match[str]) -> str:
    return found[1] + (found[2][1:] if found[1] else found[2])


def _without_empty_value(line: str, following: str) -> str:
    deeper = len(following) - len(following.lstrip()) > len(line) - len(line.lstrip())
    return re.sub(r"^( *\w+:) (?:\{\}|\[\])(?= |$)", r"\1", line) if deeper else line


def test_the_defaults_are_one_value():
    assert default_config() == Config()
