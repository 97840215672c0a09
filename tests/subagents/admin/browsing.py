"""A browser without JavaScript: reads a page's form as it is and sends it back with what a person changed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.http import HttpResponse
    from django.test import Client

Fields = dict[str, list[str]]


class _Reader(HTMLParser):
    """Collects what the form that holds a field of the given name would send; `buttons` are those that send it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.forms: list[Fields] = []
        self.form: Fields | None = None
        self.textarea: str | None = None
        self.select: str | None = None
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.form = {}
            self.forms.append(self.form)
        elif self.form is None:
            return
        elif tag == "input":
            self._input(found)
        elif tag == "textarea":
            self.textarea, self.text = found["name"], ""
        elif tag == "select":
            self.select = found["name"]
        elif tag == "option" and self.select and "selected" in found:
            self.form[self.select] = [found["value"]]

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.form = None
        elif tag == "textarea" and self.form is not None and self.textarea:
            # A browser drops the line end that follows the tag, and sends line ends as CR LF.
            shown = self.text.removeprefix("\n").replace("\r\n", "\n").replace("\n", "\r\n")
            self.form[self.textarea], self.textarea = [shown], None
        elif tag == "select":
            self.select = None

    def _input(self, found: dict[str, str]) -> None:
        assert self.form is not None
        is_choice = found.get("type") in {"checkbox", "radio"}
        if "name" in found and (not is_choice or "checked" in found):
            self.form.setdefault(found["name"], []).append(found.get("value", "on" if is_choice else ""))


def form_of(response: HttpResponse, holding: str) -> Fields:
    """What the page's form that holds this field would send as it is."""
    reader = _Reader()
    reader.feed(response.content.decode())
    return next(fields for fields in reader.forms if holding in fields)


def send(client: Client, path: str, *, button: str = "_save", holding: str = "tools-choice", **changes: Any) -> Any:
    """Open a page, change some fields of its form, press a button. None takes a field out of what is sent."""
    return resend(client, path, client.get(path), button=button, holding=holding, **changes)


def resend(
    client: Client, path: str, page: Any, *, button: str = "_save", holding: str = "tools-choice", **changes: Any
) -> Any:
    """The same with a page that was opened before."""
    fields: dict[str, Any] = {**form_of(page, holding), button: ""}
    fields |= {name: value if isinstance(value, list) else [value] for name, value in changes.items()}
    sent = {name: values for name, values in fields.items() if values != [None]}
    return client.post(path, sent)
