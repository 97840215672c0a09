"""Graphs of langgraph.json as agents: checkpoints and what a run asks of its graph. Only `saver` needs LangGraph."""
