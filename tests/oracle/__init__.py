"""The Agent Protocol server beside `langgraph dev`: one script of SDK calls, both answers, every difference explained.

`make oracle` installs the reference into an environment of its own, starts both servers, and prints what differs.
"""
