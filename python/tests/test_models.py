import _thread
import gc
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable

import pytest

import wick


def test_gguf(tiny_model: pathlib.Path) -> None:
    file = wick.Gguf(tiny_model)
    assert file.metadata["general.architecture"] == "llama" and file.version in (2, 3)
    assert isinstance(file.metadata["tokenizer.ggml.tokens"], list)
    assert len(file) == len(file.keys()) == len(list(file)) > 3
    name = file.keys()[0]
    x = file[name]
    assert name in file and "nothing" not in file and x.ndim in (1, 2)
    with pytest.raises(KeyError):
        file["nothing"]
    tensors = wick.load_gguf(str(tiny_model))
    assert set(tensors) == set(file.keys())
    del file
    gc.collect()
    assert wick.dequantize(x).shape == x.shape if x.dtype.is_block else x.clone().shape == x.shape
    with pytest.raises(wick.Error):
        wick.Gguf(tiny_model.parent / "absent.gguf")
    with pytest.raises(TypeError):
        wick.Gguf(3)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model(tiny_model: pathlib.Path) -> wick.Model:
    seen: list[tuple[int, int]] = []
    model = wick.Model.load(tiny_model, progress=lambda done, of: seen.append((done, of)))
    assert seen and seen[-1][0] == seen[-1][1]
    return model


def prompt_of(model: wick.Model) -> list[int]:
    return [1, 2, 3] if model.vocab_size > 3 else [0]


def test_a_model(model: wick.Model) -> None:
    assert model.device == "cpu" and model.vocab_size > 0 and model.parameters > 0
    assert model.context_length == 256 and model.path.endswith(".gguf")
    logits = model.logits(prompt_of(model))
    assert logits.shape[0] == len(prompt_of(model)) and logits.shape[1] >= model.tokenizer.vocab_size
    last = model.logits(prompt_of(model), last=True)
    assert last.tolist()[-1] == logits.tolist()[-1]
    with pytest.raises(wick.Error):
        model.logits([])
    with pytest.raises(wick.Error):
        model.logits([10**6])


def test_split_models(model: wick.Model, tiny_model: pathlib.Path) -> None:
    assert model.placement.startswith("cpu: 2 of 2 layers, ")
    for layers in [-3, -1, 2**70]:
        with pytest.raises(wick.Error, match="load: gpu_layers is out of range: "):
            wick.Model.load(tiny_model, gpu_layers=layers)
    with pytest.raises(wick.Error, match="load: cpu_experts: not a number of layers: 'some'"):
        wick.Model.load(tiny_model, cpu_experts="some")
    with pytest.raises(TypeError, match="load: gpu_layers: need an int, 'auto' or 'all'"):
        wick.Model.load(tiny_model, gpu_layers=True)
    with pytest.raises(wick.Error, match="a list of devices with the CPU"):
        wick.Model.load(tiny_model, more_devices=["cpu"])
    text = model.generate("the hat", max_tokens=6, temperature=0)
    for device in os.environ.get("WICK_TEST_DEVICES", "cpu").split(","):
        split = wick.Model.load(tiny_model, device, gpu_layers=1, cpu_experts="auto")
        assert device == "cpu" or ": 1 of 2 layers, " in split.placement
        assert split.generate("the hat", max_tokens=6, temperature=0) == text


def test_cache_types(tiny_model: pathlib.Path) -> None:
    plain = wick.Model.load(tiny_model, cache_type="f32")
    assert len(plain.generate(prompt_of(plain), max_tokens=3, temperature=0.0, ignore_end=True)) > 0
    with pytest.raises(wick.Error, match="cache_type: not a cache type: 'q4_1': use bf16, f16, f32, q4_0 or q8_0"):
        wick.Model.load(tiny_model, cache_type="q4_1")
    of_blocks = wick.Model.load(tiny_model, cache_type="q8_0")
    with pytest.raises(wick.Error, match="q8_0 needs heads of a multiple of 32 elements"):
        of_blocks.session()  # its heads have 16


def test_tokenizer(model: wick.Model) -> None:
    tokenizer = model.tokenizer
    ids = tokenizer.encode("a b", add_bos=False)
    assert all(isinstance(i, int) for i in ids) and len(tokenizer) == tokenizer.vocab_size
    assert tokenizer.decode(ids) == model.decode(ids)
    assert tokenizer.decode_bytes(ids) == tokenizer.decode(ids).encode()
    with pytest.raises(wick.Error):
        tokenizer.decode([10**6])


