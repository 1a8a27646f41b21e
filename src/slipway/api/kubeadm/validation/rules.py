"""What kubeadm checks in a configuration before it acts on it, with its field paths and its words.

Everything takes the internal form with all defaults in, and gives all errors, not only the first.  What depends on the
machine comes as an argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.api.kubeadm import defaults, internal
from slipway.api.kubeadm.addresses import parse_ip, split_host_port
from slipway.api.kubeadm.validation.formats import (
    dns_subdomain_faults,
    group_fault,
    hex_fault,
    is_image_repository,
    is_token,
    parse_url,
    validate_endpoint,
    validate_host_port,
    validate_networking,
    wildcard_subdomain_faults,
)
from slipway.api.machinery.errors import UsageError, ValidationError
from slipway.api.machinery.fieldpath import FieldError, Path, aggregate, invalid, required

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from slipway.api.kubeadm.documents import Warn
    from slipway.api.releases import Release

CERTIFICATE_KEY_SIZE = 32
_URL_SCHEME = "unix"
_UNMOUNT_FLAGS = ("MNT_FORCE", "MNT_DETACH", "MNT_EXPIRE", "UMOUNT_NOFOLLOW")
_PULL_POLICIES = ("", "Always", "IfNotPresent", "Never")
_FLAGS_BESIDE_CONFIG = frozenset(
    {
        "allow-missing-template-keys",
        "config",
        "dry-run",
        "ignore-preflight-errors",
        "kubeconfig",
        "kubeconfig-dir",
        "log-file",
        "node-name",
        "output",
        "print-join-command",
        "print-manifest",
        "rootfs",
        "show-managed-fields",
        "upload-certs",
        "v",
        "yes",
    }
)


def validate_init(config: internal.InitConfiguration, release: Release, warn: Warn) -> list[FieldError]:
    return [
        *validate_node_registration(config.node_registration, Path("nodeRegistration")),
        *validate_bootstrap_tokens(config.bootstrap_tokens, Path("bootstrapTokens")),
        *validate_cluster(config.cluster, release, warn),
        *validate_endpoint(config.local_api_endpoint, Path("localAPIEndpoint")),
        *validate_certificate_key(config.certificate_key, Path("certificateKey")),
    ]


def validate_cluster(config: internal.ClusterConfiguration, release: Release, warn: Warn) -> list[FieldError]:
    """Component configurations are checked for their fields when they are read; their values are the components' business."""
    errors = [
        *_optional_image_repository(config.dns.image_repository, Path("dns", "imageRepository")),
        *validate_networking(config, Path("networking"), warn),
        *validate_cert_sans(config.api_server.cert_sans, Path("apiServer", "certSANs")),
        *validate_extra_args(config.api_server.extra_args, Path("apiServer", "extraArgs")),
        *validate_extra_args(config.controller_manager.extra_args, Path("controllerManager", "extraArgs")),
        *validate_extra_args(config.scheduler.extra_args, Path("scheduler", "extraArgs")),
        *validate_absolute_path(config.certificates_dir, Path("certificatesDir")),
        *validate_feature_gates(config.feature_gates, release, Path("featureGates")),
        *validate_host_port(config.control_plane_endpoint, Path("controlPlaneEndpoint")),
        *validate_image_repository(config.image_repository, Path("imageRepository")),
        *validate_etcd(config.etcd, release, Path("etcd")),
        *validate_encryption_algorithm(config.encryption_algorithm, release, Path("encryptionAlgorithm")),
    ]
    for warning in certificate_validity_warnings(config):
        warn(f"WARNING: {warning}")
    return errors


def validate_join(config: internal.JoinConfiguration, exists: Callable[[str], bool]) -> list[FieldError]:
    errors = validate_discovery(config.discovery, Path("discovery"), exists)
    errors += validate_node_registration(config.node_registration, Path("nodeRegistration"))
    if config.control_plane is not None:
        path = Path("controlPlane")
        errors += validate_endpoint(config.control_plane.local_api_endpoint, path.child("localAPIEndpoint"))
        errors += validate_certificate_key(config.control_plane.certificate_key, path.child("certificateKey"))
    if not config.ca_cert_path.startswith("/") or not config.ca_cert_path.endswith(".crt"):
        errors.append(invalid(Path("caCertPath"), config.ca_cert_path, "the ca certificate path must be an absolute path"))
    return errors


