"""Graphs of langgraph.json. Reading the file needs no LangGraph; loading and running them does."""
