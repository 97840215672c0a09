"""The product under measurement: home, configuration, account, key, and how it is started."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import ServerFailed

PROJECT = Path(__file__).resolve().parent.parent
START = f"{shlex.quote(sys.executable)} manage.py up --port {{port}}"
WIRE_PATH = "/langgraph"
ASSISTANT = "lead_agent"
ACCOUNT = "bench"

CHAT_MODELS = {
    "openai": "langchain_openai:ChatOpenAI",
    "thin": "engine.models.openai_compatible:OpenAICompatibleChat",
}

CONFIG = """\
models:
  - name: scripted
    use: {use}
    model: scripted
    api_key: not-a-key
    base_url: {model_url}
    stream_usage: true
    max_retries: 2
"""
# More slots and waiting runs than a deployment allows by default: the bursts measure the machinery, not the
# limits that protect it.
LIMITS = """\
runs:
  workers: 2
  slots_per_worker: 300
  max_pending_per_owner: 1000
"""


@dataclass(frozen=True, slots=True)
class Product:
    """What it takes to start a server and to speak with it."""

    argv: list[str]
    url: str
    ready_url: str
    env: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.headers.get("x-api-key", "")


def prepare(
    workplace: Path, *, port: int, model_url: str, database_url: str, chat_model: str, limits: str = LIMITS
) -> Product:
    """Make home, configuration, tables, account and key for the project's own `manage.py up`."""
    home, config = workplace / "home", workplace / "config.yaml"
    home.mkdir(mode=0o700)
    written = CONFIG.format(use=CHAT_MODELS[chat_model], model_url=model_url) + limits
    config.write_text(written, encoding="utf-8")
    env = {**os.environ, "DEER_FLOW_HOME": str(home), "DEER_FLOW_CONFIG": str(config), "LOG_LEVEL": "WARNING"}
    env.pop("DATABASE_URL", None)
    if database_url:
        env["DATABASE_URL"] = database_url
    _manage(env, "migrate", "--no-input", "--verbosity", "0")
    account = ("--username", ACCOUNT, "--email", f"{ACCOUNT}@example.invalid", "--no-input")
    _manage({**env, "DJANGO_SUPERUSER_PASSWORD": os.urandom(16).hex()}, "createsuperuser", *account)
    made = _manage(env, "apikeys", "create", "--user", ACCOUNT, "--scope", "run", "--json")
    headers = {"x-api-key": str(json.loads(made)["key"])}
    return started_by(START, port=port, model_url=model_url, path=WIRE_PATH, env=env, headers=headers)


def started_by(
    command: str,
    *,
    port: int,
    model_url: str,
    path: str,
    env: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
) -> Product:
    """Any server: `{port}` and `{model}` in its command are filled in; its wire is mounted at `path`."""
    argv = [part.format(port=port, model=model_url) for part in shlex.split(command)]
    url = f"http://127.0.0.1:{port}{path}"
    return Product(argv, url, f"{url}/ok", env or dict(os.environ), headers or {})


def _manage(env: dict[str, str], *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise ServerFailed(f"manage.py {' '.join(arguments)} exited with {ended.returncode}\n{ended.stderr}")
    return ended.stdout
