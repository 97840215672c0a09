from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.site.processes import BASE_DIR

HEAVY = {"langchain", "langchain_core", "langgraph", "langchain_openai", "openai", "anthropic", "tiktoken"}


@pytest.mark.parametrize("module", ["deerflow_site.urls", "deerflow_site.asgi"])
def test_set_up_and_addresses_import_no_agent_stack(module: str):
    show = f"import sys, django; django.setup(); import {module}; print(*{{n.partition('.')[0] for n in sys.modules}})"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "deerflow_site.settings"}
    done = subprocess.run([sys.executable, "-c", show], cwd=BASE_DIR, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert HEAVY & set(done.stdout.split()) == set()
