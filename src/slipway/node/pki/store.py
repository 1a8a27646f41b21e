"""The certificates and keys of a control plane on its disk: made where they are missing, reused where they comply.

What does not comply is refused with the reason and never overwritten.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from slipway.api.machinery.errors import OperatorError
from slipway.credentials import keys
from slipway.credentials.profile import DEFAULT_CA_VALIDITY, DEFAULT_VALIDITY, SERVER_AUTH
from slipway.node.pki import specs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography.x509 import Certificate

    from slipway.credentials.keys import PrivateKey
    from slipway.credentials.profile import Profile
    from slipway.credentials.x509 import Authority
    from slipway.node.context import NodeContext
    from slipway.node.pki.specs import CertificateSpec

_CERTIFICATE_MODE, _KEY_MODE = 0o644, 0o600


def generate_ahead(ctx: NodeContext, names: Iterable[str], more: int = 0) -> None:
    """Start to make the keys that ``ensure_certificate`` and ``ensure_service_account_key`` will need for ``names``.

    ``sa`` is the service account key; ``more`` keys are for others, such as kubeconfig files.  Call it as soon as the
    configuration is known, with the phases that will run.
    """
    wanted = [name for name in names if _needs_key(ctx, name)]
    ctx.keys.expect(ctx.config.cluster.key_algorithm, len(wanted) + more)


def shown_folder(ctx: NodeContext) -> str:
    """The certificate folder, or where a dry run has it."""
    return ctx.host.shown(ctx.config.cluster.certificates_dir)


def announce_folder(ctx: NodeContext) -> None:
    ctx.progress.say(f'[certs] Using certificateDir folder "{shown_folder(ctx)}"')


def ensure_certificate(ctx: NodeContext, name: str) -> None:
    """One step of ``init``: the certificate ``name`` and its key are there and can be used, or it says why not."""
    spec = specs.spec_of(name)
    if ctx.config.cluster.etcd.external is not None and specs.of_etcd(spec):
        kind = "certificate" if spec.ca else "certificate authority"
        ctx.progress.say(f"[certs] External etcd mode: Skipping {spec.base_name} {kind} generation")
        return
    _finish_pair(ctx, spec)
    if not _exists(ctx, spec):
        _create(ctx, spec)
        return
    if spec.ca:
        certificate = _checked_leaf(ctx, spec)
        missing = _missing_names(ctx, spec, certificate)
        if missing:
            ctx.warn_once(f"WARNING: the existing certificate {spec.base_name} is not valid for {', '.join(missing)}")
        ctx.progress.say(f"[certs] Using existing {spec.base_name} certificate and key on disk")
        return
    keyless = _checked_authority(ctx, spec)
    # Later phases of a dry run, and its reader, find the machine's own authority among the files of the run.
    ctx.host.include(certificate_path(ctx, spec.base_name), _CERTIFICATE_MODE)
    if not keyless:
        ctx.host.include(key_path(ctx, spec.base_name), _KEY_MODE)
    ctx.progress.say(f"[certs] Using existing {spec.base_name} {'keyless ' if keyless else ''}certificate authority")


def ensure_service_account_key(ctx: NodeContext) -> None:
    """The key pair that signs service account tokens."""
    if is_keyless(ctx, "ca"):
        ctx.progress.say("[certs] Using existing sa keys")
        return
    _ensure_service_account_key(ctx)


def ensure_for_join(ctx: NodeContext) -> None:
    """All certificates of one more control plane: the shared ones must be there, the others are made."""
    required = specs.required(ctx.config)
    for spec in required:
        _finish_pair(ctx, spec)
        if not _exists(ctx, spec):
            signer = specs.spec_of(spec.ca) if spec.ca else None
            if signer is not None and is_keyless(ctx, signer.name):
                path = certificate_path(ctx, spec.base_name)
                raise OperatorError(
                    f'could not load expected certificate "{spec.name}": {path} does not exist, '
                    f'and without the key of "{signer.name}" it cannot be made'
                )
            _create(ctx, spec)
            continue
        if spec.ca:
            missing = _missing_names(ctx, spec, _checked_leaf(ctx, spec))
            if missing:
                raise OperatorError(
                    f"certificate {spec.base_name} is invalid: {certificate_path(ctx, spec.base_name)} is not valid for "
                    f"{', '.join(missing)}; remove it and its key to have new ones made"
                )
        else:
            _checked_authority(ctx, spec)
        ctx.progress.say(f'[certs] Using the existing "{spec.base_name}" certificate and key')
    ctx.progress.say(f'[certs] Valid certificates and keys now exist in "{shown_folder(ctx)}"')
    _ensure_service_account_key(ctx)


def shared_problems(ctx: NodeContext) -> list[str]:
    """What is wrong with the files that all control planes share; a CA without its key only gets a warning."""
    problems = []
    for spec in specs.required(ctx.config):
        if spec.ca:
            continue
        try:
            load_authority_certificate(ctx, spec.name)
        except OperatorError as error:
            problems.append(error.message)
            continue
        if is_keyless(ctx, spec.name):
            ctx.warn_once(f"assuming external key for {spec.name}: {key_path(ctx, spec.base_name)} does not exist")
    try:
        load_key(ctx, "sa")
        _load_public_key(ctx)
    except OperatorError as error:
        problems.append(f"failure loading key for service account: {error.message}")
    return problems


def uses_external_ca(ctx: NodeContext) -> bool:
    """Whether the cluster's CA is here without its key; then all that it signs must be here and valid."""
    return _external(ctx, "ca", "invalid or incomplete external CA")