def validate_reset(config: internal.ResetConfiguration) -> list[FieldError]:
    return [
        *validate_socket_path(config.cri_socket, Path("criSocket")),
        *validate_absolute_path(config.certificates_dir, Path("certificatesDir")),
        *validate_unmount_flags(config.unmount_flags, Path("unmountFlags")),
    ]


def validate_upgrade(config: internal.UpgradeConfiguration) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, part in (("apply", config.apply), ("node", config.node)):
        if part.patches is not None:
            errors += validate_absolute_path(part.patches.directory, Path(name, "patches", "directory"))
    for name, part in (("apply", config.apply), ("node", config.node)):
        errors += validate_image_pull_policy(part.image_pull_policy, Path(name, "imagePullPolicy"))
    return errors


def validate_node_registration(options: internal.NodeRegistrationOptions, path: Path) -> list[FieldError]:
    if options.name:
        errors = [invalid(path.child("name"), options.name, fault) for fault in dns_subdomain_faults(options.name)]
    else:
        errors = [
            required(
                path,
                "--node-name or .nodeRegistration.name in the config file is a required value. It seems like this value couldn't be "
                "automatically detected in your environment, please specify the desired value using the CLI or config file.",
            )
        ]
    errors += validate_socket_path(options.cri_socket, path.child("criSocket"))
    errors += validate_extra_args(options.kubelet_extra_args, path.child("kubeletExtraArgs"))
    return errors + validate_image_pull_policy(options.image_pull_policy, path.child("imagePullPolicy"))


def validate_discovery(discovery: internal.Discovery, path: Path, exists: Callable[[str], bool]) -> list[FieldError]:
    errors = []
    token, file = discovery.bootstrap_token, discovery.file
    if token is None and file is None:
        errors.append(invalid(path, "", "bootstrapToken or file must be set"))
    if token is not None and file is not None:
        errors.append(invalid(path, "", "bootstrapToken and file cannot both be set"))
    if token is not None:
        errors += _validate_token_discovery(token, path.child("bootstrapToken"))
        errors += validate_token(discovery.tls_bootstrap_token, path.child("tlsBootstrapToken"))
    if file is not None:
        errors += validate_discovery_kubeconfig(file.kube_config_path, path.child("file", "kubeConfigPath"), exists)
        if discovery.tls_bootstrap_token:
            errors += validate_token(discovery.tls_bootstrap_token, path.child("tlsBootstrapToken"))
    return errors


def _validate_token_discovery(discovery: internal.BootstrapTokenDiscovery, path: Path) -> list[FieldError]:
    errors = []
    if not discovery.api_server_endpoint:
        errors.append(required(path, "APIServerEndpoint is not set"))
    if not discovery.ca_cert_hashes and not discovery.unsafe_skip_ca_verification:
        errors.append(
            invalid(
                path.child("caCertHashes"),
                "",
                "using token-based discovery without caCertHashes can be unsafe. Set unsafeSkipCAVerification as true in your kubeadm "
                "config file or pass --discovery-token-unsafe-skip-ca-verification flag to continue",
            )
        )
    errors += validate_token(discovery.token, path.child("token"))
    try:
        split_host_port(discovery.api_server_endpoint)
    except ValueError as error:
        errors.append(invalid(path.child("apiServerEndpoint"), discovery.api_server_endpoint, str(error)))
    return errors


def validate_discovery_kubeconfig(location: str, path: Path, exists: Callable[[str], bool]) -> list[FieldError]:
    """A file that is there, or an https URL."""
    try:
        scheme = parse_url(location).scheme
    except ValueError:
        return [invalid(path, location, "not a valid HTTPS URL or a file on disk")]
    if not scheme and not exists(location):
        return [invalid(path, location, "not a valid HTTPS URL or a file on disk")]
    if scheme and scheme != "https":
        return [invalid(path, location, "if a URL is used, the scheme must be https")]
    return []


def validate_bootstrap_tokens(tokens: Iterable[internal.BootstrapToken], path: Path) -> list[FieldError]:
    errors = []
    for position, token in enumerate(tokens):
        token_path = path.child(str(position))
        errors += validate_token(token.token, token_path.child("token"))
        errors += validate_token_usages(token.usages, token_path.child("usages"))
        errors += validate_token_groups(token.usages, token.groups, token_path.child("groups"))
        if token.expires is not None and token.ttl is not None:
            errors.append(invalid(token_path, "", "the BootstrapToken .TTL and .Expires fields are mutually exclusive"))
    return errors


