"""Every example in a docstring runs and prints what it says."""

import doctest

import pytest

import elliptical
import elliptical.functional
import elliptical.module


@pytest.mark.parametrize(
    "module", [elliptical, elliptical.functional, elliptical.module], ids=lambda m: m.__name__
)
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
