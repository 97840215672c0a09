"""A house with graphs: each a module that a test writes, on the scripted model."""

from __future__ import annotations

import json
import threading
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from runs import services
from runs.event_types import EventType
from runs.lifecycle import commit_one
from subagents import registry
from tests.runs.workers.house import KEY, House

if TYPE_CHECKING:
    from runs.models import Run, Thread

HEAD = """
import operator, os, threading
from typing import Annotated, Any, TypedDict
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_openai import ChatOpenAI
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from tests.runs.graphs import registered

def chat_model():
    return ChatOpenAI(model="scripted", api_key={key!r}, base_url={url!r}, stream_usage=True)

def chain(state, *nodes):
    builder = StateGraph(state)
    for node in nodes:
        builder.add_node(node.__name__, node)
    for before, after in zip((START, *[node.__name__ for node in nodes]), (*[node.__name__ for node in nodes], END)):
        builder.add_edge(before, after)
    return builder
"""

happened: list[str] = []  # what nodes did, in order
gates: dict[str, threading.Event] = {}  # nodes that wait, by name


def gate(name: str) -> threading.Event:
    return gates.setdefault(name, threading.Event())


class GraphHouse(House):
    """See the module's text. The rules for histories of our own agents are checked where they hold for graphs."""

    def graphs(self, **modules: str) -> None:
        """Register graphs: name → source of a module that has `graph`."""
        folder = self._config_file.parent
        head = HEAD.format(key=KEY, url=self.model.url)
        for name, source in modules.items():
            (folder / f"{name}_graph.py").write_text(head + dedent(source), encoding="utf-8")
        self.register({name: f"./{name}_graph.py:graph" for name in modules})
        happened.clear()
        gates.clear()

    def register(self, graphs: Any, **sections: Any) -> None:
        text = json.dumps({"graphs": graphs, **sections})
        (self._config_file.parent / "langgraph.json").write_text(text, encoding="utf-8")
        registry.forget()

    def start(self, agent: str, text: str = "", *, thread: Thread | None = None, **graph: Any) -> Run:
        """Start a run of a graph, with words, or with what is asked of the graph, or both."""
        thread = thread or services.create_thread(owner=self.owner)
        messages = [services.user_message(text)] if text else []
        run: Run = commit_one(
            services.graph_start_verb(
                thread_id=thread.pk, owner_id=thread.owner_id, agent=agent, messages=messages, graph=graph
            )
        )
        return run

    def answered(self, agent: str, text: str = "", **asked: Any) -> Run:
        run = self.start(agent, text, **asked)
        self.work()
        return self.again(run)

    def parts(self, run: Run, mode: str) -> list[Any]:
        """The data of the run's stream parts of a mode."""
        told = self.events(run, EventType.GRAPH_PART)
        return [part.get("data", part.get("checkpoint")) for part in told if part["mode"] == mode]

    def words(self, run: Run) -> list[str]:
        return [f"{message['type']}: {message['content']}" for message in self.messages(run)]
