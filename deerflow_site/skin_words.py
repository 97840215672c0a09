"""The admin skin's own sentences that people meet on our pages: it brings no translations, so ours hold them.

Only named here, for the collector of messages; the skin looks them up itself.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop

WORDS = (
    gettext_noop("Filters"),
    gettext_noop("Type to search"),
    gettext_noop("Apply Filters"),
    gettext_noop("Reset filters"),
    gettext_noop("Clear all filters"),
    gettext_noop("Search apps and models..."),
    gettext_noop("Select Record"),
    gettext_noop("Select record"),
    gettext_noop("Select all rows"),
    gettext_noop("Select action"),
    gettext_noop("Select action to run"),
    gettext_noop("Run"),
    gettext_noop("No results found"),
    gettext_noop("This page yielded into no results. Create a new item or reset your filters."),
)
