"""Elliptical attention as an attention implementation of Hugging Face transformers: encoders, masks, training,
refusals. What caches must not change is in test_transformers_caches.py."""

import subprocess
import sys

import pytest
import torch

import elliptical

pytest.importorskip("transformers.modeling_utils", reason="transformers is not installed (tools/setup --tests)")
import transformers  # noqa: E402

forward = elliptical.integrations.transformers.elliptical_attention_forward
OPTIONS = dict(
    hidden_size=32, intermediate_size=32, num_hidden_layers=3, num_attention_heads=4, vocab_size=50,
    max_position_embeddings=64, initializer_range=0.3, bos_token_id=1, eos_token_id=2,
)  # fmt: skip


def make(kind="Llama", implementation="elliptical", **changes):
    if kind == "GPT2":
        changes = dict(n_embd=32, n_head=4, n_layer=3, vocab_size=50, bos_token_id=1, eos_token_id=2) | changes
    else:
        changes = OPTIONS | ({"num_key_value_heads": 2} if kind == "Llama" else {}) | changes
    config = getattr(transformers, f"{kind}Config")(**changes)
    config._attn_implementation = implementation
    torch.manual_seed(0)
    return getattr(transformers, f"{kind}Model")(config).eval()


def hidden(model, tokens, **options):
    with torch.no_grad():
        return model(tokens, **options).last_hidden_state


def assert_near(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=2e-5)  # float32 rounding through three layers


TOKENS = torch.randint(50, (2, 12), generator=torch.Generator().manual_seed(1))


# --- encoders ------------------------------------------------------------------------------------
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_rows_of_an_encoder_do_not_see_their_padding(num_layers, side):
    model = make("Bert", num_hidden_layers=num_layers)
    tokens, mask = TOKENS.clone(), torch.ones_like(TOKENS)
    real = slice(4, None) if side == "left" else slice(0, 8)
    mask[0] = 0
    mask[0, real] = 1
    position = (mask.cumsum(1) - 1).clamp_min(0)
    out = hidden(model, tokens, attention_mask=mask, position_ids=position)
    assert_near(out[1:], hidden(model, TOKENS[1:]))
    assert_near(out[:1, real], hidden(model, TOKENS[:1, real]))
    tokens[0] = torch.where(mask[0] == 1, tokens[0], 9)
    changed = hidden(model, tokens, attention_mask=mask, position_ids=position)
    assert torch.equal(out[0, real], changed[0, real]) and torch.equal(out[1], changed[1])


def test_an_encoder_of_one_layer_is_plain_and_deeper_ones_are_not():
    plain, ours = (hidden(make("Bert", kind, num_hidden_layers=1), TOKENS) for kind in ("sdpa", "elliptical"))
    assert_near(ours, plain)
    plain, ours = (hidden(make("Bert", kind), TOKENS) for kind in ("sdpa", "elliptical"))
    assert (ours - plain).abs().max() > 0.01


def test_an_encoder_measures_over_all_tokens():
    """BERT by hand: the metric of layer 1 has the sequence scope."""
    model = make("Bert", num_hidden_layers=2)
    calls = {}
    for layer in model.encoder.layer:
        attention = layer.attention.self
        attention.register_forward_hook(lambda module, args, out: calls.update({module.layer_idx: (*args, out[0])}))
    hidden(model, TOKENS)

    def heads(linear, x):
        return linear(x).view(2, 12, 4, 8).transpose(1, 2)

    with torch.no_grad():
        parts = [layer.attention.self for layer in model.encoder.layer]
        values = [heads(part.value, calls[n][0]) for n, part in enumerate(parts)]
        query, key = (heads(linear, calls[1][0]) for linear in (parts[1].query, parts[1].key))
        m = elliptical.metric(values[1], values[0])
        out = elliptical.attention(query, key, values[1], m).transpose(1, 2).reshape(2, 12, 32)
    assert_near(calls[1][1], out)


# --- masks ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_of_a_causal_model_do_not_see_their_padding(side):
    model = make()
    mask = torch.ones_like(TOKENS)
    real = slice(4, None) if side == "left" else slice(0, 8)
    mask[0] = 0
    mask[0, real] = 1
    position = (mask.cumsum(1) - 1).clamp_min(0)
    out = hidden(model, TOKENS, attention_mask=mask, position_ids=position)
    assert_near(out[:1, real], hidden(model, TOKENS[:1, real]))
    assert_near(out[1:], hidden(model, TOKENS[1:]))


@pytest.mark.parametrize("hide", [torch.finfo(torch.float32).min, -1e9, -1e4, -torch.inf])
def test_additive_masks_hide_like_boolean_ones(hide):
    model = make()
    keep = torch.ones(12, 12, dtype=torch.bool).tril().expand(2, 1, 12, 12).clone()
    keep[0, :, :, :3] = False  # the first three queries of row 0 see nothing
    additive = torch.zeros(keep.shape).masked_fill(~keep, hide)
    ours, theirs = (hidden(model, TOKENS, attention_mask=mask) for mask in (keep, additive))
    assert_near(theirs, ours)
    assert ours.isfinite().all()
    changed = TOKENS.clone()
    changed[0, :3] = 9
    assert_near(hidden(model, changed, attention_mask=additive)[0, 3:], ours[0, 3:])


