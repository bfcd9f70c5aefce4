"""Through Hugging Face every cached evaluation equals full evaluation, and no logit depends on a later token:
models x caches x ways of feeding the tokens, on tiny random models."""

import functools

import pytest
import torch

import elliptical  # noqa: F401  registers the implementation

pytest.importorskip("transformers.modeling_utils", reason="transformers is not installed (tools/setup --tests)")
import transformers  # noqa: E402

VOCABULARY, LENGTH, WINDOW, ROOM = 50, 12, 5, 19
SIZES = dict(
    vocab_size=VOCABULARY, hidden_size=32, intermediate_size=32, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=64, initializer_range=0.3, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
MIXED = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]


@functools.cache
def make(name, implementation="elliptical", num_layers=4):
    """A model of random weights, large enough for attention to be far from uniform."""
    options = SIZES | dict(num_hidden_layers=num_layers)
    if name == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_inner=32, n_head=4, n_layer=num_layers, n_positions=64,
            initializer_range=0.3, bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
    elif name == "llama":
        config = transformers.LlamaConfig(**options)
    elif name == "bert":  # as a decoder: an encoder has neither a cache nor a future to hide
        del options["num_key_value_heads"]
        config = transformers.BertConfig(**options, is_decoder=True)
    elif name == "qwen3":
        config = transformers.Qwen3Config(**options, head_dim=8)
    elif name == "qwen3-mixed":  # full and sliding-window layers, in every order
        config = transformers.Qwen3Config(
            **options, head_dim=8, use_sliding_window=True, sliding_window=WINDOW, layer_types=MIXED[:num_layers]
        )
    elif name == "mistral":  # a sliding window in all layers
        config = transformers.MistralConfig(**options, head_dim=8, sliding_window=WINDOW)
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=implementation).eval()


MODELS = ["llama", "gpt2", "bert", "qwen3", "qwen3-mixed", "mistral"]
CACHES = {
    "none": lambda config: None,
    "dynamic": lambda config: transformers.DynamicCache(config=config),  # holds the window of sliding layers
    "dynamic-full": lambda config: transformers.DynamicCache(),  # holds everything
    "static": lambda config: transformers.StaticCache(config=config, max_cache_len=ROOM),
}
WAYS = {"prefill": [LENGTH], "chunks": [4, 1, 6, 1], "tokens": [1] * LENGTH, "prefill-tokens": [8, 1, 1, 1, 1]}
PADDINGS = {"whole": [0, 0], "left-padded": [3, 1]}  # a row each
TOKENS = torch.randint(VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))


def feed(model, tokens, cache, way, padding, pad_token=0):
    """Logits (B, LENGTH, V) of the real tokens of each row, fed piece by piece."""
    width = max(padding)
    padded = torch.full((len(tokens), width + LENGTH), pad_token)
    mask = torch.zeros_like(padded)
    for row, shift in enumerate(padding):  # tokens beyond the width are fed, too, and not looked at
        padded[row, shift : shift + LENGTH] = tokens[row]
        mask[row, shift:] = 1
    position = (mask.cumsum(1) - 1).clamp_min(0)
    memory = CACHES[cache](model.config)
    logits, begin = [], 0
    sizes = list(WAYS[way])
    sizes[-1] += width
    for size in sizes:
        end = begin + size
        start = begin if memory is not None else 0
        options = dict(past_key_values=memory, use_cache=memory is not None)
        if width:
            options |= dict(attention_mask=mask[:, :end], position_ids=position[:, start:end])
        with torch.no_grad():
            logits.append(model(padded[:, start:end], **options).logits[:, -size:])
        begin = end
    whole = torch.cat(logits, 1)
    return torch.stack([whole[row, shift : shift + LENGTH] for row, shift in enumerate(padding)])


def full(model, tokens):
    """Full evaluation, each row alone."""
    with torch.no_grad():
        return torch.cat([model(row[None], use_cache=False).logits for row in tokens])


