"""The likely cause of a failure.  The texts were written by the real programs (Kubernetes 1.35.4, etcd 3.6.5)."""

from __future__ import annotations

import pytest

from slipway.node.health.causes import Cause, Failure, cause_of, kubelet_cause_of, last_error, runtime_cause_of, same_kind

COMMAND_FAILED = 'E1116 00:11:41.447207   13343 run.go:72] "command failed" err="'
DIALING = 'W1116 00:12:16.660260   15299 logging.go:55] [core] [Channel #1 SubChannel #3]grpc: Err: connection error: desc = "transport: '


def failure(*log: str, message: str = "") -> Failure:
    return Failure(log=log, exits=1, exit_code=1, message=message)


@pytest.mark.parametrize(
    ("component", "line", "sentence", "certain_after"),
    [
        ("kube-apiserver", "Error: unknown flag: --bogus", "it does not know the flag --bogus; take it out", 1),
        (
            "kube-controller-manager",
            'Error: invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
            "maybe is not a value for its flag --leader-elect;",
            1,
        ),
        ("etcd", "flag provided but not defined: -bogus", "it does not know the flag -bogus; take it out", 1),
        ("etcd", 'invalid value "abc" for flag -snapshot-count: parse error', "abc is not a value for its flag -snapshot-count;", 1),
        (
            "kube-apiserver",
            f"{COMMAND_FAILED}failed to create listener: failed to listen on 127.0.0.1:23790: "
            'listen tcp 127.0.0.1:23790: bind: address already in use"',
            "the port of 127.0.0.1:23790 is taken by another process;",
            2,
        ),
        (
            "etcd",
            '{"level":"fatal","ts":"2026-11-16T00:11:39.956473Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed",'
            '"error":"listen tcp 127.0.0.1:23790: bind: address already in use"}',
            "the port of 127.0.0.1:23790 is taken by another process;",
            2,
        ),
        (
            "kube-scheduler",
            f'{COMMAND_FAILED}stat /nonexistent.conf: no such file or directory"',
            "it needs the file /nonexistent.conf, which is not there",
            2,
        ),
        (
            "kube-scheduler",
            'E1116 19:38:50.123456       1 server.go:319] "Leaderelection lost"',
            "it lost its lease because the API server did not answer in time",
            None,
        ),
        (
            "kube-apiserver",
            "F1116 00:12:19.670760 15299 instance.go:233] Error creating leases: error creating storage factory: context deadline exceeded",
            "etcd does not answer it in time",
            None,
        ),
    ],
)
def test_what_a_component_says_is_understood(component: str, line: str, sentence: str, certain_after: int | None) -> None:
    cause = cause_of(component, failure("something before", line))
    assert cause.sentence.startswith(sentence)
    assert (cause.certain_after, cause.named, cause.line) == (certain_after, True, line)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("failed to parse kubelet flag: unknown flag: --bogus", "it does not know the flag --bogus;"),
        (
            "failed to load kubelet config file, path: /tmp/k.yaml, error: failed to load Kubelet config file /tmp/k.yaml, "
            "error failed to decode: json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32",
            "its configuration file /tmp/k.yaml cannot be used: failed to decode: json: cannot unmarshal string into Go struct field "
            "KubeletConfiguration.maxPods of type int32",
        ),
        (
            "failed to validate kubelet configuration, error: [invalid configuration: healthzPort (--healthz-port) 99999 must be between "
            "1 and 65535, inclusive, kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported], "
            "path: &TypeMeta{Kind:,APIVersion:,}",
            "its configuration is not valid: [invalid configuration: healthzPort (--healthz-port) 99999 must be between 1 and 65535",
        ),
        (
            "failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1. cgroup v1 "
            "support is unsupported and will be removed in a future release, path: &TypeMeta{Kind:,APIVersion:,}",
            "this machine has cgroup v1, which the kubelet refuses;",
        ),
    ],
)
def test_what_the_kubelet_says_is_understood(error: str, sentence: str) -> None:
    cause = kubelet_cause_of(failure(f'{COMMAND_FAILED}{error}"'))
    assert cause.sentence.startswith(sentence)
    # The next start reads the same files.
    assert cause.certain_after == 1


# Written by the programs themselves: etcd 3.6.6 over damaged data, kubelet 1.35.4, containerd 1.6.20.
@pytest.mark.parametrize(
    ("line", "sentence", "fix"),
    [
        (
            '{"level":"fatal","ts":"2026-11-16T18:27:45.988784Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed","error":"walpb: '
            "crc mismatch: expected: 7b20d561 computed: c871141d: in file '0000000000000000-0000000000000000.wal' at position: 80\"}",
            "its write-ahead log is damaged (walpb: crc mismatch)",
            "slipway reset",
        ),
        (
            '{"level":"panic","ts":"2026-11-16T18:27:46.124480Z","caller":"backend/backend.go:205","msg":"failed to open database",'
            '"path":"/var/lib/etcd/member/snap/db","error":"invalid database"}',
            "its database file is damaged (invalid database)",
            "etcdutl snapshot restore",
        ),
        (
            '{"level":"panic","ts":"2026-11-16T18:27:54.409166Z","caller":"etcdserver/bootstrap.go:663","msg":"failed to create WAL",'
            '"error":"no space left on device"}',
            "the disk is full",
            "df -h",
        ),
    ],
)
def test_what_etcd_says_of_its_data_is_understood(line: str, sentence: str, fix: str) -> None:
    cause = cause_of("etcd", failure(line, "panic: failed to open database", "goroutine 26 [running]:"))
    assert cause.sentence == sentence
    assert fix in cause.fix


