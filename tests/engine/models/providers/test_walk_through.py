"""The entries of docs/models.md: each loads, builds its class, and says in the request whether to think."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import HumanMessage

from engine.config.schema import ModelConfig
from engine.models.registry import ModelRegistry
from tests.engine.fakes import echo
from tests.engine.models.providers.test_providers import KEY, PROVIDERS

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

PAGE = (Path(__file__).parents[4] / "docs/models.md").read_text("utf-8")
ENTRIES: dict[str, dict[str, Any]] = {
    entry["name"]: entry for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.S) for entry in yaml.safe_load(block)
}
NAMES = {"gpt": "openai", "claude": "anthropic", "gemini": "google", "local": "ollama"}
# What the request holds in a run that shall think and in one that shall not.
SAYS = {
    "gpt": ('"reasoning_effort": "medium"', '"reasoning_effort": "minimal"'),
    "claude": ('"type": "adaptive"', '"effort": "low"'),
    "gemini": ('"include_thoughts": true', '"MINIMAL"'),
    "deepseek": ('"type": "enabled"', '"type": "disabled"'),
    "qwen": ('"enable_thinking": true', '"enable_thinking": false'),
    "local": ('"think": true', '"think": false'),
    "vllm": ('"enable_thinking": true', '"enable_thinking": false'),
}


def test_the_page_shows_every_provider_that_is_tried():
    assert {NAMES.get(name, name) for name in ENTRIES} == set(PROVIDERS)
    assert {entry["use"] for entry in ENTRIES.values()} == {provider.use for provider in PROVIDERS.values()}


@pytest.mark.parametrize("name", SAYS)
async def test_a_run_that_shall_think_says_so_and_one_that_shall_not_says_that(name, provider_server):
    provider = PROVIDERS[NAMES.get(name, name)]
    thinks, does_not = SAYS[name]
    async with provider_server(provider.dialect) as (url, asked):
        entry = ModelConfig(**{**ENTRIES[name], "base_url": url + provider.prefix})
        models = ModelRegistry([entry], {str(entry.api_key).lstrip("$"): KEY})
        for thinking in (True, False):
            bound = models.chat_model(name, thinking=thinking).bind_tools([echo])
            async for _piece in bound.astream([HumanMessage("Go.")]):
                pass
        await models.aclose()
    said = [json.dumps(one.body) for one in asked]
    assert thinks in said[0]
    assert does_not in said[1]


def test_one_object_serves_both_where_the_entry_makes_no_difference():
    entry = ModelConfig(**ENTRIES["compatible"])
    assert not entry.tells_thinking
    assert entry.thinking(True) is entry.thinking(False) is entry


def test_what_an_entry_says_always_stays_beside_what_it_says_of_thinking():
    entry = ModelConfig(**{**ENTRIES["qwen"], "extra_body": {"top_k": 20}})
    assert entry.thinking(True).extra["extra_body"] == {"top_k": 20, "enable_thinking": True}
