"""Where an agent's files live and its commands run."""
