"""The supervisor: a deepagents graph whose agents work in the background.

Run by this platform it needs no URL: its agents are graphs of the same langgraph.json, asked in process as the owner
of the run. Run anywhere else, AGENTS_URL=https://host/langgraph and LANGGRAPH_API_KEY make them agents of that host.
"""

from __future__ import annotations

import os

from deepagents import create_deep_agent
from example_model import chat_model

URL = os.environ.get("AGENTS_URL", "")
PLACE = {"url": URL} if URL else {}

graph = create_deep_agent(
    model=chat_model("supervisor"),
    system_prompt="You hand work to your background agents and say what you have started.",
    subagents=[
        {"name": "researcher", "description": "Looks things up.", "graph_id": "researcher", **PLACE},
        {"name": "coder", "description": "Writes small programs.", "graph_id": "coder", **PLACE},
    ],
)
