"""SNMP: what do the PDUs and sensors of a site say, each by an object identifier of its maker?

Version 2c with a community, or version 3 (SHA, AES-128) where the secret is `user:authentication:privacy`.
"""

from __future__ import annotations

import asyncio
import math

from pysnmp.hlapi.v3arch.asyncio import (
    USM_AUTH_HMAC96_SHA,
    USM_PRIV_CFB128_AES,
    CommunityData,
    ContextData,
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    UdpTransportTarget,
    UsmUserData,
    get_cmd,
)
from pysnmp.proto.errind import ErrorIndication
from pysnmp.proto.rfc1902 import OctetString
from pysnmp.proto.rfc1905 import EndOfMibView, NoSuchInstance, NoSuchObject

from wattline.facility import SUBJECTS, Site, Source
from wattline.telemetry.asking import MeterError, read_secret
from wattline.telemetry.labels import Labels
from wattline.telemetry.reading import Reading
from wattline.telemetry.remarks import Remarks
from wattline.telemetry.sifting import Sample, Sieve

_AT_ONCE = 32
_PORT = 161
_CONTEXT = b""  # what an agent means by itself
_NOTHING = (NoSuchObject, NoSuchInstance, EndOfMibView)

Answer = dict[str, float] | MeterError


class SnmpSource:
    """The SNMP agents of one site, many at a time."""

    kind = "snmp"

    def __init__(self, site: Site, source: Source) -> None:
        self.site, self.every_seconds = site.name, source.every_seconds
        self.remarks = Remarks()
        self._source = source
        self._runner = asyncio.Runner()
        self._engine: SnmpEngine | None = None
        labels = Labels(site, {})
        self._sieve = Sieve(self.kind, site, labels, self.remarks, source.every_seconds)
        # Of each target what fits its kind: one PDU's watts are a rack's, another's a supply's.
        self._asked = {
            name: [one for one in source.series if name in labels.of_kind[SUBJECTS[one.quantity]]]
            for name in source.targets
        }

    def read(self, now: float) -> list[Reading]:
        """What all say; MeterError where none does."""
        answers = self._runner.run(self._ask_all())
        failures = []
        samples: dict[str, dict[str, Sample]] = {series.quantity: {} for series in self._source.series}
        for name, answer in answers.items():
            if isinstance(answer, MeterError):
                failures.append(answer)
                self.remarks.hold(name, "agent", answer.message)
                continue
            self.remarks.hold(name, "agent", None, "its SNMP agent answers again")
            for series in self._asked[name]:
                if series.quantity in answer:
                    samples[series.quantity][name] = Sample(now, answer[series.quantity] * series.worth, name)
        if failures and len(failures) == len(answers):
            raise failures[0]
        found: list[Reading] = []
        for series in self._source.series:
            what = f"{series.quantity} ({series.ask})"
            readings = self._sieve.sift(series.quantity, what, samples[series.quantity], now)
            expected = {name for name, asked in self._asked.items() if series in asked}
            self._sieve.expect(series.quantity, expected, readings)
            found += readings
        self._sieve.tell_missing()
        return found

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close_dispatcher()
            self._engine = None
        self._runner.close()

    async def _ask_all(self) -> dict[str, Answer]:
        if self._engine is None:  # making one takes half a second
            self._engine = SnmpEngine()
        access, turn = self._access(), asyncio.Semaphore(_AT_ONCE)
        names = [name for name, asked in self._asked.items() if asked]
        answers = await asyncio.gather(*(self._ask(self._engine, access, turn, name) for name in names))
        return dict(zip(names, answers, strict=True))

    async def _ask(
        self, engine: SnmpEngine, access: CommunityData | UsmUserData, turn: asyncio.Semaphore, name: str
    ) -> Answer:
        address, series = self._source.targets[name], self._asked[name]
        host, port = _split(address)
        each_seconds = self._source.timeout_seconds / 2  # it is asked a second time: datagrams are lost
        asked = [ObjectType(ObjectIdentity(one.ask)) for one in series]
        async with turn:
            try:
                target = await UdpTransportTarget.create((host, port), timeout=each_seconds, retries=1)
                failure, status, index, bound = await get_cmd(
                    engine, access, target, ContextData(contextName=_CONTEXT), *asked, lookupMib=False
                )
            except Exception as error:  # noqa: BLE001 - its own errors and the resolver's have no common base
                return MeterError(
                    f"{address}: cannot be asked over SNMP: {type(error).__name__}: {error}"[:300]
                )
        if failure:
            assert isinstance(failure, ErrorIndication)
            return MeterError(f"{address}: no answer over SNMP: {failure}"[:300])
        if status:
            return MeterError(
                f"{address}: answers with {status.prettyPrint()} to {series[int(index) - 1].ask}"[:300]
            )
        found = {}
        for one, (_, value) in zip(series, bound, strict=False):
            if not isinstance(value, _NOTHING):
                found[one.quantity] = _number(value)
        return found

    def _access(self) -> CommunityData | UsmUserData:
        if not self._source.secret_file:
            return CommunityData("public", mpModel=1)  # noqa: S508 - most PDUs speak no other
        secret = read_secret(self._source.secret_file)
        if ":" not in secret:
            return CommunityData(secret, mpModel=1)  # noqa: S508 - most PDUs speak no other
        user, _, keys = secret.partition(":")
        authentication, _, privacy = keys.partition(":")
        if not user or len(authentication) < 8 or (privacy and len(privacy) < 8):
            raise MeterError(
                f"{self._source.secret_file}: of SNMP version 3 it is user:authentication:privacy, and each "
                "of the last two has 8 characters or more"
            )
        if not privacy:
            return UsmUserData(user, authentication, authProtocol=USM_AUTH_HMAC96_SHA)
        return UsmUserData(
            user,
            authentication,
            privacy,
            authProtocol=USM_AUTH_HMAC96_SHA,
            privProtocol=USM_PRIV_CFB128_AES,
        )


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and not host.endswith(":"):
        return host.strip("[]"), int(port)
    return address.strip("[]"), _PORT


def _number(value: object) -> float:
    """Whole numbers come as such; tenths and the like some makers write as text."""
    try:
        if isinstance(value, OctetString):
            return float(bytes(value).decode("ascii").strip())
        return float(int(value))  # type: ignore[call-overload]
    except (ValueError, TypeError, OverflowError, UnicodeDecodeError):
        return math.nan
