from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from subagents import registry
from tests.subagents.admin.conftest import LIST, PageText, page_of

if TYPE_CHECKING:
    from django.test import Client

    from tests.subagents.conftest import SaveManaged, WriteConfig

pytestmark = pytest.mark.django_db

CONFIG = """
sandbox: {provider: local, allow_host_bash: true}
subagents:
  max_turns: 120
  token_budget: {max_tokens: 1500000}
  agents:
    bash: {max_turns: 80}
  custom_agents:
    analyst: {description: Asks the warehouse., system_prompt: Query., tools: [], skills: [sql], model: gone}
    broken: {description: 7}
    Bad Name: {}
"""
FIELDS = [
    *("name", "display_name", "description", "enabled"),
    *("system_prompt", "model", "tools", "disallowed_tools", "skills"),
    *("max_turns", "timeout_seconds"),
    *("token_budget.enabled", "token_budget.max_tokens", "token_budget.warn_threshold"),
]


@pytest.fixture(autouse=True)
def everything(managed: SaveManaged, write_config: WriteConfig) -> None:
    managed("analyst", system_prompt="</pre><script>alert(1)</script> {{ x }} {% y %}", display_name="<i>Ours</i>")
    managed("scout")
    write_config(CONFIG)


def keys() -> list[str]:
    return [entry.key for entry in registry.current().catalogue.entries]


def row(page: str, field: str) -> str:
    """The words of one field's row."""
    found = re.search(rf"<code>{re.escape(field)}</code>.*?</tr>", page, re.DOTALL)
    assert found, field
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


@pytest.mark.smoke
def test_every_entry_has_a_page(text_of: PageText):
    assert len(keys()) == 7
    for key in keys():
        text_of(page_of(key))


def test_a_page_shows_every_field_with_its_value_and_its_winning_layer(text_of: PageText):
    page = text_of(page_of("config-analyst"))
    assert re.findall(r"<th scope=\"row\">.*?<code>(.*?)</code>", page) == FIELDS
    assert (
        row(page, "tools")
        == "tools none config.yaml › subagents.custom_agents.analyst.tools default: all of the lead's tools"
    )
    assert row(page, "skills").startswith("skills sql config.yaml")
    assert row(page, "timeout_seconds") == "timeout_seconds 1,800 s default"


def test_the_layers_below_the_winner_are_listed_strongest_first(text_of: PageText):
    assert row(text_of(page_of("builtin-bash")), "max_turns") == (
        "max_turns 80 turns config.yaml › subagents.agents.bash.max_turns"
        " config.yaml › subagents.max_turns: 120 turns default: 60 turns"
    )


def test_a_budget_is_explained_field_by_field(text_of: PageText):
    page = text_of(page_of("managed-scout"))
    assert row(page, "token_budget.max_tokens").startswith(
        "token_budget.max_tokens 1,500,000 config.yaml › subagents.token_budget.max_tokens"
    )
    assert row(page, "token_budget.enabled") == "token_budget.enabled on default"
    assert row(page, "token_budget.warn_threshold") == "token_budget.warn_threshold 70 % default"


def test_the_denied_tools_are_shown_on_every_entry(text_of: PageText):
    assert "task, start_async_task" in row(text_of(page_of("managed-scout")), "disallowed_tools")


def test_a_shadowed_entry_says_who_holds_its_name(text_of: PageText):
    assert "held by a stronger source (config.yaml)" in text_of(page_of("managed-analyst"))


def test_an_invalid_entry_shows_its_problems_with_their_places(text_of: PageText):
    page = text_of(page_of("config-broken"))
    assert "config.yaml:10:27 subagents.custom_agents.broken.description" in page
    assert "never lets a weaker one take over" in page


def test_an_entry_with_an_impossible_name_opens_too(text_of: PageText):
    key = next(key for key in keys() if key.startswith("config--"))
    assert "Bad Name" in text_of(page_of(key))


def test_unknown_references_are_flagged(text_of: PageText):
    page = text_of(page_of("config-analyst"))
    assert "no configured model named “gone”" in page
    assert "no skill named “sql”" in page


def test_a_prompt_is_shown_as_text_and_never_as_markup(admin_client: Client):
    page = admin_client.get(page_of("managed-analyst")).content.decode()
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt; {{ x }} {% y %}" in page
    assert "<script>alert(1)" not in page
    assert "&lt;i&gt;Ours&lt;/i&gt;" in page


@pytest.mark.parametrize("key", ["builtin-bash", "config-analyst", "managed-scout"])
def test_prompts_are_shown_only_to_those_who_may_read_them(key: str, viewer: Client, prompt_reader: Client):
    prompt = registry.current().catalogue.by_key(key).definition.system_prompt[:40]  # type: ignore[union-attr]
    assert prompt in prompt_reader.get(page_of(key)).content.decode()
    page = viewer.get(page_of(key)).content.decode()
    assert prompt not in page
    assert "You may not read prompts" in page


def test_staff_without_permission_see_no_entry(outsider: Client):
    assert outsider.get(page_of("builtin-bash")).status_code == 403


def test_the_history_of_every_entry_opens(admin_client: Client):
    for key in keys():
        assert admin_client.get(f"{LIST}{key}/history/").status_code == 200


def test_a_name_is_written_as_it_is_wherever_the_page_shows_it(text_of: PageText):
    shown = re.sub(r"<[^>]*>", "\n", text_of(page_of("builtin-bash")))
    assert "bash" in shown.split()
    assert not re.search(r"^\s*Bash\s*$", shown, re.MULTILINE)
