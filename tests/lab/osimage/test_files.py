"""The files of an OS image that are Slipway's own, as far as they can be checked without booting one."""

from __future__ import annotations

import configparser
import io
import os
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from slipway.api.machinery.version import Version
from slipway.api.releases import release_for
from slipway.lab.osimage import files as osfiles
from slipway.lab.osimage.files import File, Link, Tree

RELEASE = release_for(Version.parse("v1.35.4"))
UNITS = "usr/lib/systemd/system"
SCRIPTS = {
    "usr/bin/elemental",
    "usr/local/sbin/dmidecode",
    *(f"usr/lib/slipway-lab/{name}" for name in ("prepare", "load-images", "cloud-network")),
}


@pytest.fixture(scope="module")
def tree() -> Tree:
    return osfiles.tree(RELEASE)


def content(tree: Tree, path: str) -> str:
    entry = tree[path]
    assert isinstance(entry, File)
    return entry.content


def values(tree: Tree, path: str, section: str, key: str) -> list[str]:
    """All values of a key in a unit, which may stand there more than once."""
    found, current = [], ""
    for line in content(tree, path).splitlines():
        if line.startswith("["):
            current = line.strip("[]")
        elif current == section and line.startswith(f"{key}="):
            found.append(line.partition("=")[2])
    return found


def script(tree: Tree, path: str, tmp_path: Path) -> Path:
    """A script of the image with the paths that it writes to moved under ``tmp_path``."""
    text = content(tree, path)
    for folder in ("/var/lib/slipway-lab", "/etc/slipway-lab-image", "/var/lib/containerd", "/usr/share/slipway/images"):
        text = text.replace(folder, f"{tmp_path}{folder}")
    copy = tmp_path / Path(path).name
    copy.write_text(text)
    return copy


