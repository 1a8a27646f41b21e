"""YAML files as a stranger may write them: documents or an OperatorError, and what is read can be written and read again.

Not ``yaml.py``: that would hide PyYAML from whoever starts a program in this folder.
"""

from __future__ import annotations

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.yaml import goyaml

SEEDS = [
    b"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.0\n---\na: [1, 0x2, 0b1, .5, ~, yes]\n",
    b"a: &a {b: 1, c: [x, \"y\\u00e9\", 'z']}\nd: *a\ne:\n  <<: [*a, {b: 2}]\n  ? f\n  : |+\n    text\n\n",
    b"--- # comment\n- !!str 1\n- !!binary aGk=\n- !!float 3\n- 2001-01-01T00:00:00Z\n- 1_000.5e3\n- >-\n  folded\n  text\n...\n",
]


def fuzz(data: bytes) -> None:
    """Anything but OperatorError is a finding, and so is a value that another one is read for after it was written."""
    try:
        documents = goyaml.load(data.decode("utf-8", "replace"), "fuzz.yaml")
    except OperatorError:
        return
    for document in documents:
        [again] = goyaml.load(goyaml.dump(document.value))
        assert again.value == document.value
