from __future__ import annotations

import subprocess
import sys

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from engine.config.schema import ModelConfig
from engine.errors import ModelUnavailable, NoModel, UnknownModel
from engine.models.demo import DemoChatModel
from engine.models.registry import ModelRegistry

instance = FakeListChatModel(responses=["from the instance"])
no_model = object()


def factory(model: str, answer: str = "hi"):
    return FakeListChatModel(responses=[f"{model}: {answer}"])


def not_a_model(**options: object):
    return "no"


class Picky(FakeListChatModel):
    responses: list[str] = ["x"]
    size: int = 1


def model(name="m", use="engine.models.demo:DemoChatModel", **fields):
    return ModelConfig(name=name, use=use, **fields)


def registry(*models, **environ):
    return ModelRegistry(models, environ)


def here(attribute):
    return f"{__name__}:{attribute}"


def test_an_unset_variable_makes_a_model_unavailable_with_its_name():
    models = registry(model(api_key="$ACME_KEY", base_url="${ACME_URL}"))
    state = models.availability("m")
    assert not state.ok
    assert "ACME_KEY" in state.reason
    assert "ACME_URL" in state.reason


def test_a_set_variable_makes_it_available():
    assert registry(model(api_key="$ACME_KEY"), ACME_KEY="x").availability("m").ok


@pytest.mark.parametrize("key", ["sk-caf\u00e9", "sk-\u2026", "sk-1\nX-Other: y", "\u5bc6\u94a5"])
@pytest.mark.parametrize("use", ["langchain_openai:ChatOpenAI", "engine.models.openai_compatible:OpenAICompatibleChat"])
def test_a_key_that_no_header_can_carry_is_the_reason_and_is_never_repeated(use, key):
    state = registry(model(use=use, api_key="$KEY"), KEY=key).availability("m")
    assert not state.ok
    assert state.reason == "api_key holds characters that no HTTP header can carry"
    assert registry(model(use=use, api_key="$KEY"), KEY=" sk-fine \n").availability("m").ok


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ("no_such_package_here:Chat", "the package no_such_package_here is not installed"),
        ("engine.models.nothing:Chat", "the module engine.models.nothing does not exist"),
        ("engine.text.deeper:Chat", "engine.text.deeper does not exist"),
    ],
)
def test_a_package_that_is_not_there_is_the_reason(use, words):
    assert words in registry(model(use=use)).availability("m").reason


def test_a_name_that_is_not_configured_is_unavailable_and_lists_those_that_are():
    state = registry(model("one"), model("two")).availability("three")
    assert "one, two" in state.reason


def test_the_first_available_model_is_the_default():
    models = registry(model("a", api_key="$UNSET"), model("b"), model("c"))
    assert models.names() == ("a", "b", "c")
    assert models.default_name() == "b"


def test_without_an_available_model_each_reason_is_told():
    with pytest.raises(NoModel, match=r"a: .*UNSET"):
        registry(model("a", api_key="$UNSET")).default_name()
    with pytest.raises(NoModel, match="No model is configured"):
        registry().default_name()


@pytest.mark.parametrize(
    ("requested", "lead", "used"),
    [
        ("b", "c", "b"),
        (None, "c", "c"),
        ("inherit", "c", "c"),
        (None, None, "a"),
        ("inherit", None, "a"),
        ("", "", "a"),
    ],
)
def test_explicit_beats_the_leads_beats_the_first(requested, lead, used):
    assert registry(model("a"), model("b"), model("c")).resolve(requested, lead) == used


def test_a_named_model_is_never_replaced_by_another():
    models = registry(model("a"), model("b", api_key="$UNSET"))
    with pytest.raises(ModelUnavailable, match="UNSET"):
        models.resolve("b")
    with pytest.raises(UnknownModel, match="garbage"):
        models.resolve("garbage-9000", "a")


async def test_a_class_an_instance_and_a_factory_all_give_chat_models():
    models = registry(
        model("class"),
        model("instance", use=here("instance")),
        model("factory", use=here("factory"), model="x", answer="yes"),
    )
    assert isinstance(models.chat_model("class"), DemoChatModel)
    assert models.chat_model("instance") is instance
    assert (await models.chat_model("factory").ainvoke("?")).text == "x: yes"


async def test_a_built_model_is_kept_for_its_loop():
    models = registry(model())
    assert models.chat_model("m") is models.chat_model("m")


@pytest.mark.parametrize(
    ("use", "fields", "words"),
    [
        (here("no_model"), {}, "is not a chat model"),
        (here("not_a_model"), {}, "did not give a LangChain chat model"),
        ("engine.text:clean", {}, "raised TypeError"),
        ("engine.errors:ModelFault", {}, "is not a LangChain chat model class"),
        (here("missing"), {}, "has no missing"),
        (here("Picky"), {"size": "secret-value"}, "size: Input should be a valid integer"),
        (here("Picky"), {"api_key": "secret-value"}, "takes no api_key"),
    ],
)
async def test_what_is_no_usable_chat_model_is_unavailable_with_a_reason_from_then_on(use, fields, words):
    models = registry(model(use=use, **fields), model("next"))
    with pytest.raises(ModelUnavailable, match=words):
        models.chat_model("m")
    assert words in models.availability("m").reason
    assert "secret-value" not in models.availability("m").reason
    assert models.default_name() == "next"


async def test_provider_keys_are_mapped_and_extras_passed_on():
    models = registry(
        model(
            use="langchain_openai:ChatOpenAI",
            model="gpt-x",
            api_key="$KEY",
            base_url="http://127.0.0.1:1/v1",
            temperature=0.3,
            max_tokens=99,
            timeout_seconds=7,
            seed=5,
        ),
        KEY=" sk-1\n",
    )
    chat = models.chat_model("m")
    assert (chat.model_name, chat.temperature, chat.max_tokens, chat.seed) == ("gpt-x", 0.3, 99, 5)
    assert chat.openai_api_key.get_secret_value() == "sk-1"
    assert (chat.streaming, chat.stream_usage, chat.max_retries) == (True, True, 0)
    assert (chat.request_timeout.read, chat.request_timeout.connect) == (7, 10)
    await models.aclose()


def test_availability_is_known_without_loading_langchain():
    code = (
        "import sys\n"
        "from engine.config.schema import ModelConfig\n"
        "from engine.models.registry import ModelRegistry\n"
        "names = ['langchain_openai:ChatOpenAI', 'engine.models.demo:DemoChatModel', 'langchain_core.nope:X']\n"
        "models = ModelRegistry([ModelConfig(name=f'm{n}', use=use) for n, use in enumerate(names)], {})\n"
        "print([models.availability(name).ok for name in models.names()])\n"
        "print([name for name in ('langchain_core', 'langchain_openai', 'openai') if name in sys.modules])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["[True, True, False]", "[]"]
