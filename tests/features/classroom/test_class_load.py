"""Two hundred phones and a wall against a page in a process of its own, ten rounds long."""

import asyncio
import math
import os
import random
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from serving import started

PHONES, ROUNDS, WORDS = 200, 10, ("cold", "warm", "hot", "cool")
POLL_SECONDS = 3.0  # of a phone
LOOK_SECONDS = 0.4  # of a wall
MOST_LATE_SECONDS = 1.0  # at the 95th percentile
SENTENCES = [f"On day {number} the opposite of hot is [cold]." for number in range(1, ROUNDS + 1)]


@dataclass
class Measured:
    accepted: list[float] = field(default_factory=list)  # when a first answer was accepted
    seen: list[tuple[float, int]] = field(default_factory=list)  # when the wall had how many
    late: list[float] = field(default_factory=list)  # seconds from the one to the other
    refused: int = 0
    requests: int = 0


class Class:
    """The wall and its phones, by HTTP as their scripts ask."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self.url, self.client, self.measured = url, client, Measured()
        self.number, self.said = 0, dict[str, str]()
        self.closing = False

    async def ask(self, path: str, headers: dict[str, str], body: dict | None = None):
        self.measured.requests += 1
        where = f"{self.url}class/{path}"
        if body is None:
            answer = await self.client.get(where, headers=headers)
        else:
            answer = await self.client.post(where, headers=headers, json=body)
        self.measured.refused += answer.status_code >= 400
        return answer

    async def open(self) -> None:
        told = (await self.ask("", {}, {"base": f"{self.url}class/"})).json()
        self.code, self.lecturer = told["code"], {"x-class-secret": told["secret"]}

    async def lead(self, **what: str) -> dict:
        return (await self.ask(f"{self.code}/lead", self.lecturer, what)).json()

    async def look(self) -> None:
        """The wall."""
        version = -1
        while not self.closing:
            answer = await self.ask(f"{self.code}/wall?v={version}", self.lecturer)
            if answer.status_code == 200:
                told = answer.json()
                version = told["version"]
                self.measured.seen.append((time.monotonic(), told["answered"]))
            await asyncio.sleep(LOOK_SECONDS)

    async def phone(self, student: str, dice: random.Random) -> None:
        """Joins, looks every three seconds, answers each round and changes its mind once."""
        own, version, done = {"x-student": student}, -1, 0
        await self.ask(f"{self.code}/phone", own, {})
        while not self.closing:
            answer = await self.ask(f"{self.code}/phone?v={version}", own)
            if answer.status_code == 200:
                told = answer.json()
                version = told["version"]
                if told["phase"] == "open" and told["round"] != done:
                    done = told["round"]
                    for first in (True, False):
                        await asyncio.sleep(2 * dice.random())
                        word = dice.choice(WORDS)
                        body = {"round": done, "guesses": [{"word": word, "amount": 100}]}
                        sent = await self.ask(f"{self.code}/answer", own, body)
                        assert sent.status_code == 200, sent.text
                        self.said[student] = word
                        if first:
                            self.measured.accepted.append(time.monotonic())
            await asyncio.sleep(POLL_SECONDS * (0.8 + 0.4 * dice.random()))

    async def play(self) -> int:
        """All rounds; gives how many answers were lost."""
        await self.open()
        students = [secrets.token_hex(16) for _ in range(PHONES)]
        walls = [asyncio.create_task(self.look())]
        phones = [asyncio.create_task(self.phone(own, random.Random(own))) for own in students]
        lost = 0
        for sentence in SENTENCES:
            self.said.clear()
            self.measured.accepted, self.measured.seen = [], []
            await self.lead(do="ask", text=sentence)
            end = time.monotonic() + 300
            while len(self.measured.accepted) < PHONES and time.monotonic() < end:
                await asyncio.sleep(0.2)
            await asyncio.sleep(2 + 2 * MOST_LATE_SECONDS)  # second thoughts, and the wall
            told = await self.lead(do="close")
            lost += PHONES - told["answered"]
            for count, when in enumerate(sorted(self.measured.accepted), start=1):
                seen = (at for at, answered in self.measured.seen if answered >= count)
                self.measured.late.append(max(0.0, next(seen, float("inf")) - when))
            # The class's share of the hidden word is what the last answers say.
            told = await self.lead(do="reveal")
            right = sum(word == "cold" for word in self.said.values())
            share = 0.99 * right / PHONES
            assert abs(told["losses"]["people"] + math.log(share)) < 1e-3
        self.closing = True
        await asyncio.gather(*walls, *phones)
        return lost


@pytest.mark.slow
def test_two_hundred_phones(tmp_path, capsys):
    async def run(url: str) -> tuple[Class, int]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, timeout=300) as client:
            own = Class(url, client)
            return own, await own.play()

    environment = {**os.environ, "FILLMASK_UI_RUNS": str(tmp_path)}
    with started("class", "--no-open", env=environment) as (url, server):
        before, begun = _usage(server.pid), time.monotonic()
        own, lost = asyncio.run(run(url))
        after, took = _usage(server.pid), time.monotonic() - begun
    late = sorted(own.measured.late)
    p95 = late[int(0.95 * len(late))]
    with capsys.disabled():
        print(
            f"\n{PHONES} phones, {ROUNDS} rounds in {took:.0f} s: {own.measured.requests:,} "
            f"requests, {own.measured.refused} refused, {lost} answers lost\nthe wall is late by "
            f"{late[len(late) // 2]:.2f} s (median), {p95:.2f} s (95%), {late[-1]:.2f} s (most)\n"
            f"the server took {(after[0] - before[0]) / took:.0%} of a core, {before[1]:.0f} to "
            f"{after[1]:.0f} MB; load of the machine {os.getloadavg()[0]:.1f}"
        )
    assert len(late) == PHONES * ROUNDS
    assert (lost, own.measured.refused) == (0, 0)
    assert p95 < MOST_LATE_SECONDS


def _usage(pid: int) -> tuple[float, float]:
    """Seconds of the processor and resident megabytes of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    seconds = (int(fields[11]) + int(fields[12])) / ticks
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
