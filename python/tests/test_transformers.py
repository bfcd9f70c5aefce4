"""Elliptical attention as an attention implementation of Hugging Face transformers."""

import subprocess
import sys

import pytest
import torch

import elliptical

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def make(kind=transformers.LlamaModel, implementation="elliptical", **changes):
    torch.manual_seed(0)
    options = dict(
        hidden_size=32, intermediate_size=32, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=50, max_position_embeddings=64,
    )  # fmt: skip
    config = transformers.LlamaConfig(**(options | changes))
    config._attn_implementation = implementation
    return kind(config).eval()


def hidden(model, tokens, **options):
    with torch.no_grad():
        return model(tokens, **options).last_hidden_state


TOKENS = torch.randint(50, (2, 12), generator=torch.Generator().manual_seed(1))


def test_one_layer_is_plain_attention():
    plain = hidden(make(implementation="sdpa", num_hidden_layers=1), TOKENS)
    torch.testing.assert_close(hidden(make(num_hidden_layers=1), TOKENS), plain, rtol=1e-4, atol=1e-5)


def test_deeper_layers_use_the_metric():
    assert not torch.allclose(hidden(make(implementation="sdpa"), TOKENS), hidden(make(), TOKENS))


def test_no_token_sees_the_future():
    changed = TOKENS.clone()
    changed[:, 8:] = 3
    model = make()
    torch.testing.assert_close(hidden(model, TOKENS)[:, :8], hidden(model, changed)[:, :8])


def test_decoding_with_a_cache_equals_full_evaluation():
    model = make()
    whole = hidden(model, TOKENS)
    cache = transformers.DynamicCache(config=model.config)
    for n in range(TOKENS.shape[1]):
        step = hidden(model, TOKENS[:, n : n + 1], past_key_values=cache, use_cache=True)
        torch.testing.assert_close(step[:, 0], whole[:, n], rtol=1e-4, atol=1e-5)


def test_padding_on_the_left_does_not_matter():
    model = make()
    padded = torch.cat([torch.zeros(2, 3, dtype=torch.int64), TOKENS], 1)
    mask = torch.cat([torch.zeros(2, 3, dtype=torch.int64), torch.ones_like(TOKENS)], 1)
    position = (mask.cumsum(1) - 1).clamp_min(0)
    out = hidden(model, padded, attention_mask=mask, position_ids=position)
    torch.testing.assert_close(out[:, 3:], hidden(model, TOKENS), rtol=1e-4, atol=1e-5)


def test_training_gives_gradients():
    model = make(transformers.LlamaForCausalLM).train()
    model(TOKENS, labels=TOKENS).loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_layers_out_of_order_are_refused():
    model = make()
    hidden(model, TOKENS)
    value = torch.zeros(2, 2, 12, 8)
    with pytest.raises(RuntimeError, match="layer 1 must run right after layer 0"):
        elliptical.integrations.transformers.elliptical_attention_forward(
            model.layers[1].self_attn, torch.zeros(2, 4, 12, 8), value, value, None
        )


def test_modules_without_a_layer_index_are_refused():
    value = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="Identity must have a layer_idx, got none"):
        elliptical.integrations.transformers.elliptical_attention_forward(
            torch.nn.Identity(), value, value, value, None
        )


@pytest.mark.parametrize(
    "script",
    [
        "import elliptical, transformers",
        "import transformers, elliptical",
        "import transformers.modeling_utils, elliptical",
    ],
)
def test_registers_itself_whatever_is_imported_first(script):
    check = (
        f"{script}; from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as known; "
        "import sys; sys.exit('elliptical' not in known.valid_keys())"
    )
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
