"""The kinds of value a configuration field takes: each refuses everything else with one sentence.

A refusal is an `Expected`, which takes what the reader found, or a plain ValueError of a reason
that stands by itself.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from engine.config import names
from engine.reasons import Reason
from engine.reasons import gettext_noop as _

DAY_SECONDS = 86_400

_LONGEST_LIST = 500
_DIGITS = re.compile(r"0|[1-9][0-9]{0,17}")
_USE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}$)(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")


class Expected(ValueError):
    """A value is not of the kind its field takes; `template` says what would have been, and has a place for `got`."""

    def __init__(self, template: str, **facts: object) -> None:
        super().__init__(template)
        self.template = template
        self.facts = facts

    def got(self, shown: str) -> Reason:
        return Reason(self.template, **self.facts, got=shown)


class Section(BaseModel):
    """A group of options. Frozen, no further keys; null is the same as leaving the option out."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, value: Any) -> Any:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            return value
        return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}


def _whole(minimum: int, maximum: int) -> BeforeValidator:
    template = _("expected an integer from %(least)s up to %(most)s, got %(got)s")
    if minimum == 1:
        template = _("expected a positive integer up to %(most)s, got %(got)s")
    facts = {"least": minimum, "most": maximum}

    def check(value: object) -> int:
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise Expected(template, **facts)
        return value

    return BeforeValidator(check)


def _number(minimum: float, maximum: float, *, above_minimum: bool = False) -> BeforeValidator:
    template = _("expected a number from %(least)s and up to %(most)s, got %(got)s")
    if above_minimum:
        template = _("expected a number above %(least)s and up to %(most)s, got %(got)s")
    facts = {"least": f"{minimum:g}", "most": f"{maximum:g}"}

    def check(value: object) -> float:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and minimum <= value <= maximum
        if not fits or (above_minimum and value == minimum):
            raise Expected(template, **facts)
        return float(value)  # type: ignore[arg-type]

    return BeforeValidator(check)


def text(maximum: int, *, may_be_empty: bool = False) -> BeforeValidator:
    """Text of at most so many characters."""

    def check(value: object) -> str:
        if isinstance(value, bool | int | float):
            raise Expected(_("expected text in quotes, got %(got)s"))
        if not isinstance(value, str):
            raise Expected(_("expected text, got %(got)s"))
        if len(value) > maximum:
            sentence = _("expected text of at most %(most)s characters, not of %(length)s")
            raise ValueError(Reason(sentence, most=maximum, length=len(value)))
        if not (may_be_empty or value.strip()):
            raise Expected(_("expected text of 1 to %(most)s characters, got %(got)s"), most=maximum)
        return value

    return BeforeValidator(check)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise Expected(_("expected true or false, got %(got)s"))
    return value


def _named(rule: Any) -> BeforeValidator:
    def check(value: object) -> str:
        if not isinstance(value, str):
            raise Expected(_("expected a name, got %(got)s"))
        return str(rule(value))

    return BeforeValidator(check)


def _use(value: str) -> str:
    if not _USE.fullmatch(value):
        raise Expected(_("expected package.module:attribute, got %(got)s"))
    return value


def _http_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(Reason(_("expected a URL that starts with http:// or https://"))) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or not value.isprintable():
        raise ValueError(Reason(_("expected a URL that starts with http:// or https:// and names a host")))
    if "@" in parts.netloc:
        raise ValueError(Reason(_("a URL must not hold a user name or password; put them in a header")))
    if " " in value:
        raise ValueError(Reason(_("a URL must not hold spaces")))
    return value


def _http_url_or_variable(value: str) -> str:
    # With a variable in it the URL is not known before it is expanded, where it is used.
    return value if "$" in value else _http_url(value)


def is_header_name(text: str) -> bool:
    return bool(_HEADER_NAME.fullmatch(text))


def is_header_value(text: str) -> bool:
    """Whether every HTTP client sends this: some refuse other text at the call, with the value in the fault."""
    return text.isascii() and text.isprintable()


def _header_name(value: str) -> str:
    if not is_header_name(value):
        raise ValueError(Reason(_("a header's name may hold only letters, digits and hyphens")))
    return value


def _header_value(value: str) -> str:
    if not is_header_value(value):
        raise ValueError(Reason(_("a header's value may hold only printable ASCII characters, on one line")))
    return value


def _environment_name(value: str) -> str:
    if not value or "=" in value or not value.isprintable():
        raise ValueError(Reason(_("an environment variable's name must not be empty or hold = or control characters")))
    return value


def _host_or_network(value: str) -> str:
    name = value.strip().lower()
    try:
        return str(ipaddress.ip_network(name))
    except ValueError:
        # A name of digits and dots only is a mistyped address, never a host.
        if not _HOST.fullmatch(name) or not re.search(r"[a-z]", name):
            raise Expected(
                _("expected a host name, an IP address or a network such as 10.0.0.0/8, got %(got)s")
            ) from None
    return name


Flag = Annotated[bool, BeforeValidator(_flag)]
Seconds = Annotated[int, _whole(1, DAY_SECONDS)]
Turns = Annotated[int, _whole(1, 1_000)]
Tokens = Annotated[int, _whole(1, 10**12)]
Count = Annotated[int, _whole(1, 1_000)]
Retries = Annotated[int, _whole(0, 10)]
LargeCount = Annotated[int, _whole(1, 100_000)]
Delegations = Annotated[int, _whole(1, 50)]
Fraction = Annotated[float, _number(0, 1, above_minimum=True)]
Temperature = Annotated[float, _number(0, 2)]
Price = Annotated[float, _number(0, 1_000_000)]
Line = Annotated[str, text(300)]
Label = Annotated[str, text(120, may_be_empty=True)]
Note = Annotated[str, text(2_000, may_be_empty=True)]
Description = Annotated[str, text(2_000)]
Prompt = Annotated[str, text(200_000)]
Words = Annotated[str, text(10_000, may_be_empty=True)]
FilePath = Annotated[str, text(4_000)]
SubagentName = Annotated[str, _named(names.normalise_name)]
LabelName = Annotated[str, _named(names.label_name)]
# pydantic runs the last-written before-validator first.
Use = Annotated[str, BeforeValidator(_use), text(300)]
HttpUrl = Annotated[str, BeforeValidator(_http_url), text(2_000)]
HttpUrlOrVariable = Annotated[str, BeforeValidator(_http_url_or_variable), text(2_000)]
HostOrNetwork = Annotated[str, BeforeValidator(_host_or_network), text(300)]
HeaderName = Annotated[str, BeforeValidator(_header_name), text(200)]
HeaderValue = Annotated[str, BeforeValidator(_header_value), text(8_000, may_be_empty=True)]
EnvironmentName = Annotated[str, BeforeValidator(_environment_name), text(200)]
# What may hold a secret is left out of every repr.
Headers = Annotated[Mapping[HeaderName, HeaderValue], Field(default_factory=dict, repr=False)]
Environment = Annotated[Mapping[EnvironmentName, Words], Field(default_factory=dict, repr=False)]


def _is_a_list(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise Expected(_("expected a list of names or null, got %(got)s"))
    if len(value) > _LONGEST_LIST:
        sentence = _("expected at most %(most)s names, got %(got)s")
        raise ValueError(Reason(sentence, most=_LONGEST_LIST, got=len(value)))
    return value


ListOfNames = BeforeValidator(_is_a_list)
Names = Annotated[tuple[Line, ...], ListOfNames]
