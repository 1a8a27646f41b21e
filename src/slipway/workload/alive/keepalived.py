"""keepalived.conf of one host: VRRP between known peers, for as long as the host's own API server is ready.

Every host starts as BACKUP and nobody preempts, so a host that comes back takes nothing away.  Peers are unicast and never empty: a
host that others do not list would become a second master, and an empty list would fall back to multicast.  A script with weight 0
puts a host without a ready API server into FAULT; a negative weight would change nothing where nobody preempts.  It comes before all
other processes of its host: one that has no processor for three seconds is taken for dead by its peers while it still has the address.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from slipway.workload.alive.values import PORT, Values, host_values

STATE_FOLDER = "/run/alive"
YIELD_FILE = f"{STATE_FOLDER}/yield"
"""What the side car writes 1 into to put keepalived into FAULT."""

PROCESS_ID_FILE = f"{STATE_FOLDER}/keepalived.pid"
VRRP_ID_FILE = f"{STATE_FOLDER}/vrrp.pid"

ADVERTISEMENT_SECONDS = 1
# The highest priority waits (256 - 200) / 256 of a second after the holder said that it leaves: by then its address is gone.
_HIGHEST_PRIORITY, _LOWEST_PRIORITY = 200, 20

_TEMPLATE = """\
# Written by slipway from {values}; the peers follow the ConfigMap kube-system/alive.
global_defs {{
    router_id {address}
    enable_script_security
    script_user root
    vrrp_garp_master_refresh 30
    vrrp_priority -20
}}

vrrp_script api_server {{
    script "/usr/bin/curl --silent --fail --insecure --max-time 2 --output /dev/null https://{address}:{port}/readyz"
    interval 1
    timeout 3
    fall 3
    rise 2
    weight 0
}}

track_file yield {{
    file "{yield_file}"
    weight 0
    init_file 0
}}

vrrp_instance alive {{
    state BACKUP
    nopreempt
    interface {interface}
    virtual_router_id {vrid}
    priority {priority}
    advert_int {advertisement}
    check_unicast_src
    unicast_fault_no_peer
    unicast_src_ip {address}
    unicast_peer {{
{peers}
    }}
    virtual_ipaddress {{
        {vip}/32 dev {interface}
    }}
    track_script {{
        api_server
    }}
    track_file {{
        yield weight 0
    }}
}}
"""


def configuration(vip: str, interface: str, address: str, peers: list[str], vrid: int, port: int = PORT) -> str:
    """The file for checked values: ValuesError says in a sentence what is wrong with them."""
    return rendered(host_values(vip=vip, interface=interface, address=address, peers=peers, vrid=vrid, port=port))


def rendered(known: Values) -> str:
    return _TEMPLATE.format(
        values="/etc/keepalived/alive.json",
        yield_file=YIELD_FILE,
        advertisement=ADVERTISEMENT_SECONDS,
        vip=known.vip,
        interface=known.interface,
        address=known.address,
        port=known.port,
        vrid=known.vrid,
        priority=priority(known),
        peers="\n".join(f"        {peer}" for peer in known.peers),
    )


def priority(known: Values) -> int:
    """By the place among all addresses, evenly spread: hosts that miss the holder at the same moment must not all take over at once.

    With three hosts the waits differ by a quarter of a second or more.
    """
    everyone = sorted({known.address, *known.peers}, key=IPv4Address)
    step = (_HIGHEST_PRIORITY - _LOWEST_PRIORITY) / (len(everyone) - 1)
    return round(_HIGHEST_PRIORITY - step * everyone.index(known.address))
