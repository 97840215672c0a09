from __future__ import annotations

from subagents.adminkit import IS_UNFOLD, display


def test_a_column_with_coloured_labels_shows_its_words_in_either_skin():
    @display(description="state", ordering="state", label={"on": "success"})
    def state(_row: object) -> tuple[str, str]:
        return "on", "Switched on"

    shown = state(None)
    assert shown == (("on", "Switched on") if IS_UNFOLD else "Switched on")
    assert (state.short_description, state.admin_order_field) == ("state", "state")  # type: ignore[attr-defined]