def stand_in(tmp_path: Path, program: str, body: str) -> dict[str, str]:
    """An environment in which ``program`` is a script that writes its arguments down."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / program
    path.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/{program}.calls\n{body}\n')
    path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_containerd_uses_the_pause_image_of_the_release_and_debians_network_plugins(tree: Tree) -> None:
    text = content(tree, "usr/share/slipway-lab/containerd.toml").replace("@SYSTEMD_CGROUP@", "false")
    settings = tomllib.loads(text)["plugins"]["io.containerd.grpc.v1.cri"]
    assert settings["sandbox_image"] == "registry.k8s.io/pause:3.10.1"  # what kubeadm 1.35.4 lists
    assert settings["cni"]["bin_dir"] == "/usr/lib/cni"
    assert settings["restrict_oom_score_adj"] is True
    assert settings["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": False}


def test_what_boot_fills_in_is_the_only_mark_left_in_any_file(tree: Tree) -> None:
    marked = {path for path, entry in tree.items() if isinstance(entry, File) and "@PAUSE" in entry.content}
    assert marked == set()
    assert tree["etc/containerd/config.toml"] == Link("/run/slipway-lab/containerd.toml")


def test_the_kubelet_reads_the_files_that_kubeadm_and_operators_write(tree: Tree) -> None:
    drop_in = f"{UNITS}/kubelet.service.d/10-kubeadm.conf"
    assert values(tree, drop_in, "Service", "EnvironmentFile") == ["-/var/lib/kubelet/kubeadm-flags.env", "-/etc/default/kubelet"]
    assert values(tree, drop_in, "Service", "ExecStart") == [
        "",
        "/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS",
    ]


def test_the_labs_drop_in_only_adds_an_argument_to_kubeadms(tree: Tree) -> None:
    theirs = values(tree, f"{UNITS}/kubelet.service.d/10-kubeadm.conf", "Service", "ExecStart")[-1]
    ours = values(tree, f"{UNITS}/kubelet.service.d/20-slipway-lab.conf", "Service", "ExecStart")
    assert ours == ["", f"{theirs} $SLIPWAY_LAB_KUBELET_ARGS"]


def test_a_unit_that_starts_at_boot_is_wanted_by_the_target_that_it_names(tree: Tree) -> None:
    own = {unit: target for unit, target in osfiles.ENABLED.items() if f"{UNITS}/{unit}" in tree}
    assert set(own) == {"kubelet.service", "slipway-lab-prepare.service", "slipway-lab-images.service"}
    for unit, target in own.items():
        assert values(tree, f"{UNITS}/{unit}", "Install", "WantedBy") == [target]
        assert tree[f"etc/systemd/system/{target}.wants/{unit}"] == Link(f"/lib/systemd/system/{unit}")


def test_the_agent_starts_at_boot_and_rests_until_it_has_a_registration() -> None:
    tree = osfiles.agent("/opt/slipway/bin/slipway")
    unit = f"{UNITS}/slipway-agent.service"
    assert values(tree, unit, "Service", "ExecStart") == ["/opt/slipway/bin/slipway agent run"]
    assert "|/oem/registration/config.yaml" in values(tree, unit, "Unit", "ConditionPathExists")
    assert tree["etc/systemd/system/multi-user.target.wants/slipway-agent.service"] == Link("/lib/systemd/system/slipway-agent.service")


def test_no_unit_is_both_enabled_and_masked() -> None:
    assert not set(osfiles.ENABLED) & set(osfiles.MASKED)


def test_multi_user_does_not_wait_for_images_but_the_kubelet_and_user_data_do(tree: Tree) -> None:
    images = f"{UNITS}/slipway-lab-images.service"
    assert "multi-user.target" in values(tree, images, "Unit", "After")[0].split()
    assert set(values(tree, images, "Unit", "Before")[0].split()) == {"kubelet.service", "cloud-final.service"}
    # Or the target would wait for the kubelet, and with it for the images.
    assert "multi-user.target" in values(tree, f"{UNITS}/kubelet.service.d/20-slipway-lab.conf", "Unit", "After")[0].split()


def test_the_cgroups_are_prepared_before_containerd_and_the_kubelet(tree: Tree) -> None:
    before = values(tree, f"{UNITS}/slipway-lab-prepare.service", "Unit", "Before")[0].split()
    assert {"containerd.service", "kubelet.service"} <= set(before)
    assert values(tree, f"{UNITS}/containerd.service.d/10-slipway-lab.conf", "Unit", "Requires") == ["slipway-lab-prepare.service"]


def test_nothing_lies_where_debian_has_a_link_into_usr(tree: Tree) -> None:
    # A folder /lib or /bin in the layer would hide the link of the base and with it the whole system.
    assert {path.split("/")[0] for path in tree} == {"etc", "usr"}


def test_scripts_can_be_run_and_other_files_cannot(tree: Tree) -> None:
    executable = {path for path, entry in tree.items() if isinstance(entry, File) and entry.mode == 0o755}
    assert executable == SCRIPTS


@pytest.mark.parametrize("path", sorted(SCRIPTS))
def test_scripts_are_posix_shell(tree: Tree, path: str, tmp_path: Path) -> None:
    subprocess.run(["sh", "-n", script(tree, path, tmp_path)], check=True)


def test_cloud_init_takes_its_seed_from_the_disk(tree: Tree) -> None:
    settings = yaml.safe_load(content(tree, "etc/cloud/cloud.cfg.d/90-slipway-lab.cfg"))
    assert settings["datasource_list"] == ["NoCloud"]
    assert settings["system_info"]["network"]["renderers"] == ["networkd"]
    assert settings["locale"] is False


@pytest.mark.parametrize("stage", ["cloud-init-local", "cloud-init", "cloud-config", "cloud-final"])
def test_cloud_init_rests_on_a_host_without_a_seed(tree: Tree, stage: str) -> None:
    drop_in = configparser.ConfigParser()
    drop_in.read_string(content(tree, f"{UNITS}/{stage}.service.d/10-slipway-lab.conf"))
    assert drop_in["Unit"]["ConditionPathExists"] == "/var/lib/cloud/seed/nocloud/meta-data"


def test_cloud_init_leaves_the_network_alone_unless_its_seed_has_a_configuration_for_it(tree: Tree, tmp_path: Path) -> None:
    settings, seed = tmp_path / "etc/cloud/cloud.cfg.d", tmp_path / "var/lib/cloud/seed/nocloud"
    for folder in (settings, seed):
        folder.mkdir(parents=True)
    text = content(tree, "usr/lib/slipway-lab/cloud-network")
    for path in ("/etc/cloud", "/var/lib/cloud"):
        text = text.replace(path, f"{tmp_path}{path}")
    subprocess.run(["sh", "-c", text], check=True)
    (written,) = settings.iterdir()
    assert yaml.safe_load(written.read_text()) == {"network": {"config": "disabled"}}
    (seed / "network-config").write_text("version: 2\n")
    subprocess.run(["sh", "-c", text], check=True)
    assert list(settings.iterdir()) == []


def test_the_elemental_of_an_image_runs_without_slipway_around_it(tree: Tree, tmp_path: Path) -> None:
    for name in ("elemental.py", "registry.py"):
        (tmp_path / name).write_text(content(tree, f"usr/lib/slipway-lab/elemental/{name}"))
    command = ["python3", "-E", "-s", str(tmp_path / "elemental.py"), "install"]
    done = subprocess.run(command, cwd="/", env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, 'Error: unknown command "install" for "elemental": it has upgrade and version\n')


def test_the_image_file_can_be_sourced_by_a_shell(tmp_path: Path) -> None:
    file = osfiles.image_file("v1.35.4-kubeadm", "0123abcd", "v1.35.4", "kubeadm")
    path = tmp_path / "image"
    path.write_text(file.content)
    command = ["sh", "-c", f'. {path}; echo "$NAME $DIGEST $KUBERNETES_VERSION $NODE_TOOL"']
    assert subprocess.check_output(command, text=True) == "v1.35.4-kubeadm 0123abcd v1.35.4 kubeadm\n"


# setupKernelTunables of the kubelet, 1.33 to 1.36.
WANTED_BY_THE_KUBELET = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


class TestPreparing:
    """What a host does before containerd starts, with a ``mount`` that only writes down what it was asked."""

    # nspawn on cgroup v1: the hierarchies read-only, and of the kernel's settings only those of the network writable.
    MOUNTS = """\
