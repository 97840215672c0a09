"""`/api/v1`: subagents and custom agents over HTTP. Edges only: what may be changed, and how, is said in `services`."""
