"""Whatever the bytes are, reading gives a result and never raises."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.config.reader import ReadResult, read_config
from tests.engine.config.reading import SAMPLES
from tests.engine.config.test_shipped_file import SHIPPED

STARTS = [SHIPPED.read_bytes(), *(path.read_bytes() for path in sorted(SAMPLES.glob("*.yaml")))]
SNIPPETS = [
    b"\t",
    b"\0",
    b"\xff",
    b"\r",
    b"\n",
    b": ",
    b"- ",
    b"{",
    b"}",
    b"[",
    b"]",
    b"&a ",
    b"*a",
    b"!!x ",
    b"? ",
    b"| ",
    b"'",
    b'"',
    b"#",
    b"~",
    b"<<: ",
    b"\\",
    b"%",
    b"---\n",
    b"...\n",
    b"1e999",
    b"0x",
    b'"\\ud83d"',
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"null",
    b"9" * 30,
    b"subagents:\n  agents:\n",
    b"models:\n  - name: a\n",
]
KEYS = st.sampled_from(
    [
        "models",
        "subagents",
        "agents",
        "custom_agents",
        "acp_agents",
        "mcp_servers",
        "async_subagents",
        "tools",
        "token_budget",
        "max_turns",
        "name",
        "use",
        "headers",
        "env",
        "permissions",
        "runs",
        "summarization",
        "trigger",
        "loop_detection",
        "outbound",
        "allow_private",
        "a",
        "title",
        "",
        "[key]",
        "?",
        "model_fields",
        "copy",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=30,
)


def check(raw: bytes) -> None:
    result = read_config(raw)
    assert isinstance(result, ReadResult)
    refused = any(problem.severity == "refused" for problem in result.problems)
    assert (result.config is None) == refused
    for problem in result.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert str(problem).encode("utf-8")
    for path, reasons in result.invalid_entries.items():
        assert reasons, path
        assert set(reasons) <= set(result.problems)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_random_bytes_give_a_result(raw):
    check(raw)


@given(st.text(max_size=300))
@settings(deadline=None)
def test_random_text_gives_a_result(text):
    check(text.encode("utf-8", "surrogatepass"))


@given(
    st.sampled_from(STARTS),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(SNIPPETS)), min_size=1, max_size=6),
)
@settings(deadline=None, max_examples=200)
def test_files_cut_and_mixed_at_random_give_a_result(raw, edits):
    for place, removed, snippet in edits:
        at = int(place * len(raw))
        raw = raw[:at] + snippet + raw[at + removed :]
    check(raw)


@given(VALUES)
@settings(deadline=None, max_examples=200)
@example({"models": [{"name": "a", "use": "x.y:Z", "model_config": 1, "extra": 2, "model_fields": 3, "copy": 4}]})
@example({"acp_agents": {"[key]": {"env": {"": "x", "[key]": 5}}}})
def test_any_structure_gives_a_result(value):
    check(flow(value).encode("utf-8", "surrogatepass"))


def test_hostile_files_are_answered():
    hostile = [
        b"[" * 500_000,
        b"a: " * 300_000,
        b"- " * 400_000,
        b"{a: " * 200_000,
        b"? " * 400_000,
        b'"' + b"x" * 1_000_000,
        b"k" * 1_000_000 + b": 1",
        b"&a " * 300_000,
        b"[" + b"1," * 400_000 + b"]",
        b"subagents: " + b"9" * 1_000_000,
        b"\t" * 1_000_000,
        b"a:\n" + b"\tb\n" * 200_000,
    ]
    for raw in hostile:
        check(raw)


def flow(value: object) -> str:
    """Write a value as YAML flow text; numbers and flags stay unquoted."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str):
        return quote(value)
    words: dict[object, str] = {None: "null", True: "true", False: "false"}
    return words.get(value, repr(value))


def quote(text: str) -> str:
    return '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'
