"""Every op under every transform of torch.func and under forward mode: the right numbers, in float32.

The expectation is the same computation in double, whose paths are plain torch operations. A transform
that an op does not support must raise; a wrong number, a derivative of 0 above all, must not come out.
"""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import torch.func as func

import elliptical

B, H, N, D = 2, 3, 6, 4
LENGTHS = torch.tensor([6, 4])


def numbers(count, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(B, H, N, D, generator=generator).to(dtype) for _ in range(count)]


def attention(**options):
    # The metric is made of the fourth tensor, so that every input of the op has a derivative.
    return lambda q, k, v, x: elliptical.attention(q, k, v, x.sigmoid(), **options)


def estimator_options(estimator, v_prev, q, k):
    """What an estimator of the metric reads, so that each of four tensors has a derivative where it can."""
    return {
        "difference": dict(v_prev=v_prev),
        "median": dict(v_prev=v_prev),
        "isotropic": dict(v_prev=v_prev),
        "quotient": dict(v_prev=v_prev, q=q, q_prev=k),
        "consistent": dict(q=q, k=k),
        "jacobian": dict(q=q, k=k, query_stride=2),
        "random": dict(generator=torch.Generator().manual_seed(4), low=0.2),
        "random_fixed": dict(seed=3),
        "constant": dict(value=0.7),
        "matched": dict(value=1.3),
        "temperature": dict(temperature=k.mean((0, 2, 3)).exp()),
    }[estimator]


# For `random` see below: its numbers depend on the dtype.
ESTIMATORS = list(elliptical.functional.ESTIMATORS)
SAME_IN_DOUBLE = [name for name in ESTIMATORS if name != "random"]


def layer(estimator, scope="sequence"):
    """Attention with such a metric: a control that reads no tensor has derivatives by way of the attention alone."""

    def call(v, v_prev, q, k):
        options = estimator_options(estimator, v_prev, q, k)
        m = elliptical.metric(v, estimator=estimator, scope=scope, differentiable=True, **options)
        return elliptical.attention(q, k, v, m, is_causal=scope == "prefix") + 0 * v_prev

    return call


def metric(**options):
    def call(v, v_prev, q, k):
        inputs = dict(q=q, k=k) if options.get("estimator") in ("consistent", "jacobian") else {}
        if options.get("estimator") == "quotient":
            inputs = dict(q=q, q_prev=k)
        return elliptical.metric(v, v_prev, differentiable=True, **inputs, **options)

    return call


OPS = {
    "attention": attention(),
    "attention causal": attention(is_causal=True),
    "attention lengths": attention(key_lengths=LENGTHS),
    "attention mask": attention(attn_mask=torch.ones(N, N).tril() > 0),
    "lse": lambda q, k, v, x: elliptical.attention(q, k, v, x.sigmoid(), return_lse=True)[1],
    "metric": metric(),
    "metric prefix": metric(scope="prefix"),
    "metric mean": metric(scaling="mean"),
    "metric lengths": metric(scaling="none", lengths=LENGTHS),
    "metric median": metric(estimator="median"),
    "metric quotient": metric(estimator="quotient"),
    "metric isotropic": metric(estimator="isotropic"),
    "metric consistent": metric(estimator="consistent"),
    "metric jacobian": metric(estimator="jacobian", query_stride=2),
    **{f"layer {name}": layer(name) for name in SAME_IN_DOUBLE},
    **{f"layer {name} prefix": layer(name, "prefix") for name in ("difference", "temperature")},
}


def loss_of(op):
    return lambda *x: op(*x).sin().sum()


def dual(op, x, tangents):
    with forward_ad.dual_level():
        out = op(*(forward_ad.make_dual(a, t) for a, t in zip(x, tangents, strict=True)))
        return forward_ad.unpack_dual(out).tangent


