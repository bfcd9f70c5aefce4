"""EllipticalAttention as a layer."""

import pytest
import torch

import elliptical
from elliptical import EllipticalAttention


def run(layers, x, **options):
    v = None
    for layer in layers:
        y, v = layer(x, v, **options)
        x = x + y
    return x


def make(count=3, **options):
    torch.manual_seed(0)
    return torch.nn.ModuleList(EllipticalAttention(32, 4, **options) for _ in range(count)).eval()


def test_first_layer_is_plain_attention():
    (layer,) = make(1)
    x = torch.randn(2, 10, 32)
    q, k, v = (t.transpose(1, 2) for t in layer.qkv(x).view(2, 10, 3, 4, 8).unbind(2))
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    out, values = layer(x)
    torch.testing.assert_close(out, layer.proj(expected.transpose(1, 2).flatten(2)))
    torch.testing.assert_close(values, v)


def test_a_causal_stack_sees_no_future():
    layers, x = make(causal=True), torch.randn(2, 10, 32)
    changed = x.clone()
    changed[:, 6:] = torch.randn(2, 4, 32)
    before, after = run(layers, x), run(layers, changed)
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert not torch.allclose(before[:, 6:], after[:, 6:])


def test_the_sequence_scope_in_a_causal_layer_must_be_asked_for_twice():
    with pytest.raises(ValueError, match="metric_lookahead=True"):
        EllipticalAttention(32, 4, causal=True, scope="sequence")
    layers = make(causal=True, scope="sequence", metric_lookahead=True)
    x = torch.randn(1, 6, 32)
    changed = x.clone()
    changed[:, 5:] = 9.0
    assert not torch.equal(run(layers, x)[:, :5], run(layers, changed)[:, :5])


def test_padding_does_not_matter():
    layers, x = make(), torch.randn(2, 10, 32)
    padded = x.clone()
    padded[:, 7:] = 1e6
    lengths = torch.full((2,), 7)
    out = run(layers, padded, key_lengths=lengths)[:, :7]
    torch.testing.assert_close(out, run(layers, x[:, :7]))


def test_every_parameter_gets_a_gradient():
    layers = make().train()
    run(layers, torch.randn(2, 10, 32)).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layers.parameters())


@pytest.mark.parametrize("differentiable", [False, True])
def test_the_metric_is_detached_unless_asked(differentiable):
    first, second = make(2, differentiable=differentiable)
    x = torch.randn(1, 5, 32)
    v_prev = first(x)[1].detach().requires_grad_()
    out, _ = second(x, v_prev)
    (gradient,) = torch.autograd.grad(out.sum(), v_prev, allow_unused=True)
    assert (gradient is not None) == differentiable


def test_dropout_only_in_training():
    (layer,) = make(1, attn_drop=0.5)
    x = torch.randn(1, 8, 32)
    assert torch.equal(layer(x)[0], layer(x)[0])
    layer.train()
    assert not torch.equal(layer(x)[0], layer(x)[0])


def test_functional_call_and_compile():
    layers = make(2)
    x = torch.randn(2, 10, 32)

    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            return run(self.layers, x)

    stack = Stack()
    expected = stack(x)
    weights = {name: p.detach().clone() for name, p in stack.named_parameters()}
    torch.testing.assert_close(torch.func.functional_call(stack, weights, (x,)), expected)
    compiled = torch.compile(stack, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), expected)


def test_parameter_names_are_those_of_published_weights():
    (layer,) = make(1)
    assert list(layer.state_dict()) == ["qkv.weight", "qkv.bias", "proj.weight", "proj.bias"]
    assert EllipticalAttention(32, 4, qkv_bias=False).qkv.bias is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(dim=30, num_heads=4), "dim must be a multiple of num_heads, got 30 and 4"),
        (dict(dim=32, num_heads=4, scope="all"), 'scope must be "sequence" or "prefix", got "all"'),
        (dict(dim=32, num_heads=4, estimator="quotient"), 'estimator must be one of .*"quotient"'),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        EllipticalAttention(**arguments)


def test_version_is_known():
    assert elliptical.__version__[0].isdigit()


@pytest.mark.parametrize("estimator", ["difference", "isotropic", "random_fixed"])
@pytest.mark.parametrize("additive", [False, True])
def test_the_metric_does_not_see_through_a_mask(estimator, additive):
    """A layer that is causal by its mask alone: its metric must not read the future either."""
    layers, x = make(estimator=estimator), torch.randn(2, 10, 32)
    mask = torch.ones(10, 10, dtype=torch.bool).tril()
    if additive:
        mask = torch.zeros(10, 10).masked_fill(~mask, -torch.inf)
    changed = x.clone()
    changed[:, 6:] = torch.randn(2, 4, 32)
    before, after = (run(layers, y, attn_mask=mask) for y in (x, changed))
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert not torch.allclose(before[:, 6:], after[:, 6:])
    torch.testing.assert_close(before, run(make(estimator=estimator, causal=True), x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scaling", ["max", "mean", "none"])
def test_padding_hidden_by_a_mask_is_as_if_it_were_not_there(causal, scaling):
    layers, x = make(causal=causal, scaling=scaling, delta=0.5), torch.randn(2, 10, 32)
    right = (torch.arange(10) < 7).view(1, 1, 1, 10)
    alone = run(layers, x[:, :7])
    torch.testing.assert_close(run(layers, x, attn_mask=right)[:, :7], alone, rtol=1e-4, atol=1e-5)
    left = (torch.arange(10) >= 3).view(1, 1, 1, 10)
    shifted = torch.cat([torch.randn(2, 3, 32), x[:, :7]], 1)
    torch.testing.assert_close(run(layers, shifted, attn_mask=left)[:, 3:], alone, rtol=1e-4, atol=1e-5)
    both = run(layers, x, attn_mask=right, key_lengths=torch.tensor([5, 10]))
    torch.testing.assert_close(both[:1, :5], run(layers, x[:1, :5]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(both[1:, :7], alone[1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("estimator", elliptical.module._TOKENWISE)
def test_a_mask_that_hides_nothing_changes_nothing(estimator):
    """Every estimator that the table lets through is the one that masked attention computes."""
    layers, x = make(estimator=estimator), torch.randn(2, 10, 32)
    masked = run(layers, x, attn_mask=torch.ones(10, 10, dtype=torch.bool))
    torch.testing.assert_close(masked, run(layers, x), rtol=0, atol=1e-5)  # float32 sums in another order


def test_estimators_for_masks_are_those_of_the_table():
    assert elliptical.module._TOKENWISE == ("difference", "isotropic")


@pytest.mark.parametrize("estimator", ["median", "consistent", "jacobian"])
def test_estimators_that_would_read_hidden_tokens_refuse_a_mask(estimator):
    layers, x = make(2, estimator=estimator), torch.randn(2, 10, 32)
    message = f"attn_mask must be None with estimator='{estimator}', which would read hidden tokens, got one"
    with pytest.raises(ValueError, match=message):
        run(layers, x, attn_mask=torch.ones(10, 10, dtype=torch.bool))