def validate_token(token: str, path: Path) -> list[FieldError]:
    return [] if is_token(token) else [invalid(path, token, "the bootstrap token is invalid")]


def validate_token_usages(usages: list[str], path: Path) -> list[FieldError]:
    unknown = sorted({usage for usage in usages if usage not in defaults.TOKEN_USAGES})
    if not unknown:
        return []
    reason = f"invalid bootstrap token usage string: {','.join(unknown)}, valid usage options: {','.join(defaults.TOKEN_USAGES)}"
    return [invalid(path, usages, reason)]


def validate_token_groups(usages: list[str], groups: list[str], path: Path) -> list[FieldError]:
    errors = []
    if groups and "authentication" not in usages:
        errors.append(invalid(path, groups, 'token groups cannot be specified unless --usages includes "authentication"'))
    return errors + [invalid(path, groups, fault) for group in groups if (fault := group_fault(group))]


def validate_etcd(etcd: internal.Etcd, release: Release, path: Path) -> list[FieldError]:
    if etcd.local is None and etcd.external is None:
        return [invalid(path, "", "either .Etcd.Local or .Etcd.External is required")]
    if etcd.local is not None and etcd.external is not None:
        return [invalid(path, "", ".Etcd.Local and .Etcd.External are mutually exclusive")]
    errors: list[FieldError] = []
    if etcd.local is not None:
        local = path.child("local")
        errors += validate_absolute_path(etcd.local.data_dir, local.child("dataDir"))
        errors += validate_cert_sans(etcd.local.server_cert_sans, local.child("serverCertSANs"))
        errors += validate_cert_sans(etcd.local.peer_cert_sans, local.child("peerCertSANs"))
        errors += _optional_image_repository(etcd.local.image_repository, local.child("imageRepository"))
        errors += validate_extra_args(etcd.local.extra_args, local.child("extraArgs"))
    if etcd.external is not None:
        errors += _validate_external_etcd(etcd.external, release, path.child("external"))
    return errors


def _validate_external_etcd(etcd: internal.ExternalEtcd, release: Release, path: Path) -> list[FieldError]:
    errors = []
    if bool(etcd.cert_file) != bool(etcd.key_file):
        errors.append(invalid(path, "", "either both or none of .Etcd.External.CertFile and .Etcd.External.KeyFile must be set"))
    if etcd.cert_file and etcd.key_file and not etcd.ca_file:
        errors.append(invalid(path, "", "setting .Etcd.External.CertFile and .Etcd.External.KeyFile requires .Etcd.External.CAFile"))
    # Plain http is for an etcd without certificates.
    require_https = bool(etcd.ca_file or etcd.cert_file or etcd.key_file)
    if not etcd.endpoints and release.http_etcd_endpoints:
        errors.append(invalid(path.child("endpoints"), "", "at least one endpoint must be specified"))
    errors += validate_urls(etcd.endpoints, require_https, path.child("endpoints"))
    errors += validate_urls(etcd.http_endpoints, False, path.child("httpEndpoints"))
    for name, file in (("caFile", etcd.ca_file), ("certFile", etcd.cert_file), ("keyFile", etcd.key_file)):
        if file:
            errors += validate_absolute_path(file, path.child(name))
    return errors


def validate_urls(urls: Iterable[str], require_https: bool, path: Path) -> list[FieldError]:
    errors = []
    for url in urls:
        try:
            scheme = parse_url(url).scheme
        except ValueError as error:
            errors.append(invalid(path, url, f"URL parse error: {error}"))
            continue
        if require_https and scheme != "https":
            errors.append(invalid(path, url, "the URL must be using the HTTPS scheme"))
        if not scheme:
            errors.append(invalid(path, url, "the URL without scheme is not allowed"))
    return errors


def validate_encryption_algorithm(algorithm: str, release: Release, path: Path) -> list[FieldError]:
    if algorithm in release.encryption_algorithms:
        return []
    known = " ".join(sorted(release.encryption_algorithms))
    return [invalid(path, algorithm, f'Invalid encryption algorithm "{algorithm}". Must be one of [{known}]')]


def validate_cert_sans(names: Iterable[str], path: Path) -> list[FieldError]:
    """Every name is a DNS name, one with a wildcard in front, or an address."""
    errors = []
    for name in names:
        plain, wildcard = dns_subdomain_faults(name), wildcard_subdomain_faults(name)
        if plain and wildcard and parse_ip(name) is None:
            reason = "altname is not a valid IP address, DNS label or a DNS label with subdomain wildcards: "
            errors.append(invalid(path, name, f"{reason}{'; '.join(plain)}; {'; '.join(wildcard)}"))
    return errors


