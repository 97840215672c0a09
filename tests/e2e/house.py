"""The whole product as a person meets it: `manage.py up` on its own data, a scripted model server, a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deerflow_site.supervisor import answers
from tests.site.processes import BASE_DIR, Spoken, descendants, eventually

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.sync_api import Page

NAME, PASSWORD = "lin", "correct horse 9 battery"
CONFIG = """\
models:
  - name: scripted
    use: langchain_openai:ChatOpenAI
    model: scripted
    api_key: none
    base_url: {url}
runs: {{workers: 2}}
"""


@dataclass
class House:
    """A running installation with one person in it."""

    home: Path
    environment: Mapping[str, str]
    server: Spoken
    url: str
    web_ended: int = 0  # how often the test has ended the web process

    @classmethod
    def start(cls, home: Path, environment: Mapping[str, str], model_url: str) -> House:
        home.mkdir(parents=True, exist_ok=True)
        config = home / "config.yaml"
        config.write_text(CONFIG.format(url=model_url), encoding="utf-8")
        own = {**environment, "DEER_FLOW_HOME": str(home), "DEER_FLOW_CONFIG": str(config), "LEASE_SECONDS": "2"}
        server = Spoken([sys.executable, "manage.py", "up", "--port", "0"], own)
        try:
            url = re.search(r"Ready after .*?(http://\S+)", server.wait_for("Ctrl-C stops", 60))
            assert url, server.text
            house = cls(home, own, server, url[1].rstrip("/"))
            house.manage("createsuperuser", "--noinput", "--username", NAME, "--email", "lin@example.org")
        except BaseException:
            server.close()
            raise
        return house

    def manage(self, *arguments: str) -> str:
        """What a management command printed."""
        environment = {**self.environment, "DJANGO_SUPERUSER_PASSWORD": PASSWORD}
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, expression: str) -> Any:
        """The value of a Python expression over `runs.models` and `subagents.models`, computed in the installation."""
        code = f"import json; from runs.models import *; print('=>' + json.dumps({expression}, default=str))"
        return json.loads(self.manage("shell", "-v0", "-c", code).rpartition("=>")[2])

    def kill_worker(self, name: str) -> None:
        """SIGKILL the worker process of this name (host:pid)."""
        pid = int(name.rpartition(":")[2])
        assert pid in descendants(self.server.pid), f"{name} is not one of ours"
        os.kill(pid, signal.SIGKILL)

    def web_process(self) -> int:
        """The id of the process that answers requests; -1 while there is none."""
        below = ((pid, Path(f"/proc/{pid}/cmdline")) for pid in descendants(self.server.pid))
        return next((pid for pid, line in below if line.exists() and b"uvicorn" in line.read_bytes()), -1)

    def end_web(self, number: int) -> None:
        """Send a signal to the web process; its supervisor says that it has ended and starts another."""
        self.web_ended += 1
        os.kill(self.web_process(), number)
        self.server.wait_for_times("The web server stopped", self.web_ended, 60)

    def until_web_answers(self) -> None:
        assert eventually(lambda: answers(self.url.partition("://")[2]), 60), self.server.text

    def explains(self, fault: str) -> bool:
        """Whether a browser's complaint only says that the web process was away when the test had ended it."""
        return self.web_ended > 0 and any(words in fault for words in ("WebSocket connection", "ERR_CONNECTION_"))

    def sign_in(self, page: Page) -> None:
        page.goto(self.url)
        page.fill("input[name=username]", NAME)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_selector("textarea")

    def send(self, page: Page, text: str) -> None:
        page.fill("textarea", text)
        page.press("textarea", "Enter")

    def new_chat(self, page: Page, text: str) -> str:
        """Send the first message of a new thread; returns the thread's id."""
        page.goto(f"{self.url}/chat/")
        self.send(page, text)
        page.wait_for_url(re.compile(r"/chat/[0-9a-f-]{36}/"))
        return page.url.rstrip("/").rpartition("/")[2]

    def stop(self) -> None:
        self.server.process.send_signal(signal.SIGTERM)
        assert eventually(lambda: self.server.process.poll() is not None), "did not stop"
        self.server.close()


def log_of(page: Page, house: House, thread: str) -> list[dict[str, Any]]:
    """The thread's log as the page's own session may read it, from the beginning."""
    answer = page.request.get(f"{house.url}/chat/{thread}/events?after=0")
    assert answer.ok, answer.status
    frames: list[dict[str, Any]] = answer.json()["frames"]
    return frames
