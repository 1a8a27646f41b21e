"""The plans of hosts, run by a real shell in a folder in place of the host's root."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from fleet.baremetal.plans.hostroot import HostRoot

from slipway.api.elemental import staging
from slipway.api.elemental.plan import Instruction, Plan, encode
from slipway.fleet.baremetal.plans.plan import Reprovision, clean, identity, reprovision, same_version

WANTED = Reprovision(
    claim="uid-1",
    image="registry.example.com/os/base:v1.34.5",
    version="v1.34.5",
    hostname="node-1",
    user_data=b"#cloud-config\n",
    network_config="version: 2\n",
)
# What may stand in an image, a version or an address and would be more than a word to a shell.
HOSTILE = "a'b\"c $(touch hacked) `touch hacked` ; touch hacked & \\ * \n newline"


@pytest.fixture
def host(tmp_path: Path) -> HostRoot:
    return HostRoot(tmp_path / "host")


def instruction(plan: Plan, name: str) -> Instruction:
    return next(each for each in plan.instructions if each.name == name)


def env(of: Instruction) -> dict[str, str]:
    return dict(each.split("=", 1) for each in of.env)


@pytest.mark.parametrize("plan", [reprovision(WANTED), clean("uid-1", "10.0.0.9", scrub=True)], ids=["reprovision", "clean"])
def test_every_script_is_one_that_a_shell_reads(plan: Plan) -> None:
    for each in plan.instructions:
        assert (each.command, each.args[0]) == ("/bin/sh", "-c")
        assert subprocess.run(["/bin/sh", "-n", "-c", each.args[1]], capture_output=True, check=True).stderr == b""


def test_the_steps_come_in_the_order_of_the_guide() -> None:
    assert [each.name for each in reprovision(WANTED).instructions] == [
        "clean-cloud-init",
        "upgrade-system",
        "check-version",
        "mark-cleanup",
        "unmask-kubelet",
        "place-seed",
        "tidy-up",
        "reboot",
    ]
    assert [each.name for each in clean("uid-1", scrub=True).instructions][-2:] == ["stop-containerd", "scrub"]
    assert [each.name for each in clean("uid-1").instructions] == ["stop-vip", "mask-kubelet", "remove-workload", "stop-containerd"]


def test_scripts_are_the_same_for_every_host() -> None:
    other = reprovision(WANTED._replace(claim="x", image=HOSTILE, version=HOSTILE, hostname="other", user_data=b"x", network_config=""))
    assert [each.args for each in other.instructions] == [each.args for each in reprovision(WANTED).instructions]


def test_the_id_follows_from_everything_in_the_plan() -> None:
    ids = {
        identity(WANTED),
        identity(WANTED._replace(claim="uid-2")),
        identity(WANTED._replace(image="other")),
        identity(WANTED._replace(version="v1.34.6")),
        identity(WANTED._replace(hostname="node-2")),
        identity(WANTED._replace(user_data=b"other")),
        identity(WANTED._replace(network_config="")),
    }
    assert len(ids) == 7
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in ids)
    assert encode(reprovision(WANTED)) == encode(reprovision(WANTED))


def test_the_instance_id_is_that_of_the_plan() -> None:
    files = {file.path.rpartition("/")[2]: file for file in reprovision(WANTED).files}
    meta_data = yaml.safe_load(files["meta-data"].content)
    assert (meta_data["instance-id"], meta_data["local-hostname"]) == (identity(WANTED), "node-1")
    assert all(file.path.startswith(f"/var/lib/slipway/reprovision/{identity(WANTED)}/") for file in files.values())
    assert {file.permissions for file in files.values()} == {"0600"}


def test_a_host_is_reprovisioned(host: HostRoot) -> None:
    host.write("/var/lib/cloud/seed/nocloud/user-data", "old")
    host.answers("cloud-init", f'rm -rf "{host.path("/var/lib/cloud/seed")}"')

    host.apply(reprovision(WANTED))

    assert host.calls == [
        "cloud-init clean --logs --seed",
        "elemental upgrade --reboot=false --system registry.example.com/os/base:v1.34.5",
        "systemctl unmask kubelet.service",
        "systemd-run --on-active=5 --timer-property=AccuracySec=100ms systemctl reboot",
    ]
    seed = host.path("/var/lib/cloud/seed/nocloud")
    assert sorted(each.name for each in seed.iterdir()) == ["meta-data", "network-config", "reprovision", "user-data"]
    assert (seed / "user-data").read_bytes() == WANTED.user_data
    assert host.path("/var/lib/slipway/clear-kubernetes-state").read_text().strip() == identity(WANTED)


def test_the_seed_is_readable_by_root_alone_and_nothing_secret_stays_elsewhere(host: HostRoot) -> None:
    host.apply(reprovision(WANTED))
    seed = host.path("/var/lib/cloud/seed/nocloud")
    assert stat.S_IMODE(seed.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in seed.iterdir()} == {0o600}
    assert sorted(each.name for each in host.path(f"/var/lib/slipway/reprovision/{identity(WANTED)}").iterdir()) == ["upgraded"]


def test_a_plan_that_ended_is_not_run_again_after_its_reboot(host: HostRoot) -> None:
    plan = reprovision(WANTED)
    host.apply(plan)
    before = host.calls
    host.boot()
    host.path("/var/lib/slipway/clear-kubernetes-state").unlink()

    printed = host.apply(plan)

    assert host.calls == before
    assert "has ended on this host before" in printed
    assert not host.path("/var/lib/slipway/clear-kubernetes-state").exists()


def test_an_agent_that_is_started_anew_before_the_reboot_still_brings_it_about(host: HostRoot) -> None:
    plan = reprovision(WANTED)
    host.apply(plan, until="reboot")
    host.apply(plan)
    assert host.calls[-1] == "systemd-run --on-active=5 --timer-property=AccuracySec=100ms systemctl reboot"
    assert sum(call.startswith("elemental") for call in host.calls) == 1


@pytest.mark.parametrize("cut_before", [each.name for each in reprovision(WANTED).instructions][1:])
def test_a_power_cut_before_any_step_ends_in_the_same_host(host: HostRoot, cut_before: str) -> None:
    plan = reprovision(WANTED)
    host.answers("cloud-init", f'rm -rf "{host.path("/var/lib/cloud/seed")}"')
    host.apply(plan, until=cut_before)
    host.boot()
    host.apply(plan)
    assert (host.path("/var/lib/cloud/seed/nocloud/user-data")).read_bytes() == WANTED.user_data
    assert host.path("/var/lib/slipway/clear-kubernetes-state").exists()
    assert "systemctl unmask kubelet.service" in host.calls
    assert sum(call.startswith("elemental") for call in host.calls) == 1, "the fallback would be lost"
    # Where the seed was in its place, the power cut was the reboot.
    assert ("systemd-run --on-active=5 --timer-property=AccuracySec=100ms systemctl reboot" in host.calls) == (
        cut_before not in ("tidy-up", "reboot")
    )


@pytest.mark.parametrize("cut_before", [each.name for each in reprovision(WANTED).instructions][1:])
def test_a_host_whose_power_was_cut_boots_into_the_node_only_if_the_plan_is_not_run_again(host: HostRoot, cut_before: str) -> None:
    """Otherwise a node would join, and be wiped and joined once more by the plan."""
    plan = reprovision(WANTED)
    host.apply(plan, until=cut_before)
    host.boot()
    joins = host.path("/var/lib/cloud/seed/nocloud/user-data").exists()
    before = len(host.calls)
    host.apply(plan)
    assert (host.calls[before:] == []) == joins


def test_the_marks_of_earlier_reprovisions_go(host: HostRoot) -> None:
    host.apply(reprovision(WANTED))
    second = WANTED._replace(claim="uid-2")
    host.apply(reprovision(second))
    assert [each.name for each in host.path("/var/lib/slipway/reprovision").iterdir()] == [identity(second)]


@pytest.mark.parametrize(("code", "says"), [(18, "the registry does not answer"), (84, "free space"), (58, "ended with 58")])
def test_a_failed_upgrade_fails_the_plan_with_the_code_of_elemental(host: HostRoot, code: int, says: str) -> None:
    host.answers("elemental", f"echo what elemental says >&2; exit {code}")
    plan = reprovision(WANTED)
    host.place_files(plan)
    done = host.run(instruction(plan, "upgrade-system"))
    assert done.returncode == code
    assert says in done.stdout
    assert "what elemental says" in done.stdout


def test_an_image_that_was_fetched_ahead_is_deployed_from_the_disk(host: HostRoot) -> None:
    host.write(f"{staging.place(WANTED.image)}/image.json", "{}")
    host.apply(reprovision(WANTED))
    deployed = [call for call in host.calls if call.startswith("elemental")]
    assert deployed == [f"elemental upgrade --reboot=false --system dir:{host.root}{staging.place(WANTED.image)}/root"]


def test_an_image_that_was_fetched_ahead_and_cannot_be_deployed_is_pulled(host: HostRoot) -> None:
    host.write(f"{staging.place(WANTED.image)}/image.json", "{}")
    host.answers("elemental", 'case "$*" in *dir:*) exit 18 ;; esac\n')
    assert "what was fetched ahead is left alone" in host.apply(reprovision(WANTED))
    assert [call.rpartition(" ")[2] for call in host.calls if call.startswith("elemental")][1:] == [WANTED.image]
    assert host.calls[-1].startswith("systemd-run")


def test_an_image_that_is_not_whole_yet_is_pulled(host: HostRoot) -> None:
    host.write(f"{staging.place(WANTED.image)}.partial/image.json", "{}")
    host.write(f"{staging.place(WANTED.image)}/root/usr/bin/kubelet")
    host.apply(reprovision(WANTED))
    assert [call.rpartition(" ")[2] for call in host.calls if call.startswith("elemental")] == [WANTED.image]


def test_hostile_values_stay_one_word(host: HostRoot, tmp_path: Path) -> None:
    plan = reprovision(WANTED._replace(image=HOSTILE, version=HOSTILE))
    host.place_files(plan)
    for name in ("upgrade-system", "check-version"):
        host.run(instruction(plan, name))
    assert "".join(f"{call}\n" for call in host.calls) == f"elemental upgrade --reboot=false --system {HOSTILE}\n"
    assert not list(tmp_path.rglob("hacked"))


def kubelet(host: HostRoot, system: str, version: str) -> None:
    host.write(f"{system}/usr/bin/kubelet", f"#!/bin/sh\necho 'Kubernetes {version}'\n", 0o755)


@pytest.mark.parametrize(
    ("wanted", "found", "fits"),
    [
        ("v1.34.5", "v1.34.5", True),
        ("v1.33.7-2", "v1.33.7", True),
        ("v1.33.7-2", "v1.33.7-2", True),
        ("v1.34.5+b1", "v1.34.5", True),
        ("v1.34.5", "v1.34.4", False),
        ("v1.33.7-2", "v1.33.7-1", False),
        ("v1.34.5", "v1.34.5-rc.1", False),
    ],
)
def test_the_kubelet_of_the_image_is_checked_before_the_boot(host: HostRoot, wanted: str, found: str, fits: bool) -> None:
    kubelet(host, "/run/elemental/staged", found)
    done = host.run(instruction(reprovision(WANTED._replace(version=wanted)), "check-version"))
    assert (done.returncode == 0) is fits
    assert found in done.stdout
    assert same_version(wanted, found) is fits, "the Node is judged by the same rule"


def test_the_newest_snapshot_is_looked_at_where_nothing_is_staged(host: HostRoot) -> None:
    kubelet(host, "/.snapshots/9/snapshot", "v1.33.0")
    kubelet(host, "/.snapshots/10/snapshot", "v1.34.5")
    assert host.run(instruction(reprovision(WANTED), "check-version")).returncode == 0


def test_a_version_that_cannot_be_found_is_told_and_passes(host: HostRoot) -> None:
    done = host.run(instruction(reprovision(WANTED), "check-version"))
    assert done.returncode == 0
    assert "is not checked before the boot" in done.stdout


def test_a_host_is_cleaned(host: HostRoot) -> None:
    for name in ("alive.yaml", "etcd.yaml"):
        host.write(f"/etc/kubernetes/manifests/{name}")

    host.apply(quick(clean("uid-1", "10.0.0.9")))

    assert host.calls == [
        "ip -o addr show to 10.0.0.9",
        "ip -o addr show to 10.0.0.9",
        "systemctl mask kubelet.service",
        "systemctl stop kubelet.service",
        "systemctl cat containerd.service",
        "systemctl start containerd.service",
        "crictl --runtime-endpoint unix:///run/containerd/containerd.sock rmp --all --force",
        "crictl --runtime-endpoint unix:///run/containerd/containerd.sock rm --all --force",
        "ctr --namespace k8s.io tasks list --quiet",
        "ctr --namespace k8s.io containers list --quiet",
        "ctr --namespace k8s.io tasks list --quiet",
        "ip -o addr show to 10.0.0.9",
        "systemctl cat containerd.service",
        "systemctl stop containerd.service",
    ]
    assert list(host.path("/etc/kubernetes/manifests").iterdir()) == []
    assert [each.name for each in host.path("/var/lib/slipway/retired-manifests").iterdir()] == ["etcd.yaml"]


def test_a_clean_host_is_cleaned_again_without_harm(host: HostRoot) -> None:
    plan = quick(clean("uid-1", "10.0.0.9"))
    host.apply(plan)
    once = host.calls
    host.apply(plan)
    assert host.calls == once * 2


def test_a_host_without_a_container_runtime_or_a_manifest_is_clean(host: HostRoot) -> None:
    host.answers("systemctl", 'if [ "$1" = cat ]; then exit 1; fi')
    host.apply(quick(clean("uid-1")))
    assert [call for call in host.calls if not call.startswith("systemctl")] == []


def test_a_kubelet_that_cannot_be_masked_is_disabled_and_comes_back_with_the_next_node(host: HostRoot) -> None:
    host.answers("systemctl", 'if [ "$1" = mask ]; then echo "File kubelet.service already exists."; exit 1; fi')
    host.apply(quick(clean("uid-1")))
    assert host.calls[:3] == ["systemctl mask kubelet.service", "systemctl disable kubelet.service", "systemctl stop kubelet.service"]
    before = len(host.calls)
    for _ in range(2):
        assert host.run(instruction(reprovision(WANTED), "unmask-kubelet")).returncode == 0
    unmask, enable = "systemctl unmask kubelet.service", "systemctl enable kubelet.service"
    assert host.calls[before:] == [unmask, enable, unmask]


def test_manifests_in_a_folder_are_retired_each_time(host: HostRoot) -> None:
    for number in ("1", "2"):
        host.write("/etc/kubernetes/manifests/more/pod.yaml", number)
        host.apply(quick(clean(number)))
    assert host.path("/var/lib/slipway/retired-manifests/more/pod.yaml").read_text() == "2"


def test_keepalived_is_ended_until_its_address_is_gone(host: HostRoot) -> None:
    host.write("/proc/4711/comm", "keepalived\n")
    # The second signal is the one that works, as after a restart by the kubelet.
    host.answers("kill", f'if [ -e "{host.root}/once" ]; then rm -r "{host.path("/proc/4711")}"; fi; : > "{host.root}/once"')
    host.answers("ip", f'if [ -e "{host.path("/proc/4711")}" ]; then echo "2: eth0 inet 10.0.0.9/32 scope global eth0"; fi')
    plan = quick(clean("uid-1", "10.0.0.9"), patience=6)
    # The shell has a kill of its own, which would find no such process.
    script = plan.instructions[0].args[1].replace("kill -TERM", "command env kill -TERM")
    done = host.run(Instruction("stop-vip", "/bin/sh", ("-c", script), plan.instructions[0].env))
    assert done.returncode == 0, done.stdout
    assert [call for call in host.calls if call.startswith("kill")] == ["kill -TERM 4711"] * 2


def test_an_address_that_stays_is_taken_away(host: HostRoot) -> None:
    held = f'"{host.root}/held"'
    host.write("/held")
    host.answers(
        "ip", f'case "$*" in *del*) rm {held} ;; *) if [ -e {held} ]; then echo "2: eth0 inet 10.0.0.9/32 scope global"; fi ;; esac'
    )
    done = host.run(instruction(quick(clean("uid-1", "10.0.0.9"), patience=1), "stop-vip"))
    assert done.returncode == 0, done.stdout
    assert "ip addr del 10.0.0.9/32 dev eth0" in host.calls


def test_containers_that_do_not_end_fail_the_plan(host: HostRoot) -> None:
    host.answers("ctr", 'case "$*" in *"tasks list"*) echo stubborn ;; esac')
    done = host.run(instruction(quick(clean("uid-1"), patience=1), "remove-workload"))
    assert done.returncode == 1
    assert "these containers do not end: stubborn" in done.stdout


TASKS = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"


@pytest.mark.parametrize("pid", ["4711\n", ""], ids=["whose process is there", "whose process is not known yet"])
def test_a_container_that_came_up_while_the_others_went_fails_the_plan(host: HostRoot, pid: str) -> None:
    """A kubelet that is stopped may have asked for it just before."""
    host.write(f"{TASKS}/late/init.pid", pid)
    host.path("/proc/4711").mkdir(parents=True)
    done = host.run(instruction(clean("uid-1"), "stop-containerd"))
    assert done.returncode == 1
    assert "these containers were started while the others were ended: late\n" in done.stdout
    assert host.calls[-1] == "systemctl stop containerd.service", "it is looked for when no other can come"


def test_what_is_left_of_a_container_that_has_ended_is_none(host: HostRoot) -> None:
    host.write(f"{TASKS}/ended/init.pid", "4711\n")
    assert host.run(instruction(clean("uid-1"), "stop-containerd")).returncode == 0


def test_each_release_has_a_plan_of_its_own() -> None:
    assert encode(clean("uid-1")) != encode(clean("uid-2"))


def quick(plan: Plan, patience: int = 2) -> Plan:
    """The plan with fewer seconds to wait, each of which is none."""
    return Plan(
        instructions=tuple(
            Instruction(
                each.name,
                each.command,
                ("-c", "sleep() { :; }\n" + each.args[1]),
                tuple(f"PATIENCE={patience}" if name.startswith("PATIENCE=") else name for name in each.env),
            )
            for each in plan.instructions
        )
    )


def test_a_scrub_leaves_nothing_of_the_cluster_and_the_instance_as_it_was(host: HostRoot) -> None:
    for path in ("/var/lib/kubelet/pods/1/token", "/var/lib/etcd/member/wal", "/etc/kubernetes/pki/ca.key", "/var/log/pods/x/0.log"):
        host.write(path, "secret")
    host.write("/var/lib/kubelet/.hidden", "secret")
    for name in ("user-data", "meta-data", "network-config"):
        host.write(f"/var/lib/cloud/seed/nocloud/{name}", "secret" if name == "user-data" else "kept")
    for name in ("user-data.txt", "user-data.txt.i", "obj.pkl"):
        host.write(f"/var/lib/cloud/instances/i-1/{name}", "secret")
    host.write("/var/lib/cloud/instances/i-1/datasource", "kept")
    host.write("/home/operator/notes", "kept")
    mounted = [f"{host.root}/var/lib/kubelet/pods/1", f"{host.root}/var/lib/kubelet/pods/1/volumes/a", f"{host.root}/mnt/data"]
    host.write("/proc/mounts", "".join(f"tmpfs {each} tmpfs rw 0 0\n" for each in mounted))
    done = host.run(instruction(clean("uid-1", scrub=True), "scrub"))
    assert done.returncode == 0, done.stdout
    files = [path for top in ("var", "etc", "home") for path in host.path(top).rglob("*") if path.is_file()]
    assert {str(path.relative_to(host.root)): path.read_text() for path in files} == {
        "var/lib/cloud/seed/nocloud/user-data": "#cloud-config\n",
        "var/lib/cloud/seed/nocloud/meta-data": "kept",
        "var/lib/cloud/seed/nocloud/network-config": "kept",
        "var/lib/cloud/instances/i-1/datasource": "kept",
        "home/operator/notes": "kept",
    }
    assert [call for call in host.calls if call.startswith("umount")] == [f"umount {mounted[1]}", f"umount {mounted[0]}"]
    assert host.run(instruction(clean("uid-1", scrub=True), "scrub")).returncode == 0, "a second time too"
