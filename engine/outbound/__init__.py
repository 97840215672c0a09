"""Requests to addresses that a person, a program or a model named: which of them may be reached, and reaching them."""