TRANSFORMS = {
    "grad": lambda op, x: func.grad(loss_of(op), argnums=(0, 1, 2, 3))(*x),
    "vjp": lambda op, x: (lambda out, pull: pull(out.cos()))(*func.vjp(op, *x)),
    "jvp": lambda op, x: func.jvp(op, tuple(x), tuple(t.cos() for t in x)),
    "jacrev": lambda op, x: func.jacrev(op, argnums=(0, 1))(*x),
    "jacfwd": lambda op, x: func.jacfwd(op, argnums=(0, 1))(*x),
    "hessian": lambda op, x: func.hessian(lambda a: loss_of(op)(a, *x[1:]))(x[0]),
    "vmap": lambda op, x: func.vmap(op)(*(torch.stack([t, t.cos()]) for t in x)),
    "per-sample grad": lambda op, x: func.vmap(func.grad(loss_of(op)))(
        *(torch.stack([t, t.cos()]) for t in x)
    ),
    "linearize": lambda op, x: func.linearize(op, *x)[1](*(t.cos() for t in x)),
    "functionalize": lambda op, x: func.functionalize(op)(*x),
    "forward mode": lambda op, x: dual(op, x, [t.cos() for t in x]),
    "reverse mode": lambda op, x: torch.autograd.grad(
        loss_of(op)(*(y := [t.clone().requires_grad_() for t in x])), y, materialize_grads=True
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("op", OPS)
def test_float_equals_double_under_every_transform(op, transform):
    ours = TRANSFORMS[transform](OPS[op], numbers(4))
    expected = TRANSFORMS[transform](OPS[op], numbers(4, torch.float64))
    torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-4, check_dtype=False)


@pytest.mark.parametrize("op", OPS)
def test_forward_mode_agrees_with_reverse_mode(op):
    """<u, J t> computed both ways, in float: not the double path's word alone."""
    x = numbers(4)
    tangents = [t.cos() for t in x]
    out, pull = func.vjp(OPS[op], *x)
    forward = (dual(OPS[op], x, tangents) * out.cos()).sum()
    reverse = sum((g * t).sum() for g, t in zip(pull(out.cos()), tangents, strict=True))
    assert forward.abs() > 1e-3
    torch.testing.assert_close(forward, reverse, rtol=1e-3, atol=1e-4)


# The others are of torch.func, which may run a function more than once. Which of them linearize does
# torch does not tell us: it records the drawing and draws again when the derivative is asked for.
TAKES_RANDOM = ("forward mode", "reverse mode")
REFUSES_RANDOM = [name for name in TRANSFORMS if name not in (*TAKES_RANDOM, "linearize")]


@pytest.mark.parametrize("transform", [*TAKES_RANDOM, *REFUSES_RANDOM])
def test_the_random_metric_is_a_constant_or_refused(transform):
    x = numbers(4)
    m = elliptical.metric(x[0], estimator="random", **estimator_options("random", *x[1:]))
    fixed = lambda v, v_prev, q, k: elliptical.attention(q, k, v, m) + 0 * v_prev  # noqa: E731
    if transform in REFUSES_RANDOM:
        with pytest.raises(RuntimeError, match="estimator must not be random"):
            TRANSFORMS[transform](layer("random"), x)
        return
    torch.testing.assert_close(TRANSFORMS[transform](layer("random"), x), TRANSFORMS[transform](fixed, x))


@pytest.mark.parametrize("scope", ["sequence", "prefix"])
def test_a_detached_metric_has_no_derivative_by_any_transform(scope):
    v, v_prev = numbers(2)
    call = lambda a: elliptical.metric(a, v_prev, scope=scope)  # noqa: E731
    m, tangent = func.jvp(call, (v,), (torch.ones_like(v),))
    torch.testing.assert_close(m, call(v))
    assert tangent.count_nonzero() == 0
    assert func.grad(lambda a: call(a).sum())(v).count_nonzero() == 0


def test_a_stream_under_forward_mode_is_detached():
    v, v_prev = numbers(2)
    rows = dual(lambda a, b: elliptical.PrefixMetric().update(a, b), (v, v_prev), (v, v))
    assert rows is None or rows.count_nonzero() == 0


def test_dropout_under_forward_mode_drops_what_it_drops_without():
    q, k, v = numbers(3)
    torch.manual_seed(5)
    expected = elliptical.attention(q, k, v, dropout_p=0.4)
    torch.manual_seed(5)
    out, tangent = func.jvp(
        lambda a: elliptical.attention(q, k, a, dropout_p=0.4), (v,), (torch.ones_like(v),)
    )
    torch.testing.assert_close(out, expected)
    torch.manual_seed(5)
    torch.testing.assert_close(tangent, elliptical.attention(q, k, torch.ones_like(v), dropout_p=0.4))


def test_explain_says_that_forward_mode_runs():
    q = torch.zeros(1, 1, 2, 4)
    with forward_ad.dual_level():
        explanation = elliptical.explain(q, q, q)
    assert explanation.path == "composite"
    assert "forward-mode differentiation runs" in explanation.refused["fused"]
    assert elliptical.explain(q, q, q).path == "fused"
