"""``fleet snapshot|snapshots|restore`` on the command line: what is printed of a store, and what is wrong with the words."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli.conftest import Run
from fleet.snapshots.databases import REVISION
from fleet.snapshots.test_taking import Model

from slipway.fleet.snapshots.folder import Folder
from slipway.fleet.snapshots.record import Snapshot
from slipway.fleet.snapshots.taking import Subject, take

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def kept(tmp_path: Path) -> Snapshot:
    return asyncio.run(take(Model(), Folder(tmp_path), Subject("n", "c", "v1.35.4"), NOW))


def test_a_folder_is_listed_without_a_cluster_to_ask(run: Run, tmp_path: Path, kept: Snapshot) -> None:
    outcome = run("fleet", "snapshots", f"--from={tmp_path}")
    assert outcome.code == 0, outcome.err
    assert [line.split() for line in outcome.out.splitlines()] == [
        ["NAMESPACE", "CLUSTER", "SNAPSHOT", "SIZE", "KUBERNETES", "ETCD"],
        ["n", "c", f"20260301T120000Z-r{REVISION}", "0.0", "MiB", "v1.35.4", "3.6.6"],
    ]


def test_everything_that_is_known_of_a_snapshot_is_in_the_json(run: Run, tmp_path: Path, kept: Snapshot) -> None:
    (found,) = json.loads(run("fleet", "snapshots", f"--from={tmp_path}", "-o", "json").out)["snapshots"]
    assert (found["name"], found["revision"], found["sha256"], found["taken"]) == (
        kept.name,
        REVISION,
        kept.sha256,
        "2026-03-01T12:00:00Z",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["snapshot", "--to=/backup"], "whose etcd is meant is missing: name the cluster as CLUSTER"),
        (["snapshot", "c", "--to=s3://backups"], "--to: s3://backups needs a Secret with the keys endpoint"),
        (["snapshot", "c", "--to=/backup", "--keep-last=-1"], "-1 for --keep-last is not a number from 0 to 1000"),
        (["snapshots", "--from=s3://Backups", "--store-secret=s"], "with a bucket of small letters and digits"),
        (["restore", "--from=/backup", "--serve=10.0.0.1:1", "--yes"], "which cluster is to be restored is missing"),
        (["restore", "c", "--from=/backup", "--yes"], "say with --serve HOST:PORT where they reach it"),
        (["restore", "c", "--from=/backup", "--serve=:80", "--yes"], "is not an address that hosts can call: write HOST:PORT"),
        (["restore", "c", "--from=/backup", "--serve=10.0.0.1:1"], "nobody can be asked here: say --yes to restore"),
    ],
)
def test_wrong_words_get_a_sentence(run: Run, words: list[str], said: str) -> None:
    outcome = run("fleet", *words)
    assert outcome.code != 0
    assert said in outcome.err