def test_a_bias_in_an_additive_mask_is_kept_and_hides_nothing():
    bias = torch.randn(2, 1, 12, 12, generator=torch.Generator().manual_seed(2))
    bias = bias.masked_fill(~torch.ones(12, 12, dtype=torch.bool).tril(), -torch.inf)
    plain, ours = (
        hidden(make(implementation=kind, num_hidden_layers=1), TOKENS, attention_mask=bias)
        for kind in ("sdpa", "elliptical")
    )
    assert_near(ours, plain)


def test_heads_may_have_masks_of_their_own():
    model = make()
    causal = torch.ones(12, 12, dtype=torch.bool).tril()
    same = causal.expand(2, 4, 12, 12)
    assert_near(hidden(model, TOKENS, attention_mask=same), hidden(model, TOKENS))
    window = causal & ~causal.tril(-3)
    other = torch.stack([causal, causal, window, window]).expand(2, 4, 12, 12)
    assert (hidden(model, TOKENS, attention_mask=other) - hidden(model, TOKENS)).abs().max() > 0.01


def test_packed_sequences_do_not_see_each_other():
    model = make()
    position = torch.cat([torch.arange(5), torch.arange(7)]).expand(2, -1)
    out = hidden(model, TOKENS, position_ids=position, use_cache=False)
    assert_near(out[:, :5], hidden(model, TOKENS[:, :5]))
    assert_near(out[:, 5:], hidden(model, TOKENS[:, 5:]))


def test_the_mask_is_never_left_out():
    masks = []

    def watch(*args, **options):
        masks.append(args[4])
        return forward(*args, **options)

    transformers.AttentionInterface.register("elliptical", watch)
    try:
        for model in (make(), make("GPT2"), make("Bert")):
            hidden(model, TOKENS)
        hidden(make(), TOKENS[:, :1])
    finally:
        elliptical.register_transformers()
    assert len(masks) == 12 and all(mask is not None for mask in masks)


# --- training ------------------------------------------------------------------------------------
def test_training_gives_gradients():
    config = make().config
    model = transformers.LlamaForCausalLM(config).train()
    model(TOKENS, labels=TOKENS).loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_gradient_checkpointing_is_refused():
    model = transformers.LlamaForCausalLM(make().config).train()
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable()
    message = r"got layer 2 \(gradient checkpointing and skipped layers are not supported\)"
    with pytest.raises(RuntimeError, match=message):
        model(TOKENS, labels=TOKENS).loss.backward()


# --- refusals ------------------------------------------------------------------------------------
def call(layer, mask=None, N=12, M=12, D=8, **options):
    value = torch.zeros(2, 2, M, D)
    return forward(layer, torch.zeros(2, 4, N, D), value, value, mask, **options)


def test_layers_out_of_order_are_refused():
    model = make()
    hidden(model, TOKENS)
    with pytest.raises(RuntimeError, match="layer 1 must run right after layer 0 on the same tokens, got layer 2"):
        call(model.layers[1].self_attn)


def test_other_tokens_than_in_the_layer_before_are_refused():
    model = make()
    call(model.layers[0].self_attn)
    with pytest.raises(RuntimeError, match="layer 1 must run right after layer 0 on the same tokens"):
        call(model.layers[1].self_attn, N=11, M=11)


def test_values_of_another_width_are_refused():
    model = make()
    call(model.layers[0].self_attn)
    message = r"same \(B, H, D\) in all layers, got \(2, 2, 8\) in layer 0 and \(2, 2, 4\) in layer 1"
    with pytest.raises(RuntimeError, match=message):
        call(model.layers[1].self_attn, D=4)


@pytest.mark.parametrize("kind", ["GPT2", "Bert"])
def test_cross_attention_is_refused(kind):
    model = make(kind, add_cross_attention=True, is_decoder=True)
    message = r"layer 0 must call attention once, got 2 calls \(cross-attention is not supported\)"
    with pytest.raises(RuntimeError, match=message):
        hidden(model, TOKENS, encoder_hidden_states=torch.randn(2, 12, 32))


def test_modules_without_a_layer_index_are_refused():
    with pytest.raises(ValueError, match="Identity must have a layer_idx, got none"):
        call(torch.nn.Identity())


def test_a_few_causal_queries_without_a_mask_are_refused():
    with pytest.raises(ValueError, match="4 causal queries and 12 keys must come with an attention_mask, got None"):
        call(make().layers[0].self_attn, N=4)


def test_masks_of_another_shape_are_refused():
    for shape in ((2, 12), (2, 1, 12, 11), (2, 1, 5, 12)):
        with pytest.raises(ValueError, match=r"must be \(B\|1, H\|1, N\|1, M\) with N, M = 12, 12, got \(2, "):
            call(make().layers[0].self_attn, torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("name", ["cache", "position_bias", "s_aux", "softcap"])
def test_what_would_change_the_logits_and_is_not_supported_is_refused(name):
    with pytest.raises(ValueError, match=f"LlamaAttention must do without {name}, got one"):
        call(make().layers[0].self_attn, **{name: 30.0})


# --- registration --------------------------------------------------------------------------------
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
