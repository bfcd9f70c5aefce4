"""The functions: against plain torch, through autograd, opcheck, torch.compile and torch.func."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

import elliptical


def tensors(*sizes, count=3, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(*sizes, generator=generator, dtype=dtype).requires_grad_() for _ in range(count)
    ]


def gradients(out, inputs):
    return torch.autograd.grad(out.sin().sum(), inputs)


CASES = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask_bool": {"attn_mask": torch.rand(9, 9, generator=torch.Generator().manual_seed(1)) > 0.3},
    "mask_add": {"attn_mask": torch.randn(2, 1, 9, 9, generator=torch.Generator().manual_seed(1))},
    "lengths": {"key_lengths": torch.tensor([9, 4])},
    "dropout": {"dropout_p": 0.3},
    "scale": {"scale": 0.2},
}


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_sdpa_on_scaled_queries(is_causal):
    q, k, v = tensors(2, 4, 33, 16)
    m = torch.rand(2, 4, 1, 16, requires_grad=True)
    ours = elliptical.attention(q, k, v, m, is_causal=is_causal)
    theirs = F.scaled_dot_product_attention(q * m, k, v, is_causal=is_causal)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(gradients(ours, (q, k, v, m)), gradients(theirs, (q, k, v, m)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_lse_is_the_logsumexp_of_the_logits_and_differentiable():
    q, k, v = tensors(2, 4, 7, 16)
    _, lse = elliptical.attention(q, k, v, return_lse=True)
    expected = (q @ k.mT / 4).logsumexp(-1)
    torch.testing.assert_close(lse, expected)
    for a, b in zip(gradients(lse, (q, k)), gradients(expected, (q, k)), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_attention_opcheck(name, dtype):
    q, k, v = tensors(2, 4, 9, 8, dtype=dtype)
    m = torch.rand(2, 1, 1, 8, dtype=dtype, requires_grad=True)
    options = dict(CASES[name])
    if name == "mask_add":
        options["attn_mask"] = options["attn_mask"].to(dtype)
    if name == "dropout":
        options["dropout_seed"] = torch.tensor([5])
    torch.library.opcheck(torch.ops.elliptical.attention, (q, k, v, m), options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("scope", ["sequence", "prefix"])
# One that draws differs between two calls, constants have no gradient to check, `consistent` calls attention (below).
@pytest.mark.parametrize("estimator", [
    name for name, row in elliptical.functional.ESTIMATORS.items()
    if row.reads <= {"v_prev", "q", "k"} and "value" not in row.options and name not in ("random", "consistent")
])  # fmt: skip
def test_metric_opcheck(estimator, scope, differentiable, dtype):
    v, v_prev, q, k = tensors(2, 3, 6, 4, count=4, dtype=dtype)
    options = dict(
        estimator=estimator, scope=scope, differentiable=differentiable, lengths=torch.tensor([6, 2])
    )
    torch.library.opcheck(torch.ops.elliptical.metric, (v, v_prev, q, k), options)


def test_metric_opcheck_of_the_estimator_that_calls_attention():
    v, q, k = tensors(1, 2, 5, 2)
    torch.library.opcheck(
        torch.ops.elliptical.metric, (v, None, q, k), dict(estimator="consistent", scope="prefix")
    )


@pytest.mark.parametrize("name", CASES)
def test_attention_compiles(name):
    q, k, v = tensors(2, 4, 9, 8)
    m = torch.rand(2, 4, 9, 8, requires_grad=True)

    def layer(q, k, v, m):
        return elliptical.attention(q, k, v, m, **CASES[name])

    torch.manual_seed(0)
    eager = layer(q, k, v, m)
    torch.manual_seed(0)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)(q, k, v, m)
    torch.testing.assert_close(compiled, eager)
    for a, b in zip(gradients(compiled, (q, k, v, m)), gradients(eager, (q, k, v, m)), strict=True):
        torch.testing.assert_close(a, b)


def test_compiled_dropout_is_fresh_in_every_call():
    q, k, v = tensors(1, 1, 16, 4)
    compiled = torch.compile(
        lambda: elliptical.attention(q, k, v, dropout_p=0.5), backend="aot_eager", fullgraph=True
    )
    assert not torch.equal(compiled(), compiled())


def test_compiled_with_dynamic_shapes():
    def layer(v, v_prev):
        m = elliptical.metric(v, v_prev, scope="prefix")
        return elliptical.attention(v, v, v, m, is_causal=True)

    compiled = torch.compile(layer, backend="aot_eager", dynamic=True, fullgraph=True)
    for N in (5, 8, 13):
        v, v_prev = tensors(2, 3, N, 8, count=2)
        torch.testing.assert_close(compiled(v, v_prev), layer(v, v_prev))


def test_inductor_runs_forward_and_backward():
    q, k, v = tensors(2, 4, 9, 8)
    compiled = torch.compile(lambda q, k, v: elliptical.attention(2 * q, k, v, dropout_p=0.2).sin())
    out = compiled(q, k, v)
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), (q, k, v)))


def test_meta_tensors_give_shapes():
    q = torch.empty(2, 4, 9, 8, device="meta")
    k, v = torch.empty(2, 2, 5, 8, device="meta"), torch.empty(2, 2, 5, 3, device="meta")
    out, lse = elliptical.attention(q, k, v, return_lse=True)
    assert out.shape == (2, 4, 9, 3) and lse.shape == (2, 4, 9)
    assert elliptical.attention(q, k, v).shape == (2, 4, 9, 3)
    assert elliptical.metric(q, q, scope="prefix").shape == q.shape


def test_functional_transforms():
    q, k, v = tensors(1, 2, 5, 4)
    by_func = torch.func.grad(lambda x: elliptical.attention(x, k, v).sin().sum())(q)
    by_autograd = gradients(elliptical.attention(q, k, v), (q,))[0]
    torch.testing.assert_close(by_func, by_autograd)


def test_autocast_and_half_precision_work():
    q, k, v = tensors(2, 4, 9, 8)
    with torch.autocast("cpu", torch.bfloat16):
        out = elliptical.attention(q.bfloat16(), k.bfloat16(), v.bfloat16())
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), elliptical.attention(q, k, v), atol=0.03, rtol=0.03)


WRONG = {
    "rank": (lambda q, m: elliptical.attention(q[0], q, q), ValueError,
             r"attention: q must be \(B, H, N, D\), got \(4, 9, 8\)"),
    "dtype": (lambda q, m: elliptical.attention(q, q.double(), q), TypeError,
              "attention: k must have q's dtype Float, got Double"),
    "metric": (lambda q, m: elliptical.attention(q, q, q, m[..., :4]), ValueError,
               r"attention: metric must be \(B\|1, H\|1, 1\|N, D\) = \(2\|1, 4\|1, 1\|9, 8\), "
               r"got \(2, 4, 1, 4\)"),
    "length": (lambda q, m: elliptical.attention(q, q, q, key_lengths=torch.tensor([9, -1])),
               ValueError, "attention: key_lengths must be between 0 and M = 9, got -1 at index 1"),
    "dropout": (lambda q, m: elliptical.attention(q, q, q, dropout_p=1.5), ValueError,
                r"attention: dropout_p must be in \[0, 1\), got 1.5"),
    "scope": (lambda q, m: elliptical.metric(q, q, scope="prefixes"), ValueError,
              'metric: scope: unknown "prefixes", did you mean "prefix"?'),
    "v_prev": (lambda q, m: elliptical.metric(q), ValueError,
               "metric: v_prev must be given for the estimator difference, got none"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_k4_wrong_arguments_are_named(name):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message.replace("?", r"\?")):
        call(torch.zeros(2, 4, 9, 8), torch.ones(2, 4, 1, 8))


def test_second_derivatives_are_refused_with_advice():
    q, k, v = tensors(1, 1, 3, 2)
    (dq,) = torch.autograd.grad(elliptical.attention(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="set ELLIPTICAL_ATTENTION=composite"):
        dq.sum().backward()


def test_k7_gradgradcheck_in_double():
    q, k, v = tensors(1, 2, 3, 2, dtype=torch.float64)
    m = torch.rand(1, 2, 1, 2, dtype=torch.float64, requires_grad=True)
    call = lambda *t: elliptical.attention(*t, is_causal=True)  # noqa: E731
    assert torch.autograd.gradcheck(call, (q, k, v, m))
    assert torch.autograd.gradgradcheck(call, (q, k, v, m))


def test_explain_names_the_path_and_the_reasons(monkeypatch):
    q = torch.zeros(1, 1, 2, 4)
    assert elliptical.explain(q, q, q).path == "fused"
    monkeypatch.setenv("ELLIPTICAL_ATTENTION", "composite")
    explanation = elliptical.explain(q, q, q, dropout_p=0.5)
    assert explanation.path == "composite"
    assert explanation.refused["fused"] == "ELLIPTICAL_ATTENTION=composite is set"


def test_streaming_decodes_what_the_whole_sequence_gives():
    q, k, v, v_prev = (t.detach() for t in tensors(2, 4, 17, 8, count=4))
    m = elliptical.metric(v, v_prev, scope="prefix")
    whole = elliptical.attention(q, k, v, m, is_causal=True)
    stream = elliptical.PrefixMetric()
    for n in range(17):
        new = slice(n, n + 1)
        row = stream.update(v[:, :, new], v_prev[:, :, new])
        out = elliptical.attention(
            q[:, :, new], k[:, :, : n + 1], v[:, :, : n + 1], row, is_causal=True
        )
        torch.testing.assert_close(out, whole[:, :, new], rtol=1e-5, atol=1e-6)
    stream.reset()
    torch.testing.assert_close(stream.update(v, v_prev), m)


def test_metric_of_the_paper():
    v, v_prev = (t.detach() for t in tensors(2, 3, 11, 5, count=2))
    s = (v - v_prev).abs().mean(2, keepdim=True)
    torch.testing.assert_close(elliptical.metric(v, v_prev), s / s.amax(-1, keepdim=True))
    torch.testing.assert_close(
        elliptical.metric(v, v_prev, scaling="mean"), s / s.mean(-1, keepdim=True)
    )
    torch.testing.assert_close(elliptical.metric(v, v_prev, scaling="none", delta=math.pi), s / math.pi)


def test_importing_elliptical_does_not_import_transformers():
    script = "import sys, elliptical; sys.exit(any(m.startswith('transformers') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