def test_a_kubelet_whose_certificate_has_expired_is_understood_by_the_line_before_its_last_one() -> None:
    log = (
        'E1116 18:28:13.703652    9203 bootstrap.go:267] "Unhandled Error" err="part of the existing bootstrap client certificate in '
        '/etc/kubernetes/kubelet.conf is expired: 2025-01-01 00:00:00 +0000 UTC" logger="UnhandledError"',
        'E1116 18:28:13.703744    9203 run.go:72] "command failed" err="failed to run Kubelet: unable to load bootstrap kubeconfig: '
        'stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"',
    )
    cause = kubelet_cause_of(failure(*log))
    assert cause.sentence.startswith("its client certificate in /etc/kubernetes/kubelet.conf has expired (2025-01-01 00:00:00 +0000 UTC)")
    assert "slipway kubeconfig user --org system:nodes" in cause.fix


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "containerd: failed to load TOML: /etc/containerd/config.toml: (2, 2): unexpected token unclosed table key, was expecting a "
            "table key",
            "its configuration /etc/containerd/config.toml is not valid: (2, 2): unexpected token unclosed table key",
        ),
        ("containerd: (4, 3): Can't convert x(string) to int", "it says: (4, 3): Can't convert x(string) to int"),
        (
            'time="2026-11-16T18:27:54.887203390Z" level=warning msg="failed to load plugin io.containerd.grpc.v1.cri" error="invalid '
            'plugin config: `mirrors` cannot be set when `config_path` is provided"',
            "its CRI plugin does not start: invalid plugin config: `mirrors` cannot be set when `config_path` is provided",
        ),
    ],
)
def test_what_containerd_says_is_understood(line: str, sentence: str) -> None:
    cause = runtime_cause_of(failure('time="2026-11-16T18:27:54Z" level=info msg="starting containerd"', line))
    assert cause.sentence.startswith(sentence)
    assert "systemctl restart containerd" in cause.fix


def test_a_certificate_out_of_its_time_is_told_with_both_times() -> None:
    line = (
        f"{DIALING}authentication handshake failed: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: "
        'current time 2026-11-16T18:27:54Z is after 2026-11-01T00:00:00Z"'
    )
    cause = cause_of("kube-apiserver", failure(line))
    assert cause.sentence == "a certificate is not valid at this machine's time (2026-11-16T18:27:54Z is after 2026-11-01T00:00:00Z)"
    assert "slipway certs renew all" in cause.fix


def test_a_kubelet_without_inotify_instances_is_understood() -> None:
    line = 'E1116 00:15:07.135600     483 kubelet.go:1728] "Failed to start cAdvisor" err="inotify_init: too many open files"'
    assert kubelet_cause_of(failure(line)).sentence.startswith("this machine has no inotify instances left;")


def test_distrust_is_told_before_the_timeout_that_it_leads_to() -> None:
    log = (
        f'{DIALING}authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"',
        "F1116 00:12:19.670760   15299 instance.go:233] Error creating leases: error creating storage factory: context deadline exceeded",
    )
    assert cause_of("kube-apiserver", failure(*log)).sentence == (
        "it and etcd do not trust each other's certificates (x509: certificate signed by unknown authority)"
    )


def test_waiting_for_another_component_is_not_the_end() -> None:
    log = f'{DIALING}Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"'
    cause = cause_of("kube-apiserver", failure(log))
    assert (cause.sentence, cause.certain_after) == ("it cannot reach 127.0.0.1:2379 (connection refused), which it needs", None)


def test_what_the_runtime_says_counts_most() -> None:
    assert cause_of("etcd", failure("all is well", message="OOMKilled")).sentence == "it was killed because there was not enough memory"


def test_a_warning_of_a_missing_file_is_not_the_cause() -> None:
    log = (
        "W1116 00:11:41.543051   13354 options.go:369] open /etc/optional.conf: no such file or directory",
        f'{COMMAND_FAILED}--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"',
    )
    cause = cause_of("kube-apiserver", failure(*log))
    assert not cause.named
    assert cause.sentence.startswith('it says: "command failed" err="--secure-port 0 must be between 1 and 65535')
    # Unknown to us, it may pass; the same words four times do not.
    assert cause.certain_after == 4


def test_a_program_that_said_nothing_is_not_given_up() -> None:
    assert cause_of("etcd", failure()) == Cause("it left no message", None, named=False)


def test_the_last_error_is_found_among_other_lines() -> None:
    assert last_error(["E1116 00:11:38.735296   13042 run.go:72] first", "I1116 00:11:38.733404   13042 serving.go:386] later"]) == "first"
    assert last_error(["plain", "text"]) == "text"


def test_sentences_that_differ_in_numbers_are_of_one_kind() -> None:
    assert same_kind("pid 12 at 10:31 failed", "pid 7 at 10:32 failed")
    assert not same_kind("it failed", "it stopped")
