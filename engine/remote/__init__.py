"""Agents on other Agent Protocol servers: reaching them within the policy for addresses, and what they answer."""