def validate_absolute_path(location: str, path: Path) -> list[FieldError]:
    return [] if location.startswith("/") else [invalid(path, location, "path is not absolute")]


def validate_feature_gates(gates: dict[str, bool], release: Release, path: Path) -> list[FieldError]:
    return [invalid(path, gates, f"{name} is not a valid feature name.") for name in sorted(gates) if name not in release.feature_gates]


def validate_certificate_key(key: str, path: Path) -> list[FieldError]:
    fault = hex_fault(key)
    if fault:
        return [invalid(path, key, f"certificate key decoding error: {fault}")]
    size = len(key) // 2
    if key and size != CERTIFICATE_KEY_SIZE:
        reason = f"invalid certificate key size {size}, the key must be an AES key of size {CERTIFICATE_KEY_SIZE}"
        return [invalid(path, key, reason)]
    return []


def validate_socket_path(socket: str, path: Path) -> list[FieldError]:
    if not socket:
        return [invalid(path, socket, "empty CRI socket")]
    try:
        scheme = parse_url(socket).scheme
    except ValueError as error:
        return [invalid(path, socket, f"URL parsing error: {error}")]
    if scheme != _URL_SCHEME:
        return [invalid(path, socket, f'only URL scheme "{_URL_SCHEME}" is supported, got "{scheme}"')]
    return []


def validate_image_repository(repository: str, path: Path) -> list[FieldError]:
    return [] if is_image_repository(repository) else [invalid(path, repository, "invalid image repository format")]


def validate_extra_args(arguments: Iterable[internal.Arg], path: Path) -> list[FieldError]:
    return [invalid(path, f"index {position}", "argument has no name") for position, argument in enumerate(arguments) if not argument.name]


def validate_unmount_flags(flags: Iterable[str], path: Path) -> list[FieldError]:
    return [
        invalid(path, f"index {position}", f"unknown unmount flag {flag}")
        for position, flag in enumerate(flags)
        if flag not in _UNMOUNT_FLAGS
    ]


def validate_image_pull_policy(policy: str, path: Path) -> list[FieldError]:
    return [] if policy in _PULL_POLICIES else [invalid(path, policy, "invalid pull policy")]


def certificate_validity_warnings(config: internal.ClusterConfiguration) -> list[str]:
    """Validities that are longer than is wise, or longer than that of the authority that signs."""
    leaf, authority = config.certificate_validity_period, config.ca_certificate_validity_period
    warnings = []
    if leaf is not None and leaf > defaults.CERTIFICATE_VALIDITY:
        warnings.append(
            f"certificateValidityPeriod: the value {leaf} is more than the recommended default for certificate expiration: "
            f"{defaults.CERTIFICATE_VALIDITY}"
        )
    if authority is not None and authority > defaults.CA_CERTIFICATE_VALIDITY:
        warnings.append(
            f"caCertificateValidityPeriod: the value {authority} is more than the recommended default for CA certificate expiration: "
            f"{defaults.CA_CERTIFICATE_VALIDITY}"
        )
    if leaf is not None and authority is not None and leaf > authority:
        warnings.append(f"certificateValidityPeriod: the value {leaf} is more than the caCertificateValidityPeriod: {authority}")
    return warnings


def refuse_mixed_arguments(flags: Iterable[str]) -> None:
    """UsageError where ``--config`` is given beside flags whose values it should hold; ``flags`` are those that were given."""
    given = set(flags)
    mixed = sorted(name for name in given if name not in _FLAGS_BESIDE_CONFIG and not name.startswith("skip-"))
    if "config" in given and mixed:
        raise UsageError(f"can not mix '--config' with arguments [{' '.join(mixed)}]")


def ignored_preflight_errors(from_flags: Iterable[str], from_config: Iterable[str]) -> list[str]:
    """The checks whose errors are ignored, in lower case and sorted; 'all' stands alone."""
    names = sorted({name.lower() for name in (*from_config, *from_flags)})
    if "all" in names and len(names) > 1:
        fault = invalid(Path("ignore-preflight-errors"), ",".join(names), "don't specify individual checks if 'all' is used")
        raise ValidationError(aggregate([fault]))
    return names


def _optional_image_repository(repository: str, path: Path) -> list[FieldError]:
    return validate_image_repository(repository, path) if repository else []
