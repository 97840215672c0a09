"""`/api/v1`: threads, runs and their events over HTTP. Edges only: what may be done, and how, is said in `services`."""
