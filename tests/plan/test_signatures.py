"""Signatures that are kept beside functions are those that are found without."""

import inspect

from lookalike.plan.inputs import Inputs
from lookalike.plan.signatures import signed, signed_methods


def test_a_function_says_the_parameters_that_it_has():
    @signed
    def asked(wildcards, input, *, seed=0):
        return seed

    kept = asked.__signature__
    del asked.__signature__
    assert kept == inspect.signature(asked)
    assert list(kept.parameters) == ["wildcards", "input", "seed"]


def test_methods_that_are_asked_by_wildcards_have_theirs_and_no_others():
    @signed_methods
    class Asked:
        def by(self, wildcards):
            return wildcards

        def plainly(self, name):
            return name

    assert list(inspect.signature(Asked().by).parameters) == ["wildcards"]
    assert hasattr(Asked.by, "__signature__")
    assert not hasattr(Asked.plainly, "__signature__")
    assert hasattr(Inputs.pictures, "__signature__")
