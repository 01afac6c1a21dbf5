"""Which addresses anybody on the internet may have: the others are the machine's own, its network's, or special."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_UNICAST6 = ipaddress.IPv6Network("2000::/3")
_TUNNELS6 = (ipaddress.IPv6Network("2002::/16"), ipaddress.IPv6Network("2001::/32"))  # an IPv4 address within


def is_public(address: Address) -> bool:
    """Whether the address is a plain one of the internet, and leads nowhere else."""
    if isinstance(address, ipaddress.IPv6Address):
        is_plain = address in _UNICAST6 and not any(address in tunnel for tunnel in _TUNNELS6)
        return is_plain and address.is_global and not address.is_multicast
    return address.is_global and not address.is_multicast