def test_tokenizer_files(model: wick.Model, tiny_model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert wick.Tokenizer.from_file(tiny_model).encode("a b") == model.tokenizer.encode("a b")
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "a": 1, "##b": 2}},'
                    ' "pre_tokenizer": {"type": "Whitespace"}, "decoder": {"type": "WordPiece"}}')
    tokenizer = wick.Tokenizer.from_file(str(path))
    assert tokenizer.encode("ab a c") == [1, 2, 1, 0]
    assert tokenizer.decode([1, 2, 1]) == "ab a"
    path.write_text("{}")
    with pytest.raises(wick.Error, match="lacks 'model'"):
        wick.Tokenizer.from_file(path)
    with pytest.raises(wick.FileError):
        wick.Tokenizer.from_file(tmp_path / "nothing.json")


def test_one_seed_one_text(model: wick.Model) -> None:
    prompt = prompt_of(model)
    options = {"max_tokens": 20, "seed": 7, "ignore_end": True}
    whole = model.generate(prompt, max_tokens=20, seed=7, ignore_end=True)
    assert whole == model.generate(prompt, max_tokens=20, seed=7, ignore_end=True)
    assert "".join(model.stream(prompt, max_tokens=20, seed=7, ignore_end=True)) == whole
    session = model.session(64)
    session.feed(prompt)
    assert session.generate(max_tokens=20, seed=7, ignore_end=True) == whole
    assert len(session) == len(session.tokens) == len(prompt) + 20 and session.context == 64
    for length in (-1, len(session) + 1):
        with pytest.raises(IndexError, match=f"length out of range: {length}"):
            session.truncate(length)
    session.truncate(len(prompt))
    assert "".join(session.stream(max_tokens=20, seed=7, ignore_end=True)) == whole
    assert session.logits().shape == (model.vocab_size,) or session.logits().ndim == 1
    assert options["seed"] == 7


def test_bad_options(model: wick.Model) -> None:
    with pytest.raises(TypeError, match="temprature"):
        model.generate([1], temprature=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="max_tokens"):
        model.generate([1], max_tokens="many")  # type: ignore[arg-type]
    with pytest.raises(wick.Error):
        model.generate([1], temperature=-1.0)
    with pytest.raises(wick.Error):
        list(model.stream([1], top_p=7.0))
    with pytest.raises(wick.Error):
        model.generate([1] * 300, context=10)
    assert model.generate([{"role": "user", "content": "x"}], max_tokens=0) == ""
    with pytest.raises(wick.Error, match="nobody"):
        model.generate([{"role": "nobody", "content": "x"}])
    with pytest.raises(ValueError, match="^chat: a message without 'role': message 0: need "):
        model.generate([{"content": "x"}])
    for conversation in [[{"role": "user", "content": 3}], [3.5], ["text"], [None], [["user", "x"]]]:
        with pytest.raises(TypeError):
            model.generate(conversation)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        model.generate(3)  # type: ignore[arg-type]
    with pytest.raises(wick.Error):
        wick.Model.load("absent.gguf")
    with pytest.raises(wick.Error, match="nothing was fed"):
        model.session(8).generate()


def test_tokens_outside_the_vocabulary(model: wick.Model) -> None:
    size = model.tokenizer.vocab_size
    for options in [{"logit_bias": {size: 1.0}}, {"logit_bias": {0: 1.0, -1: 1.0}}, {"dry_breakers": [size]}]:
        message = f"generate: {next(iter(options))}: token id out of range: (-1|{size}): the vocabulary has {size} tokens"
        with pytest.raises(ValueError, match=message):
            model.generate([1], **options)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=message):
            list(model.stream([1], **options))  # type: ignore[arg-type]
    assert model.generate([1], logit_bias={size - 1: -1.0, 0: 1.0}, max_tokens=1) is not None


