"""The base of OS images: where its packages come from, what its name depends on, and who may make it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slipway.api.machinery.errors import OperatorError
from slipway.host.progress import TextProgress
from slipway.lab.osimage import base, cache
from slipway.lab.osimage.base import Source

# A stanza as the images of Debian 12 have it, and a second one that is not ours to use.
DEB822 = """\
Types: deb
# a comment between fields
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm
Components: main
"""


def test_a_deb822_stanza_gives_a_source_for_each_suite() -> None:
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert base.parse_deb822(DEB822) == [
        Source("http://mirror.example/debian", "bookworm", ("main",), keyring),
        Source("http://mirror.example/debian", "bookworm-updates", ("main",), keyring),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Types: deb\nEnabled: no\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\n", "switched off"),
        ("Types: deb-src\nURIs: http://a.example/debian\nSuites: bookworm\nComponents: main\n", "sources only"),
        ("# Types: deb\n# URIs: http://a.example/debian\n", "a comment"),
        ("", "empty"),
    ],
)
def test_a_deb822_stanza_without_binary_packages_gives_no_source(text: str, why: str) -> None:
    assert base.parse_deb822(text) == [], why


def test_fields_of_deb822_go_on_over_indented_lines_and_an_inline_key_is_no_keyring() -> None:
    text = "Types: deb\nURIs: http://a.example/debian\n http://b.example/debian\nSuites: bookworm\nComponents: main\n contrib\n"
    text += "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abcd\n"
    assert base.parse_deb822(text) == [
        Source("http://a.example/debian", "bookworm", ("main", "contrib")),
        Source("http://b.example/debian", "bookworm", ("main", "contrib")),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deb http://a.example/debian bookworm main", [Source("http://a.example/debian", "bookworm", ("main",))]),
        ("deb http://a.example/debian/ bookworm main contrib # ours", [Source("http://a.example/debian", "bookworm", ("main", "contrib"))]),
        ("deb [signed-by=/k.gpg] http://a.example/d bookworm main", [Source("http://a.example/d", "bookworm", ("main",), "/k.gpg")]),
        (
            "deb [ arch=amd64 signed-by=/k.gpg ] http://a.example/d bookworm main",
            [Source("http://a.example/d", "bookworm", ("main",), "/k.gpg")],
        ),
        ("deb-src http://a.example/debian bookworm main", []),
        ("# deb http://a.example/debian bookworm main", []),
        ("deb", []),
    ],
)
def test_a_line_of_sources_list(line: str, expected: list[Source]) -> None:
    assert base.parse_list(line) == expected


def test_apt_reads_sources_list_first_and_only_files_with_its_endings(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://first.example/debian bookworm main\n")
    (tmp_path / "sources.list.d/b.sources").write_text(DEB822)
    (tmp_path / "sources.list.d/a.list").write_text("deb http://second.example/debian trixie main\n")
    (tmp_path / "sources.list.d/c.list.disabled").write_text("deb http://never.example/debian bookworm main\n")
    assert [source.uri for source in base.apt_sources(tmp_path)] == [
        "http://first.example/debian",
        "http://second.example/debian",
        "http://mirror.example/debian",
        "http://mirror.example/debian",
    ]


def test_a_machine_without_apt_has_no_sources(tmp_path: Path) -> None:
    assert base.apt_sources(tmp_path / "absent") == []


@pytest.mark.parametrize(
    "sources",
    [
        [],
        [Source("http://a.example/debian", "trixie", ("main",))],
        [Source("http://a.example/debian", "bookworm", ("contrib",))],
        [Source("cdrom:[Debian GNU/Linux 12]", "bookworm", ("main",))],
    ],
)
def test_debians_own_mirror_serves_where_the_sources_do_not_have_the_suite(sources: list[Source]) -> None:
    assert base.source_for(sources, "bookworm").uri == base.DEBIAN_MIRROR


def test_the_machines_mirror_for_the_suite_is_used_with_its_keyring() -> None:
    source = base.source_for(base.parse_deb822(DEB822), "bookworm")
    command = base.debootstrap_command(source, Path("/new/root"))
    assert command[-3:] == ["bookworm", "/new/root", "http://mirror.example/debian"]
    assert "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg" in command


def test_the_name_of_a_base_follows_its_inputs_but_not_the_order_of_packages() -> None:
    one = base.inputs_digest("bookworm", ("runc", "curl"), 1)
    assert base.inputs_digest("bookworm", ("curl", "runc"), 1) == one
    others = [
        base.inputs_digest("trixie", ("runc", "curl"), 1),
        base.inputs_digest("bookworm", ("runc",), 1),
        base.inputs_digest("bookworm", ("runc", "curl"), 2),
    ]
    assert len({one, *others}) == 4


def test_only_installed_packages_are_counted() -> None:
    status = (
        "Package: runc\nStatus: install ok installed\nVersion: 1.1.5\nDescription: x\n more\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
        "Package: curl\nStatus: install ok installed\nVersion: 7.88\n"
    )
    assert base.installed_packages(status) == ["curl 7.88", "runc 1.1.5"]


def test_the_digest_of_a_base_follows_the_versions_of_its_packages(tmp_path: Path) -> None:
    digests = []
    for version in ("1.1.5", "1.1.6"):
        root = tmp_path / version / "base-0123"
        (root / "usr/share/slipway").mkdir(parents=True)
        (root / "usr/share/slipway/base-packages").write_text(f"runc {version}\n")
        digests.append(base.digest(root))
    assert digests[0] != digests[1]


def test_a_base_that_is_there_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    base.location().mkdir(parents=True)
    assert base.ensure(TextProgress()) == base.location()


def test_without_debootstrap_the_package_is_named_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(OperatorError, match="install the package debootstrap"):
        base.ensure(TextProgress())
    assert not (tmp_path / "cache").exists()


def test_without_root_the_operator_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(OperatorError, match="needs root"):
        base.ensure(TextProgress())


def test_what_a_killed_maker_left_is_removed_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    left = cache.folder() / ".thing.partial"
    (left / "root/etc").mkdir(parents=True)
    with cache.building("thing") as work:
        assert work == left
        assert list(work.iterdir()) == []
    assert not left.exists()


def test_a_maker_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def make() -> None:
        with cache.building("thing") as work:
            (work / "half").write_text("")
            raise OperatorError("no")

    with pytest.raises(OperatorError):
        make()
    assert list(tmp_path.rglob("*partial*")) == []