def uses_external_front_proxy_ca(ctx: NodeContext) -> bool:
    return _external(ctx, "front-proxy-ca", "invalid or incomplete external front-proxy CA")


def externally_managed(ctx: NodeContext, name: str) -> bool:
    """Whether the authority ``name`` is here without its key; an authority that cannot be used is an error."""
    spec = specs.spec_of(name)
    load_authority_certificate(ctx, name)
    if not is_keyless(ctx, spec.name):
        return False
    for leaf in specs.CERTIFICATES:
        if leaf.ca == name:
            _checked_leaf(ctx, leaf)
    return True


def is_keyless(ctx: NodeContext, name: str) -> bool:
    """Whether the certificate of the authority ``name`` is here, and its key is not."""
    base_name = specs.spec_of(name).base_name
    return ctx.host.exists(certificate_path(ctx, base_name)) and not ctx.host.exists(key_path(ctx, base_name))


def certificate_path(ctx: NodeContext, base_name: str) -> str:
    return posixpath.join(ctx.config.cluster.certificates_dir, f"{base_name}.crt")


def key_path(ctx: NodeContext, base_name: str) -> str:
    return posixpath.join(ctx.config.cluster.certificates_dir, f"{base_name}.key")


def load_chain(ctx: NodeContext, base_name: str) -> list[Certificate]:
    """The certificates of a file, the holder's own first."""
    from slipway.credentials import x509

    path = certificate_path(ctx, base_name)
    try:
        return x509.parse(ctx.host.read(path))
    except (OSError, ValueError) as error:
        raise OperatorError(f"couldn't load the certificate file {path}: {_reason(error)}") from error


def load_key(ctx: NodeContext, base_name: str) -> PrivateKey:
    path = key_path(ctx, base_name)
    try:
        return keys.parse_private(ctx.host.read(path))
    except (OSError, ValueError) as error:
        raise OperatorError(f"couldn't load the private key file {path}: {_reason(error)}") from error


def load_authority_certificate(ctx: NodeContext, name: str) -> Certificate:
    """The certificate of an authority, which must be that of one."""
    from slipway.credentials import x509

    spec = specs.spec_of(name)
    certificate = load_chain(ctx, spec.base_name)[0]
    warn_about_period(ctx, spec.base_name, certificate)
    if not x509.is_authority(certificate):
        path = certificate_path(ctx, spec.base_name)
        raise OperatorError(f"certificate {spec.base_name} is not a CA: {path} must be the certificate of a certificate authority")
    return certificate


