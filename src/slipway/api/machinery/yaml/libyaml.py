"""PyYAML's C parser, without the rest of PyYAML.

``import yaml`` also brings the Python scanner, emitter, constructors and their regular expressions: a quarter of the time that
``config validate`` may take.  The extension module wants only the classes of events, nodes, tokens and errors.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

_ERRORS = ("reader", "scanner", "parser", "composer", "constructor", "emitter", "serializer", "representer")


class Parsing(NamedTuple):
    """A class that makes a parser of events from a text, and the modules of the events and of the errors that it raises."""

    parser: Any
    events: Any
    error: Any


def load() -> Parsing:
    """libyaml's parser, or PyYAML's own where that was built without libyaml."""
    try:
        parser = _extension().CParser
    except ImportError:
        parser = import_module("yaml").SafeLoader
    return Parsing(parser, sys.modules["yaml.events"], sys.modules["yaml.error"])


def _extension() -> Any:
    loaded = sys.modules.get("yaml._yaml")
    if loaded is not None:
        return loaded
    found = PathFinder.find_spec("yaml")
    if "yaml" in sys.modules or found is None:
        return import_module("yaml._yaml")
    package: Any = ModuleType("yaml")
    package.__path__ = found.submodule_search_locations
    sys.modules["yaml"] = package
    try:
        for name in ("error", "tokens", "events", "nodes"):
            setattr(package, name, import_module(f"yaml.{name}"))
        for name in _ERRORS:
            error = f"{name.capitalize()}Error"
            setattr(package, name, SimpleNamespace(**{error: type(error, (package.error.MarkedYAMLError,), {})}))
        return import_module("yaml._yaml")
    finally:
        # Whoever imports yaml after us gets the whole package.
        del sys.modules["yaml"]
