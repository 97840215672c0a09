"""What can go wrong with another server, each as one sentence that a model and a person can act on."""

from __future__ import annotations

from enum import StrEnum

from engine.reasons import Reason
from engine.reasons import gettext_noop as _


class FaultKind(StrEnum):
    """What went wrong. The word is stable: programs and tests go by it."""

    ADDRESS = "address"  # the policy for addresses refuses it
    DNS = "dns"
    REFUSED = "refused"
    TLS = "tls"
    TIMEOUT = "timeout"
    CUT = "cut"  # the connection ended before the answer did
    REDIRECT = "redirect"
    TOO_LARGE = "too_large"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    BUSY = "busy"
    REJECTED = "rejected"  # any other 4xx
    BROKEN = "broken"  # 5xx
    NOT_PROTOCOL = "not_protocol"  # an answer that no Agent Protocol server gives
    UNKNOWN_GRAPH = "unknown_graph"
    CONFIGURATION = "configuration"  # nothing was sent


SENTENCES = {
    FaultKind.ADDRESS: _("The address of %(host)s may not be reached: %(why)s"),
    FaultKind.DNS: _("The name %(host)s is not known (DNS)."),
    FaultKind.REFUSED: _("%(host)s refuses connections: nothing listens there, or a firewall is between."),
    FaultKind.TLS: _("No secure connection to %(host)s: %(why)s"),
    FaultKind.TIMEOUT: _("%(host)s did not answer within %(seconds)s seconds."),
    FaultKind.CUT: _("%(host)s ended the connection before its answer was whole."),
    FaultKind.REDIRECT: _("%(host)s redirects to %(where)s, which is not followed: %(why)s"),
    FaultKind.TOO_LARGE: _("The answer of %(host)s is larger than %(limit)s MB and was not read."),
    FaultKind.UNAUTHORIZED: _("%(host)s does not accept the credentials (%(status)s). %(said)s"),
    FaultKind.NOT_FOUND: _("%(host)s does not know it (404). %(said)s"),
    FaultKind.BUSY: _("%(host)s has too much to do (429). %(said)s"),
    FaultKind.REJECTED: _("%(host)s refuses the request (%(status)s). %(said)s"),
    FaultKind.BROKEN: _("%(host)s failed (%(status)s). %(said)s"),
    FaultKind.NOT_PROTOCOL: _("%(host)s does not answer like an Agent Protocol server: %(why)s"),
    FaultKind.UNKNOWN_GRAPH: _("%(host)s answers, and knows no graph or assistant called %(graph_id)s."),
    FaultKind.CONFIGURATION: _("Nothing was sent: %(why)s"),
}

ANOTHER_HOST = _("only redirects within the same host are, because headers go along. Use that address as url.")
NOT_A_URL = _("that is no address.")
METHOD_CHANGES = _("this kind of redirect loses the request. Use that address as url.")
TOO_MANY = _("it redirects again and again.")
ENCODED = _("the answer is encoded in a way that nobody asked for.")
NOT_HTTP = _("the answer is not HTTP.")
NOT_JSON = _("the answer is not JSON.")
EMPTY = _("the answer is empty.")
NO_RUN = _("the answer is no run.")
NO_THREAD = _("the answer is no thread.")
NO_LIST = _("the answer is no list of assistants.")
BROKEN_OFF = _("it was broken off.")
WAIT = _("It asks to wait %(seconds)s seconds.")


class RemoteFault(Exception):
    """Another server could not be reached or did not do what was asked. `sentence` says it, without any secret."""

    def __init__(self, kind: FaultKind, **facts: object) -> None:
        facts.setdefault("said", "")
        needed = {name: fact for name, fact in facts.items() if f"%({name})s" in SENTENCES[kind]}
        sentence = Reason(SENTENCES[kind], **needed)
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence
        self.facts = facts
