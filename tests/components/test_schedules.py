"""Schedules: by hand, short forms, bad forms."""

import numpy as np
import pytest

from rlcore.components.schedules import Constant, Exponential, Linear, Piecewise, Polynomial, as_schedule
from rlcore.errors import ConfigError
from rlcore.specs import TensorSpec
from rlcore.testing import ComponentTest

CASES = [
    (Constant(3), [3, 3, 3]),
    (Linear(1.0, 0.0), [1, 0.5, 0]),
    (Linear(1.0, 0.2, until=0.5), [1, 0.2, 0.2]),
    (Polynomial(1.0, 0.0, power=2), [1, 0.25, 0]),
    (Exponential(1.0, 0.01), [1, 0.1, 0.01]),
    (Piecewise([0.3, 0.6], [5, 4, 1]), [5, 4, 1]),
]


@pytest.mark.parametrize("schedule,expected", CASES, ids=lambda c: type(c).__name__)
def test_values(build, schedule, expected):
    test = ComponentTest(schedule, {"progress": TensorSpec(())}, **build)
    for progress, value in zip([0.0, 0.5, 1.0], expected, strict=True):
        test.check(np.array(progress, np.float32), expected=np.array(value, np.float32))


def test_short_forms():
    assert isinstance(as_schedule(0.1), Constant)
    short = as_schedule([1e-3, 0])
    assert isinstance(short, Linear) and (short.start, short.end, short.until) == (1e-3, 0.0, 1.0)
    assert as_schedule([1.0, 0.1, 0.2]).until == 0.2
    assert isinstance(as_schedule({"name": "exponential", "start": 1, "end": 0.1}), Exponential)


@pytest.mark.parametrize(
    "bad,reason",
    [
        ({"name": "linaer", "start": 1, "end": 0}, "Did you mean 'linear'"),
        ({"name": "linear", "begin": 1}, "begin"),
        ([1, 2, 3, 4], "start, end"),
        ([1.0, 0.1, 2.0], "fraction of the run"),
        ({"name": "piecewise", "boundaries": [0.5], "values": [1]}, "one value more"),
        ({"name": "piecewise", "boundaries": [0.5, 0.2], "values": [1, 2, 3]}, "growing"),
        ({"name": "exponential", "start": 1, "end": 0}, "above 0"),
        ("fast", "neither a number"),
        (True, "neither a number"),
    ],
)
def test_bad_forms_say_why(bad, reason):
    with pytest.raises(ConfigError, match=reason):
        as_schedule(bad)