LONE = "a\ud800"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda m: m.generate(LONE), ValueError, "prompt: text with a surrogate: index 1: need text that UTF-8 can encode"),
        (lambda m: m.generate(3), TypeError, "prompt: need text, token ids or a conversation: not 'int'"),
        (lambda m: m.generate(b"a"), TypeError, "prompt: need text, token ids or a conversation: not 'bytes'"),
        (lambda m: m.generate([1, "a"]), TypeError, "prompt: need ints: not 'str'"),
        (lambda m: m.generate(["a"]), TypeError, "chat: message 0: need {'role': …, 'content': …}: not 'str'"),
        (lambda m: m.generate([{"role": "user", "content": 5}]), TypeError,
         "chat: message 0: content: need text, a list of parts or None: not 'int'"),
        (lambda m: m.generate([{"role": "user", "content": LONE}]), ValueError, "chat: message 0: content: text with a surrogate: index 1"),
        (lambda m: m.generate([{"role": 5, "content": "a"}]), TypeError, "chat: message 0: role: need text: not 'int'"),
        (lambda m: m.generate([{"role": "user", "content": "a", 5: 5}]), TypeError, "chat: message 0: a key: need text: not 'int'"),
        (lambda m: m.generate([{"role": "user", "content": [{"type": LONE}]}]), ValueError, "chat: a value: text with a surrogate"),
        (lambda m: m.render_chat([{"role": "user", "content": "a"}], add_generation_prompt=1), TypeError,
         "chat: add_generation_prompt: need a bool: not 'int'"),
        (lambda m: m.render_chat([{"role": "user", "content": "a"}], **{LONE: 1}), ValueError, "chat: name of a variable: text with a surrogate"),
        (lambda m: m.embed(LONE), ValueError, "embed: texts: text with a surrogate: index 1"),
        (lambda m: m.embed(["a", LONE]), ValueError, "embed: texts[1]: text with a surrogate: index 1"),
        (lambda m: m.embed(["a", 5]), TypeError, "embed: texts[1]: need text: not 'int'"),
        (lambda m: m.embed(["a", "a" * 300]), ValueError, "embed: texts[1]: too many tokens: 300: the model was trained for 256"),
        (lambda m: m.embed(["a", "a" * 10**6]), ValueError, "embed: texts[1]: tokenize: the text is too long: 1000000 bytes, at least "),
        (lambda m: m.generate("a" * 10**6, context=12), ValueError, "tokenize: the text is too long: 1000000 bytes, at least "),
        (lambda m: m.generate([{"role": "user", "content": "a" * 10**6}]), ValueError, "tokenize: the text is too long: "),
        (lambda m: m.stream("a" * 10**6), ValueError, "tokenize: the text is too long: 1000000 bytes, at least "),
        (lambda m: m.session(8).feed("a" * 10**6), ValueError, "need at most 8 tokens"),
        (lambda m: m.tokenizer.encode(LONE), ValueError, "encode: text: text with a surrogate: need text that UTF-8 can encode"),
        (lambda m: m.tokenizer.token_id(LONE), ValueError, "token_id: text: text with a surrogate"),
        (lambda m: m.session(8).save("/none", LONE), ValueError, "save: text: text with a surrogate"),
        (lambda m: m.generate("a", stop=LONE), TypeError, "generate: stop: need a sequence of texts: not 'str'"),
        (lambda m: m.generate("a", stop=[LONE]), ValueError, "generate: stop: text with a surrogate"),
        (lambda m: m.generate("a", stop=[5]), TypeError, "generate: stop: need text: not 'int'"),
        (lambda m: m.generate("a", temperature="hot"), TypeError, "generate: temperature: need a number: not 'hot'"),
        (lambda m: m.generate("a", max_tokens=1.5), TypeError, "generate: max_tokens: need an int: not 1.5"),
        (lambda m: m.generate("a", seed=-1), TypeError, "generate: seed: need an int of at least 0: not -1"),
        (lambda m: m.generate("a", ignore_end=1), TypeError, "generate: ignore_end: need a bool: not 1"),
        (lambda m: m.generate("a", logit_bias={"a": 1}), TypeError, "generate: logit_bias: need a dict of token ids and numbers: not {'a': 1}"),
        (lambda m: m.generate("a", samplers=["top_k", 5]), TypeError, "generate: samplers: need text: not 'int'"),
        (lambda m: m.generate("a", **{LONE: 1}), ValueError, "generate: name of an argument: text with a surrogate"),
        (lambda m: wick.zeros(1, device=LONE), ValueError, "device: text with a surrogate"),
        (lambda m: wick.Device(LONE), ValueError, "Device: name: text with a surrogate"),
        (lambda m: wick.zeros(1, dtype=LONE), ValueError, "dtype: text with a surrogate"),
        (lambda m: wick.zeros(1).to(LONE), ValueError, "to: text with a surrogate"),
        (lambda m: wick.set_precision(LONE), ValueError, "set_precision: precision: text with a surrogate"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(model: wick.Model, call: Callable[[wick.Model], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        call(model)
    assert message in str(raised.value)


def test_a_device_is_no_text_with_surrogates() -> None:
    assert wick.Device("cpu") != LONE and wick.Device("cpu") == "cpu"


def test_a_session_serves_one_at_a_time(model: wick.Model) -> None:
    session = model.session(256)
    session.feed(prompt_of(model))
    stream = session.stream(max_tokens=200, ignore_end=True)
    with pytest.raises(wick.Error, match="session: busy"):
        session.generate(max_tokens=1)
    stream.close()
    session.generate(max_tokens=1)
    assert list(stream) == []


def test_a_forgotten_stream_ends(model: wick.Model) -> None:
    for _ in range(5):
        stream = model.stream(prompt_of(model), max_tokens=200, ignore_end=True)
        next(stream)
        del stream
    gc.collect()


def test_errors_of_a_callback_come_back(tiny_model: pathlib.Path) -> None:
    def fail(done: int, of: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        wick.Model.load(tiny_model, progress=fail)


def interrupt_soon() -> None:
    time.sleep(0.05)
    _thread.interrupt_main()


@pytest.mark.parametrize("streams", [False, True])
def test_ctrl_c(model: wick.Model, streams: bool) -> None:
    thread = threading.Thread(target=interrupt_soon)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    until = time.monotonic() + 20
    try:
        with pytest.raises(KeyboardInterrupt):
            thread.start()
            while time.monotonic() < until:
                if streams:
                    for _ in model.stream(prompt_of(model), max_tokens=-1, ignore_end=True):
                        pass
                else:
                    model.generate(prompt_of(model), max_tokens=-1, ignore_end=True)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


def test_a_conversation() -> None:
    path = os.environ.get("WICK_TEST_MODEL")
    if not path:
        pytest.skip("WICK_TEST_MODEL names no model that knows turns")
    model = wick.Model.load(path)
    turns = [{"role": "user", "content": "Name a colour."}]
    ids = model.encode(turns)
    assert "Name a colour." in model.decode(ids) and len(ids) > len(model.encode("Name a colour."))
    assert model.generate(turns, max_tokens=8, temperature=0) == model.generate(ids, max_tokens=8, temperature=0)
    assert "".join(model.stream(turns, max_tokens=8, temperature=0)) == model.generate(ids, max_tokens=8, temperature=0)


def test_chat_templates(model: wick.Model) -> None:
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": "<|im_end|>"}]
    turns = "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n"
    assert model.render_chat(messages) == turns + "<|im_start|>assistant\n"
    assert model.render_chat(messages, add_generation_prompt=False, tools=[{"a": (1, 2.5, None, True)}]) == turns
    ids = model.encode_chat(messages, add_generation_prompt=False)
    # The content's marker is text: the ends of the two turns are the only control tokens of this name.
    end = model.tokenizer.token_id("<|im_end|>")
    assert ids.count(end) == 2 and model.tokenizer.encode(turns).count(end) == 3
    assert model.encode_chat(messages) == model.encode(messages)
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    assert "assistant\n<|im_end|>" in model.render_chat([*messages, call])
    assert "user\n[{'type': 'text'}]<|im_end|>" in model.render_chat([{"role": "user", "content": [{"type": "text"}]}])
    with pytest.raises(wick.Error, match="^chat template: unknown role: nobody: line 1, "):
        model.render_chat([{"role": "nobody", "content": ""}])
    with pytest.raises(TypeError, match="a value of type object"):
        model.render_chat(messages, tools=object())
    nested: list[object] = []
    for _ in range(500):
        nested = [nested]
    with pytest.raises(wick.Error, match="nested too deeply"):
        model.render_chat(messages, tools=nested)
    with pytest.raises(TypeError):
        model.render_chat(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("message", [{"content": "Hi"}, {}])
def test_messages_without_a_role(model: wick.Model, message: dict[str, str]) -> None:
    whole = {"role": "user", "content": "Hi"}
    with pytest.raises(ValueError, match="^chat: a message without 'role': message 1: need ") as raised:
        model.generate([whole, message])
    assert isinstance(raised.value, wick.Error)


def test_messages_without_content(model: wick.Model) -> None:
    """The template finds no key "content", as in jinja2, which prints nothing for it."""
    text = model.render_chat([{"role": "user"}, {"role": "user", "content": None}], add_generation_prompt=False)
    assert text == "<|im_start|>user\n<|im_end|>\n<|im_start|>user\nNone<|im_end|>\n"


def test_recommended_sampling(model: wick.Model) -> None:
    assert model.sampling == {}
    assert model.generate("the", max_tokens=4, **model.sampling) == model.generate("the", max_tokens=4)


def test_models_in_the_cache(tiny_model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wick" / "models"
    folder.mkdir(parents=True)
    (folder / "tiny.gguf").symlink_to(tiny_model)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert wick.Model.load("tiny").path == str(folder / "tiny.gguf")
    assert wick.Tokenizer.from_file("tiny.gguf").vocab_size > 0
    with pytest.raises(wick.FileError, match="which has tiny.gguf"):
        wick.Model.load("other")


def test_saved_sessions(model: wick.Model, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s.session"
    whole = model.session()
    whole.feed(prompt_of(model))
    whole.generate(max_tokens=12, seed=3, ignore_end=True)
    first = model.session()
    first.feed(prompt_of(model))
    first.generate(max_tokens=5, seed=3, ignore_end=True)
    first.save(path, "näme")
    second = model.session()
    assert second.load(path) == "näme"
    assert second.tokens == first.tokens
    second.generate(max_tokens=7, seed=3, ignore_end=True, resume=True)
    assert second.tokens == whole.tokens
    short = model.session(context=4)
    with pytest.raises(wick.Error, match="session longer than the context"):
        short.load(path)
    assert len(short) == 0
    with pytest.raises(wick.FileError):
        short.load(tmp_path / "absent")
    with pytest.raises(TypeError):
        short.load(3)  # type: ignore[arg-type]
