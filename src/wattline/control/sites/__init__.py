"""Sites: how do one control plane and an agent in each site act as one, also when nothing joins them?"""

from wattline.control.sites.agent import Agent, Outbox, SiteWorld
from wattline.control.sites.desk import MAY_BE, Desk
from wattline.control.sites.messages import (
    PROTOCOL,
    Lease,
    Order,
    Refusal,
    SyncReply,
    SyncRequest,
    decode_reply,
    decode_request,
    encode_message,
)
from wattline.control.sites.tenancy import Tenancy
from wattline.control.sites.timing import Timing

__all__ = [
    "MAY_BE",
    "PROTOCOL",
    "Agent",
    "Desk",
    "Lease",
    "Order",
    "Outbox",
    "Refusal",
    "SiteWorld",
    "SyncReply",
    "SyncRequest",
    "Tenancy",
    "Timing",
    "decode_reply",
    "decode_request",
    "encode_message",
]