def deviations(name, cache, way, padding):
    """Largest difference from full evaluation, and of logits before a token that was changed with all after it."""
    model = make(name)
    fed = feed(model, TOKENS, cache, way, PADDINGS[padding])
    moved = 0.0
    for first in (1, 5, 9, LENGTH - 1):
        changed = TOKENS.clone()
        changed[:, first:] = (changed[:, first:] + 7) % VOCABULARY
        again = feed(model, changed, cache, way, PADDINGS[padding])
        assert not torch.equal(again[:, first:], fed[:, first:])
        moved = max(moved, (again - fed)[:, :first].abs().max().item())
    return (fed - full(model, TOKENS)).abs().max().item(), moved


matrix = [
    pytest.mark.parametrize("padding", PADDINGS),
    pytest.mark.parametrize("way", WAYS),
    pytest.mark.parametrize("cache", CACHES),
    pytest.mark.parametrize("name", MODELS),
]


def over_the_matrix(test):
    for mark in matrix:
        test = mark(test)
    return test


@over_the_matrix
def test_fed_in_any_way_the_logits_are_those_of_full_evaluation(name, cache, way, padding):
    difference, moved = deviations(name, cache, way, padding)
    assert difference < 5e-5, "float32 rounding of logits of size 10; a key too many moves them by 0.1 and more"
    assert moved < 2e-6, "0 here; products of another size may round differently"


@over_the_matrix
def test_without_a_metric_the_logits_are_those_of_sdpa(name, cache, way, padding):
    """One layer has no metric: what is left is the mask."""
    ours, theirs = (
        feed(make(name, kind, num_layers=1), TOKENS, cache, way, PADDINGS[padding])
        for kind in ("elliptical", "sdpa")
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_deeper_layers_use_the_metric(name):
    ours, theirs = (full(make(name, kind), TOKENS) for kind in ("elliptical", "sdpa"))
    assert (ours - theirs).abs().max() > 0.1


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", MODELS)
def test_padding_tokens_do_not_matter(name, cache):
    model = make(name)
    one, other = (feed(model, TOKENS, cache, "chunks", [3, 1], pad_token) for pad_token in (0, 9))
    assert torch.equal(one, other)


@pytest.mark.parametrize("cache", ["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
def test_generation_with_a_cache_equals_generation_without(name, cache):
    model = make(name)
    mask = torch.ones_like(TOKENS)
    mask[0, :3] = 0
    options = dict(attention_mask=mask, max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=None)
    cached = model.generate(TOKENS, cache_implementation=cache, **options)
    assert torch.equal(cached, model.generate(TOKENS, use_cache=False, **options))
    alone = model.generate(TOKENS[:1, 3:], use_cache=False, **(options | dict(attention_mask=mask[:1, 3:])))
    assert torch.equal(cached[0, LENGTH:], alone[0, LENGTH - 3 :])


def test_a_compiled_model_with_a_static_cache_gives_the_same():
    """Under torch.compile no shortcut looks at the mask."""
    model = make("qwen3-mixed")
    compiled = torch.compile(model, backend="aot_eager")
    cache = CACHES["static"](model.config)
    with torch.no_grad():
        pieces = [compiled(piece, past_key_values=cache).logits for piece in TOKENS.split([9, 1, 1, 1], 1)]
    torch.testing.assert_close(torch.cat(pieces, 1), full(model, TOKENS), rtol=0, atol=5e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_cache_that_is_reset_is_empty(name):
    """Slots of a static cache still hold what an earlier, longer text left there."""
    model = make(name)
    cache = CACHES["static"](model.config)
    with torch.no_grad():
        model(TOKENS, past_key_values=cache)
        cache.reset()
        for layer in cache.layers:
            layer.values.fill_(torch.nan)
        again = model(TOKENS[:, :7], past_key_values=cache).logits
    torch.testing.assert_close(again, full(model, TOKENS)[:, :7], rtol=0, atol=5e-5)