def load_authority(ctx: NodeContext, name: str) -> Authority:
    """A certificate authority that can sign."""
    from slipway.credentials.x509 import Authority

    certificate = load_authority_certificate(ctx, name)
    return Authority(certificate, _key_of(ctx, specs.spec_of(name), certificate))


def warn_about_period(ctx: NodeContext, base_name: str, certificate: Certificate) -> None:
    from slipway.credentials import x509

    problem = x509.period_problem(certificate, ctx.host.now())
    if problem:
        ctx.warn_once(f"WARNING: could not validate bounds for certificate {base_name}: {problem}")


def write_pair(ctx: NodeContext, base_name: str, certificate: Certificate, key: PrivateKey) -> None:
    from slipway.credentials import x509

    path, pending = key_path(ctx, base_name), _pending_path(ctx, base_name)
    ctx.host.make_dir(posixpath.dirname(path), 0o755)
    # Two files cannot appear at once: a run that is killed in between leaves the certificate where the next one finds it.
    ctx.host.write(pending, x509.pem(certificate), _CERTIFICATE_MODE, like=certificate_path(ctx, base_name))
    try:
        ctx.host.write(path, keys.private_pem(key), _KEY_MODE)
    except OSError:
        ctx.host.remove(pending)
        raise
    ctx.host.rename(pending, certificate_path(ctx, base_name))


def _create(ctx: NodeContext, spec: CertificateSpec) -> None:
    """Make a certificate and its key, where neither of the two files is there."""
    from slipway.credentials import x509

    cluster = ctx.config.cluster
    profile = specs.profile(spec, ctx.config, ctx.release)
    key = ctx.keys.take(cluster.key_algorithm)
    if spec.ca:
        authority = load_authority(ctx, spec.ca)
        valid = x509.period(ctx.host.now(), cluster.certificate_validity_period or DEFAULT_VALIDITY)
        certificate = x509.signed(profile, key.public_key(), authority, valid)
    else:
        valid = x509.period(ctx.host.now(), cluster.ca_certificate_validity_period or DEFAULT_CA_VALIDITY)
        certificate = x509.self_signed(profile, key, valid, sha256_key_id=ctx.release.sha256_key_ids)
    ctx.progress.say(f'[certs] Generating "{spec.base_name}" certificate and key')
    write_pair(ctx, spec.base_name, certificate, key)
    if SERVER_AUTH in profile.usages:
        names, addresses = _listed(profile.dns_names), _listed(profile.addresses)
        ctx.progress.say(f"[certs] {spec.base_name} serving cert is signed for DNS names {names} and IPs {addresses}")


def _checked_authority(ctx: NodeContext, spec: CertificateSpec) -> bool:
    """Whether the existing authority has no key; if it has one, it must be its own."""
    keyless = is_keyless(ctx, spec.name)
    if keyless:
        load_authority_certificate(ctx, spec.name)
    else:
        load_authority(ctx, spec.name)
    return keyless


def _checked_leaf(ctx: NodeContext, spec: CertificateSpec) -> Certificate:
    """The certificate, which its authority must have signed, and whose key must be there."""
    from slipway.credentials import x509

    certificate, *intermediates = load_chain(ctx, spec.base_name)
    warn_about_period(ctx, spec.base_name, certificate)
    signer = specs.spec_of(spec.ca)
    authority = load_authority_certificate(ctx, spec.ca)
    problem = x509.chain_problem(certificate, intermediates, authority, ctx.host.now())
    if problem:
        raise OperatorError(
            f"certificate {spec.base_name} is not signed by corresponding CA: {certificate_path(ctx, spec.base_name)} "
            f"cannot be used with {certificate_path(ctx, signer.base_name)}: {problem}"
        )
    _key_of(ctx, spec, certificate)
    return certificate


