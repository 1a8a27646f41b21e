"""The image of the virtual address: what of a folder goes into it."""

from __future__ import annotations

from pathlib import Path

from slipway.lab.images import alive, oci


def test_files_and_links_of_a_folder_become_entries(tmp_path: Path) -> None:
    program = tmp_path / "usr/sbin/keepalived"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"program")
    program.chmod(0o755)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root\n")
    (tmp_path / "etc/passwd").chmod(0o600)
    (tmp_path / "usr/bin").symlink_to("/usr/sbin")
    made = alive.tree(tmp_path)
    assert list(made) == ["/etc/passwd", "/usr/bin", "/usr/sbin/keepalived"]
    assert made["/usr/bin"] == oci.Link("/usr/sbin")
    modes = {path: entry.mode for path, entry in made.items() if isinstance(entry, oci.File)}
    assert modes == {"/etc/passwd": 0o644, "/usr/sbin/keepalived": 0o755}
