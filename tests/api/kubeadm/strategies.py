"""hypothesis strategies for configuration types: any object of any version, from its declaration alone."""

from __future__ import annotations

from types import GenericAlias, UnionType
from typing import Any

from hypothesis import strategies as st

from slipway.api.machinery import strict
from slipway.api.machinery.duration import Duration
from slipway.api.machinery.objects import Object

# Control characters and lone surrogates are the YAML layer's subject.
texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
plain_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    bool: st.booleans(),
    int: st.integers(-(2**31), 2**31 - 1),
    Duration: st.integers(0, 2**62).map(Duration),
    Any: plain_values,
}


def objects(cls: type[Object]) -> st.SearchStrategy[Object]:
    """Objects of ``cls`` whose fields hold anything that their types allow."""
    return st.builds(cls, **{name: values(wanted) for name, wanted in strict.fields(cls).values()})


def values(wanted: Any) -> st.SearchStrategy[Any]:
    if isinstance(wanted, UnionType):
        # None, or the first type: of a union of scalars, strict decoding reads the first.
        return st.none() | values(next(option for option in wanted.__args__ if option is not type(None)))
    if isinstance(wanted, GenericAlias):
        if wanted.__origin__ is list:
            return st.lists(values(wanted.__args__[0]), max_size=2)
        return st.dictionaries(texts, values(wanted.__args__[1]), max_size=2)
    if isinstance(wanted, type) and issubclass(wanted, Object):
        return objects(wanted)
    return _SCALARS[wanted]