tmpfs /sys/fs/cgroup tmpfs rw,nosuid 0 0
cgroup /sys/fs/cgroup/memory cgroup ro,nosuid,memory 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,nosuid,pids 0 0
proc /proc/sys proc ro,nosuid 0 0
proc /proc/sys/net proc rw,nosuid 0 0
"""

    def run(self, tree: Tree, tmp_path: Path, cgroups: str) -> list[str]:
        """The mounts that it made."""
        (tmp_path / "mounts").write_text(self.MOUNTS)
        (tmp_path / "template").write_text("SystemdCgroup = @SYSTEMD_CGROUP@\n")
        text = content(tree, "usr/lib/slipway-lab/prepare")
        moved = {"/proc/self/mounts": "mounts", "/usr/share/slipway-lab/containerd.toml": "template", "/run/slipway-lab": "run"}
        for path, name in moved.items():
            assert path in text
            text = text.replace(path, f"{tmp_path}/{name}")
        stand_in(tmp_path, "stat", f"echo {cgroups}")
        subprocess.run(["sh", "-c", text], env=stand_in(tmp_path, "mount", ""), check=True)
        return (tmp_path / "mount.calls").read_text().splitlines()

    def test_only_read_only_cgroups_are_made_writable(self, tree: Tree, tmp_path: Path) -> None:
        mounts = self.run(tree, tmp_path, "tmpfs")
        assert [call for call in mounts if "remount" in call] == ["-o remount,bind,rw /sys/fs/cgroup/memory"]

    def test_the_kubelet_finds_its_kernel_settings_and_has_none_of_the_machines_to_write(self, tree: Tree, tmp_path: Path) -> None:
        found = {}
        for call in self.run(tree, tmp_path, "tmpfs"):
            if call.startswith("--bind"):
                _, source, target = call.split()
                found[target.removeprefix("/proc/sys/")] = Path(source).read_text().strip()
        assert found == WANTED_BY_THE_KUBELET

    @pytest.mark.parametrize(
        ("cgroups", "systemd_cgroup", "arguments"),
        [("tmpfs", "false", "--cgroup-driver=cgroupfs --fail-cgroupv1=false"), ("cgroup2fs", "true", "")],
    )
    def test_the_runtime_and_the_kubelet_agree_on_who_makes_cgroups(
        self, tree: Tree, tmp_path: Path, cgroups: str, systemd_cgroup: str, arguments: str
    ) -> None:
        self.run(tree, tmp_path, cgroups)
        assert (tmp_path / "run/containerd.toml").read_text() == f"SystemdCgroup = {systemd_cgroup}\n"
        assert (tmp_path / "run/kubelet.env").read_text() == f"SLIPWAY_LAB_KUBELET_ARGS={arguments}\n"


class TestLoadingImages:
    """The script that loads archives into containerd, with a ``ctr`` that knows what it was given before."""

    LAYERS = ("aaaa", "bbbb")
    CTR = """
        case "$3 $4" in
        "content ls") cat "$STATE/known" 2>/dev/null || true ;;
        "content ingest")
            cmp - "$STORE/${6#sha256:}" || exit 1
            [ "$8" = "$(stat -c %s "$STORE/${6#sha256:}")" ] || exit 1
            echo "$6" >>"$STATE/known" ;;
        "images import")
            tar -t | sort >>"$STATE/imported"
            [ ! -e "$STATE/collect" ] || rm "$STATE/known" "$STATE/collect" ;;
        esac
    """

    @pytest.fixture(autouse=True)
    def host(self, tmp_path: Path) -> None:
        """Two archives as the lab makes them: a large layer, a small configuration, and an index each."""
        for folder in ("etc", "var/lib/containerd", "usr/share/slipway/images"):
            (tmp_path / folder).mkdir(parents=True)
        images = tmp_path / "usr/share/slipway/images"
        for layer in self.LAYERS:
            files = {"oci-layout": b"{}", "index.json": layer.encode(), f"blobs/sha256/{layer}": bytes(100_000)}
            files[f"blobs/sha256/config-{layer}"] = b"{}"
            with tarfile.open(images / f"{layer}.tar", "w") as archive:
                for name, data in files.items():
                    entry = tarfile.TarInfo(name)
                    entry.size = len(data)
                    archive.addfile(entry, io.BytesIO(data))
        (images / "index.json").write_text("all of them")
        (tmp_path / "etc/slipway-lab-image").write_text("DIGEST=one\n")

    def run(self, tree: Tree, tmp_path: Path, ctr: str = CTR) -> subprocess.CompletedProcess[str]:
        store = tmp_path / "var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
        environment = stand_in(tmp_path, "ctr", ctr) | {"STATE": str(tmp_path), "STORE": str(store)}
        program = script(tree, "usr/lib/slipway-lab/load-images", tmp_path)
        return subprocess.run(["sh", program], env=environment, capture_output=True, text=True, check=False)

    def calls(self, tmp_path: Path, what: str) -> int:
        path = tmp_path / "ctr.calls"
        return path.read_text().count(what) if path.exists() else 0

    def test_layers_go_into_the_store_and_everything_else_through_one_import(self, tree: Tree, tmp_path: Path) -> None:
        done = self.run(tree, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        store = tmp_path / "var/lib/containerd/io.containerd.content.v1.content/blobs/sha256"
        assert {path.name for path in store.iterdir()} == set(self.LAYERS)
        assert (tmp_path / "known").read_text() == "sha256:aaaa\nsha256:bbbb\n"
        imported = [name for name in (tmp_path / "imported").read_text().splitlines() if not name.endswith("/")]
        assert imported == ["blobs/sha256/config-aaaa", "blobs/sha256/config-bbbb", "index.json", "oci-layout"]

    def test_archives_that_share_a_layer_are_not_unpacked_over_each_other(self, tree: Tree, tmp_path: Path) -> None:
        """Of two programs that make one file at a time, either may fail: GNU tar does, once in some dozen times."""
        shutil.copy(tmp_path / "usr/share/slipway/images/aaaa.tar", tmp_path / "usr/share/slipway/images/cccc.tar")
        real = shutil.which("tar")
        stand_in(tmp_path, "tar", f"""case "$*" in *" -x "*) mkdir "$2/taken" || exit 1 ;; esac; {real} "$@" """)
        done = self.run(tree, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "known").read_text() == "sha256:aaaa\nsha256:bbbb\n"

    def test_nothing_but_the_content_and_the_stamp_remains(self, tree: Tree, tmp_path: Path) -> None:
        (tmp_path / "var/lib/containerd/slipway-lab-images").mkdir()  # left by a boot that was cut short
        self.run(tree, tmp_path)
        left = {path.name for path in (tmp_path / "var/lib/containerd").iterdir()}
        assert left == {"slipway-lab-image", "io.containerd.content.v1.content"}

    def test_a_layer_that_was_collected_as_garbage_is_given_again(self, tree: Tree, tmp_path: Path) -> None:
        (tmp_path / "collect").touch()
        assert self.run(tree, tmp_path).returncode == 0
        assert (tmp_path / "known").read_text() == "sha256:aaaa\nsha256:bbbb\n"
        assert self.calls(tmp_path, "content ingest") == 4

    def test_a_second_boot_loads_nothing(self, tree: Tree, tmp_path: Path) -> None:
        for _boot in range(2):
            assert self.run(tree, tmp_path).returncode == 0
        assert self.calls(tmp_path, "images import") == 1

    def test_another_image_loads_its_own(self, tree: Tree, tmp_path: Path) -> None:
        self.run(tree, tmp_path)
        (tmp_path / "etc/slipway-lab-image").write_text("DIGEST=two\n")
        assert self.run(tree, tmp_path).returncode == 0
        assert self.calls(tmp_path, "images import") == 2

    def test_an_image_without_archives_has_nothing_to_load(self, tree: Tree, tmp_path: Path) -> None:
        (tmp_path / "usr/share/slipway/images/index.json").unlink()
        assert self.run(tree, tmp_path).returncode == 0
        assert self.calls(tmp_path, "") == 0

    def test_a_failure_is_reported_and_the_next_boot_tries_again(self, tree: Tree, tmp_path: Path) -> None:
        assert self.run(tree, tmp_path, ctr="exit 1").returncode != 0
        assert not (tmp_path / "var/lib/containerd/slipway-lab-image").exists()
