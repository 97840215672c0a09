"""The chat in the browser: pages, actions, and how the log becomes frames."""
