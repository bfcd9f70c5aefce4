"""The metric behind any mask, against its definition written out, in double."""

import pytest
import torch

import elliptical
from elliptical.visible import Visible, find_visible, visible_in_both, visible_metric

B, H, N, M, D = 2, 3, 7, 7, 4
n, j = torch.arange(N)[:, None], torch.arange(M)[None, :]
CAUSAL = j <= n
LEFT_PADDED = torch.stack([CAUSAL & (j >= 2), CAUSAL])[:, None]
MASKS = {  # the mask, and whether sums over it are differences of running sums
    "causal": (CAUSAL, True),
    "more keys than queries": ((j <= n + 2)[: N - 2], True),
    "unwritten slots": (CAUSAL[: N - 2], True),
    "window": (CAUSAL & (j > n - 3), True),
    "window both ways": ((j - n).abs() <= 2, True),
    "packed": (CAUSAL & (j // 3 == n // 3), True),
    "left-padded": (LEFT_PADDED, True),
    "a hole that nobody sees": (CAUSAL & (j != 3), True),
    "a hole": (CAUSAL & ((j != 3) | (n == 3)), False),
    "alternating": ((n + j) % 2 == 0, False),
    "each head its own": (torch.stack([CAUSAL, CAUSAL & (j > n - 2), CAUSAL | True])[None], True),
    "the same for all": ((j < 5).expand(N, M), False),
    "everything": (torch.ones(N, M, dtype=torch.bool), False),
    "nothing": (torch.zeros(N, M, dtype=torch.bool), False),
}


def keep_of(name):
    mask = MASKS[name][0]
    return mask.expand(1, 1, *mask.shape[-2:]) if mask.dim() == 2 else mask


def values(dtype=torch.float32, num_keys=M, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, B, H, num_keys, D, generator=generator).to(dtype).unbind()


def by_definition(v, v_prev, keep):
    change = (v.double() - v_prev.double()).abs()
    keep = keep.expand(B, H, -1, -1)
    rows = torch.ones(*keep.shape[:3], D, dtype=torch.double)
    for b, h, row in torch.cartesian_prod(*(torch.arange(size) for size in keep.shape[:3])):
        total = change[b, h][keep[b, h, row]].sum(0)
        if total.max() > 0:
            rows[b, h, row] = total / total.max()
    return rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", MASKS)
def test_rows_are_means_over_the_visible_keys(name, dtype):
    keep = keep_of(name)
    visible = find_visible(keep)
    assert (visible.runs is not None) == MASKS[name][1]
    v, v_prev = values(dtype)
    rows = visible_metric(v, v_prev, visible)
    assert rows.dtype == dtype
    eps = torch.finfo(dtype).eps
    expected = by_definition(v, v_prev, keep).expand(-1, -1, keep.shape[2], -1)
    torch.testing.assert_close(rows.double().expand_as(expected), expected, rtol=0, atol=8 * eps)


@pytest.mark.parametrize("name", MASKS)
def test_the_shortcuts_change_nothing(name):
    keep = keep_of(name)
    v, v_prev = values()
    rows = visible_metric(v, v_prev, find_visible(keep)).expand(-1, -1, keep.shape[2], -1)
    torch.testing.assert_close(rows, visible_metric(v, v_prev, Visible(keep)), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", MASKS)
def test_flags_say_what_attention_can_do_without_the_mask(name):
    visible = find_visible(keep_of(name))
    assert visible.is_causal == (name in ("causal", "more keys than queries"))
    assert visible.is_full == (name == "everything")


def test_keys_that_nobody_sees_may_hold_anything():
    v, v_prev = values()
    rows = visible_metric(v, v_prev, find_visible(keep_of("left-padded")))
    for t in (v, v_prev):
        t[0, :, :2] = torch.nan
    assert torch.equal(visible_metric(v, v_prev, find_visible(keep_of("left-padded"))), rows)


def test_a_window_that_the_layer_before_stores_is_found_in_it():
    """The layer before has keys 4 to 9 alone, this one 0 to 9 and two free slots; three queries, 7 to 9."""
    query, key = torch.arange(7, 10)[:, None], torch.arange(12)[None, :]
    here = (key <= query).expand(1, 1, 3, 12)
    window = here & (key > query - 4)
    before = window[..., 4:10]
    v, v_prev = values(num_keys=12)
    common, index = visible_in_both(find_visible(here), find_visible(before))
    rows = visible_metric(v, v_prev[:, :, 4:10][:, :, index], common)
    torch.testing.assert_close(rows.double(), by_definition(v, v_prev, window), rtol=0, atol=1e-6)
    # The other way round: this layer stores the window, the one before everything.
    common, index = visible_in_both(find_visible(before), find_visible(here))
    rows = visible_metric(v[:, :, 4:10], v_prev[:, :, index], common)
    torch.testing.assert_close(rows.double(), by_definition(v, v_prev, window), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scaling", ["max", "mean", "none"])
@pytest.mark.parametrize("name, scope", [("causal", "prefix"), ("everything", "sequence")])
def test_without_padding_and_windows_it_is_the_op(name, scope, scaling):
    """The general way of computing it, values and gradients, against the op."""
    v, v_prev = (t.requires_grad_() for t in values(torch.float64))
    options = dict(scaling=scaling, delta=0.5, differentiable=True)
    weights = torch.randn(B, H, N, D, dtype=torch.float64)
    expected = elliptical.metric(v, v_prev, scope=scope, **options)
    visible = find_visible(keep_of(name))
    gradients = torch.autograd.grad((expected * weights).sum(), (v, v_prev))
    for ways in (visible, Visible(keep_of(name)), Visible(visible.keep, runs=visible.runs)):
        rows = visible_metric(v, v_prev, ways, **options)
        torch.testing.assert_close(rows.expand_as(weights), expected.expand_as(weights))
        ours = torch.autograd.grad((rows * weights).sum(), (v, v_prev))
        for one, other in zip(ours, gradients, strict=True):
            torch.testing.assert_close(one, other)
    same = visible_metric(v, v.detach(), Visible(keep_of(name)), **options)
    assert (same == 1).all() and (elliptical.metric(v, v.detach(), scope=scope, **options) == 1).all()


def test_no_gradient_flows_through_the_metric():
    v, v_prev = values()
    for name in ("causal", "window", "alternating"):
        assert not visible_metric(v.requires_grad_(), v_prev, find_visible(keep_of(name))).requires_grad
