"""The Agent Protocol's paths, mounted at /ap/: the same agents, threads and runs as thin views in its own shapes."""
