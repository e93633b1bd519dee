"""Calling compiled code directly must never hand it something that it was not compiled for."""

import copy
import pickle

import call_kernels as kernels
import numpy as np
import pytest

from bamdp._kernels.jit import KernelCalls


def test_the_same_arguments_and_other_numbers_give_what_the_kernel_gives():
    call, values = KernelCalls(), np.arange(5.0)
    for i in (1, 2, 4):
        assert call(kernels.scaled, values, i) == kernels.scaled(values, i)


def test_other_types_go_to_the_code_compiled_for_them():
    call = KernelCalls()
    whole, real, strided = np.arange(6), np.arange(6) + 0.5, (np.arange(12) + 0.25)[::2]
    locked = np.arange(6) + 0.75
    locked.flags.writeable = False
    for _ in range(2):
        for values in (whole, real, strided, locked, real, whole):
            for factor in (3, 0.5, True):
                assert call(kernels.scaled, values, factor) == pytest.approx(values[:2].sum() * factor)


def test_tuples_made_anew_of_arrays_alike_are_seen_through():
    call = KernelCalls()
    for start in range(3):
        pair = kernels.Pair(np.arange(start, start + 4.0), start)
        assert call(kernels.added, pair) == pair.values.sum() + start
    other = kernels.Pair(np.arange(4), 1)  # whole numbers
    assert call(kernels.added, other) == 7


def test_a_copy_begins_anew():
    call = KernelCalls()
    call(kernels.scaled, np.arange(3.0), 2)
    for twin in (copy.deepcopy(call), pickle.loads(pickle.dumps(call))):
        assert twin(kernels.scaled, np.arange(3.0), 2) == 2.0
