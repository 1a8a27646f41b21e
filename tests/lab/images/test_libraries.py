"""Which libraries a program needs, with this machine's loader as the oracle, and how links lead inside a root file system."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lab.static_elf import STATIC_ELF

from slipway.api.machinery.errors import OperatorError
from slipway.lab.images import libraries
from slipway.lab.images.oci import File, Link


@pytest.mark.skipif(shutil.which("ldd") is None, reason="needs ldd")
@pytest.mark.parametrize("program", ["bash", "ls"])
def test_libraries_are_those_that_the_loader_of_this_machine_finds(program: str) -> None:
    path = next(str(folder / program) for folder in map(Path, ("/usr/bin", "/bin")) if (folder / program).exists())
    shown = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    expected = {Path(name).name for name in re.findall(r"^\s+(\S+)", shown, re.MULTILINE)} - {"linux-vdso.so.1", "linux-vdso64.so.1"}
    files = libraries.program_files(Path("/"), {program: program})
    real = libraries.resolve(Path("/"), path)
    assert {Path(name).name for name in files} == expected | {Path(real).name, Path(path).name}


def test_names_of_one_program_become_links_to_it(tmp_path: Path) -> None:
    sbin = tmp_path / "usr" / "sbin"
    sbin.mkdir(parents=True)
    (tmp_path / "etc" / "alternatives").mkdir(parents=True)
    (sbin / "xtables-nft-multi").write_bytes(STATIC_ELF)
    (sbin / "iptables-nft").symlink_to("xtables-nft-multi")
    (tmp_path / "etc" / "alternatives" / "iptables").symlink_to("/usr/sbin/iptables-nft")
    (sbin / "iptables").symlink_to("/etc/alternatives/iptables")
    files = libraries.program_files(tmp_path, {"iptables": "iptables"})
    assert files["/usr/sbin/iptables"] == Link("/usr/sbin/xtables-nft-multi")
    assert isinstance(files["/usr/sbin/xtables-nft-multi"], File)
    assert len(files) == 2


def test_plugins_are_taken_once_though_lib_is_a_link_to_usr_lib(tmp_path: Path) -> None:
    plugins = tmp_path / "usr" / "lib" / "x86_64-linux-gnu" / "xtables"
    plugins.mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    (plugins / "libxt_comment.so").write_bytes(STATIC_ELF)
    files = libraries.program_files(tmp_path, {}, ["xtables/*.so"])
    assert list(files) == ["/usr/lib/x86_64-linux-gnu/xtables/libxt_comment.so"]


@pytest.mark.parametrize(
    ("link", "target", "path", "resolved"),
    [
        ("lib", "usr/lib", "/lib/libc.so.6", "/usr/lib/libc.so.6"),
        ("lib", "/usr/lib", "/lib/libc.so.6", "/usr/lib/libc.so.6"),
        ("lib", "../../../usr/lib", "/lib/libc.so.6", "/usr/lib/libc.so.6"),
        ("usr/tool", "./other/../program", "/usr/tool", "/usr/program"),
        ("unused", "x", "/bin/sh", "/bin/sh"),
    ],
)
def test_links_lead_to_the_same_place_as_inside_the_root_file_system(
    tmp_path: Path, link: str, target: str, path: str, resolved: str
) -> None:
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(target)
    assert libraries.resolve(tmp_path, path) == resolved


def test_links_in_a_circle_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OperatorError, match="never ends"):
        libraries.resolve(tmp_path, "/a")


def test_missing_program_names_the_package_to_install(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="has no program nft: install the Debian package nftables there"):
        libraries.program_files(tmp_path, {"nft": "nftables"})


def test_script_is_refused_as_nobody_knows_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\n")
    with pytest.raises(OperatorError, match="is not a 64-bit ELF file"):
        libraries.program_files(tmp_path, {"tool": "tool"})


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x01\x01" + bytes(58), STATIC_ELF[:40]], ids=["empty", "32 bits", "cut off"])
def test_file_that_is_no_whole_64_bit_elf_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "program").write_bytes(content)
    with pytest.raises(libraries.NotELFError):
        libraries.linkage(tmp_path / "program")


def test_static_program_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(STATIC_ELF)
    assert libraries.linkage(tmp_path / "program") == libraries.Linkage(interpreter="", needed=(), search_path=())