def _key_of(ctx: NodeContext, spec: CertificateSpec, certificate: Certificate) -> PrivateKey:
    """The key of a certificate, which must be its own."""
    from slipway.credentials import x509

    key = load_key(ctx, spec.base_name)
    if not x509.belongs_to(certificate, key):
        raise OperatorError(
            f"the private key {key_path(ctx, spec.base_name)} does not match the certificate {certificate_path(ctx, spec.base_name)}"
        )
    return key


def _missing_names(ctx: NodeContext, spec: CertificateSpec, certificate: Certificate) -> list[str]:
    from slipway.credentials import x509

    wanted: Profile = specs.profile(spec, ctx.config, ctx.release)
    return x509.missing_names(certificate, wanted)


def _ensure_service_account_key(ctx: NodeContext) -> None:
    if ctx.host.exists(key_path(ctx, "sa")):
        key = load_key(ctx, "sa")
        ctx.progress.say('[certs] Using the existing "sa" key')
        if not ctx.host.exists(_public_key_path(ctx)):
            # Of a run that ended between the two files, or an operator who brought the key alone.
            ctx.host.write(_public_key_path(ctx), keys.public_pem(key.public_key()), _KEY_MODE)
        return
    key = ctx.keys.take(ctx.config.cluster.key_algorithm)
    ctx.progress.say('[certs] Generating "sa" key and public key')
    path = key_path(ctx, "sa")
    ctx.host.make_dir(posixpath.dirname(path), 0o755)
    ctx.host.write(path, keys.private_pem(key), _KEY_MODE)
    ctx.host.write(_public_key_path(ctx), keys.public_pem(key.public_key()), _KEY_MODE)


def _external(ctx: NodeContext, name: str, complaint: str) -> bool:
    if not is_keyless(ctx, name):
        return False
    try:
        return externally_managed(ctx, name)
    except OperatorError as error:
        raise OperatorError(f"{complaint}: {error.message}") from error


def _exists(ctx: NodeContext, spec: CertificateSpec) -> bool:
    return ctx.host.exists(certificate_path(ctx, spec.base_name)) or ctx.host.exists(key_path(ctx, spec.base_name))


def _finish_pair(ctx: NodeContext, spec: CertificateSpec) -> None:
    """Go on where a run was killed between a key and its certificate; a key that stands alone otherwise is somebody's mistake."""
    pending = _pending_path(ctx, spec.base_name)
    if not ctx.host.exists(pending):
        return
    if ctx.host.exists(key_path(ctx, spec.base_name)) and _belongs_to_key(ctx, spec, pending):
        ctx.host.rename(pending, certificate_path(ctx, spec.base_name))
    else:
        ctx.host.remove(pending)


def _belongs_to_key(ctx: NodeContext, spec: CertificateSpec, pending: str) -> bool:
    """Whether the key is the one that was written for the certificate that waits; a renewal ends as a first making does."""
    from slipway.credentials import x509

    try:
        certificate = x509.parse(ctx.host.read(pending))[0]
    except ValueError:
        return False
    return x509.belongs_to(certificate, load_key(ctx, spec.base_name))


def _pending_path(ctx: NodeContext, base_name: str) -> str:
    folder, name = posixpath.split(certificate_path(ctx, base_name))
    return f"{folder}/.{name}.pending"


def _needs_key(ctx: NodeContext, name: str) -> bool:
    if name == "sa":
        return not ctx.host.exists(key_path(ctx, "sa")) and not is_keyless(ctx, "ca")
    spec = specs.spec_of(name)
    return spec in specs.required(ctx.config) and not _exists(ctx, spec)


def _load_public_key(ctx: NodeContext) -> None:
    path = _public_key_path(ctx)
    try:
        keys.parse_public(ctx.host.read(path))
    except (OSError, ValueError) as error:
        raise OperatorError(f"couldn't load the public key file {path}: {_reason(error)}") from error


def _public_key_path(ctx: NodeContext) -> str:
    return posixpath.join(ctx.config.cluster.certificates_dir, "sa.pub")


def _listed(items: tuple[str, ...]) -> str:
    """A list as Go prints it."""
    return f"[{' '.join(items)}]"


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
