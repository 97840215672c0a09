"""The LangGraph SDK's paths, mounted at /langgraph/: threads and runs of the lead over HTTP and SSE.

A plain ASGI application beside Django's: these are the hot paths of programs, they need no session and no middleware,
and each request costs one or two hops to the database thread.
"""
