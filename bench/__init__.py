"""Measures the product over HTTP, as multiples of the smallest server that could do the same."""

from __future__ import annotations
