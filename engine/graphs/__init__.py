"""Graphs that somebody wrote with LangGraph and registered in langgraph.json. Only `run` and `loading` need LangGraph."""
