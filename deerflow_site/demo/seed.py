"""The demonstration's data. Every step looks first, so that a second start changes nothing."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model

if TYPE_CHECKING:
    from django.contrib.auth.models import User

ADMIN_NAME = "admin"
SHIPPED_CONFIG = Path(__file__).with_name("config.yaml")
_QUESTION = "Compare three note-taking apps for a small team and recommend one."

_MANAGED: tuple[dict[str, object], ...] = (
    {
        "name": "translator",
        "display_name": "Translator",
        "description": "Translate a text between English and Chinese, keeping its tone, terms and formatting.",
        "system_prompt": (
            "You translate between English and Chinese. Keep headings, lists and code as they are, translate terms "
            "the same way throughout, and end with a list of the terms you had to choose."
        ),
        "tools": ["ls", "read_file", "write_file"],
        "max_turns": 20,
    },
    {
        "name": "meeting-notes",
        "display_name": "Meeting notes",
        "description": "Turn a transcript or rough notes into decisions, open questions and tasks with owners.",
        "system_prompt": (
            "You write minutes. From the notes you are given, list decisions, open questions and tasks, each task "
            "with its owner and date when the notes name them. Invent nothing; say what is missing."
        ),
        "tools": [],
    },
)
# What an administrator made before somebody gave the name to config.yaml: kept, and shown as a conflict.
_OVERTAKEN: dict[str, object] = {
    "name": "fact-checker",
    "display_name": "Fact checker (ours)",
    "description": "Check the figures of a report against its sources and mark those that differ.",
    "system_prompt": "You compare each figure of a report with the source it names and list every difference.",
    "max_turns": 30,
}


def config_copy() -> Path:
    """The demonstration's config.yaml in the home folder, made on the first start and never overwritten."""
    path = settings.DEER_FLOW_HOME / "demo" / "config.yaml"
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(SHIPPED_CONFIG, path)
    return path


def make_administrator() -> str | None:
    """Create the demonstration's administrator and return its password; None when somebody has an account."""
    users = get_user_model().objects
    if users.exists():
        return None
    password = secrets.token_urlsafe(12)
    users.create_superuser(username=ADMIN_NAME, password=password)
    return password


def add_samples() -> None:
    """Managed subagents, one of them in conflict, and a finished thread, all owned by the administrator."""
    administrator = get_user_model().objects.filter(username=ADMIN_NAME).first()
    if administrator is None:
        return
    _add_subagents(administrator)
    _add_thread(administrator)


def _add_subagents(administrator: User) -> None:
    from subagents import registry, services
    from subagents.errors import NameTaken
    from subagents.kinds import SUBAGENT

    actor = services.Actor(user=administrator)
    for fields in _MANAGED:
        try:
            services.create(SUBAGENT, fields, actor=actor)
        except NameTaken:
            continue
    try:
        # Past the service, which rightly refuses the name: the row stands for one that was there first.
        registry.store(SUBAGENT).put(SUBAGENT.validate(_OVERTAKEN), expected_version=None)
    except NameTaken:
        return
    registry.forget()


def _add_thread(administrator: User) -> None:
    """One conversation with its delegations, really run, with the demo model's pauses left out."""
    from runs import services
    from runs.models import Thread
    from runs.worker.inline import run_until_idle

    if Thread.objects.filter(owner=administrator).exists():
        return
    thread = services.create_thread(owner=administrator, title="Note-taking apps for a small team")
    services.start_run(thread=thread, text=_QUESTION)
    asyncio.run(run_until_idle())
