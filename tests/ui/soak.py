"""Many visitors for a long time: what the memory of the page grows by, and what it leaves behind.

PYTHONPATH=tests python tests/ui/soak.py [--minutes 20] [--public] [--clients 32] [--model NAME ...]
    [--attackers 3]
Starts the page as a process of its own and asks it over HTTP what browsers and programs ask. Exit
code 1 if the memory after the first two minutes grows by more than 5%, if files are left, or if a
request was not answered, or by an error of the server. Attackers do what `ATTACKS` lists, from an
address of their own; 3 of 32 clients send about one request in ten. Memory is Pss; it rises and
falls by a third with what is at work, so what is compared are the medians of the four minutes after
the first two and of the last four.
"""

import argparse
import asyncio
import json
import os
import random
import secrets
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from serving import started

ROOT = Path(__file__).parents[2]
GROWTH_PERCENT = 5.0
REFERENCE_SECONDS, WINDOW_SECONDS, SAMPLE_SECONDS = 120.0, 240.0, 3.0
WORDS = (ROOT / "docs" / "learn.md").read_text("utf-8").split()
MODELS = ("embedded", "embedded:int8")
# Empty folders that Gradio makes when it is imported, for all pages of a machine.
GRADIOS = ("gradio", "gradio/vibe_edit_history")
# What the Explore tab asks beside the bars.
ASIDES = ("joint", "losses", "surprise", "mattered", "download", "compared", "apart", "guess")


def memory_mb(process: int) -> float:
    """Of the page, which starts no other processes."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def some_text(words: int, masks: int = 0) -> str:
    chosen = random.choices(WORDS, k=words)
    for position in random.sample(range(words), min(masks, words)):
        chosen[position] = "[MASK]"
    return " ".join(chosen)


def _id_of(component: dict[str, Any]) -> Any:
    return component["props"].get("elem_id")


class Site:
    """The page under load, and what became of the requests to it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.models, self.seconds_between = args.model, args.pause
        self.seconds: dict[str, list[float]] = defaultdict(list)  # by kind
        self.errors: Counter[str] = Counter()  # kind and reason -> how often

    async def reach(self, client: httpx.AsyncClient) -> None:
        """Read what the page consists of."""
        self.client = client
        config = (await client.get("/config")).raise_for_status().json()
        self.components = {own["id"]: own for own in config["components"]}
        self.events = config["dependencies"]

    @contextmanager
    def measured(self, kind: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
            self.seconds[kind].append(time.monotonic() - begun)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            self.errors[f"{kind}: {type(error).__name__} {str(error)[:90]}"] += 1

    async def post(self, path: str, **content: Any) -> Any:
        answer = await self.client.post(path, **content)
        return answer.raise_for_status().json()

    async def pause(self, times: float = 1.0) -> None:
        await asyncio.sleep(times * self.seconds_between * random.uniform(0.5, 1.5))


class Page:
    """One open page; asks what a browser would ask."""

    def __init__(self, site: Site) -> None:
        self.site, self.hash, self.name = site, secrets.token_hex(6), secrets.token_hex(16)
        self.components, self.events = site.components, site.events

    async def open_evaluate(self) -> None:
        """Let the server build the tab, as a browser does at the first click on it."""
        opener = next(
            number
            for number, component in self.components.items()
            if 'tab_opener("evaluate"' in str(component["props"].get("js_on_load"))
        )
        await self._join(self._event_at(opener), [])
        built = (await self._until_done(1))["render_config"]
        self.components = {component["id"]: component for component in built["components"]}
        self.events = built["dependencies"]
        for event in self.events:
            if any(trigger == "load" for _, trigger in event["targets"]):
                await self._join(event, [self.name, self.hash][: len(event["inputs"])])
                await self._until_done(1)

    def event_of(self, name: str) -> dict[str, Any]:
        """The first event of the component with this id or of this kind."""
        return self._event_at(
            next(
                number
                for number, component in self.components.items()
                if name in (component["type"], _id_of(component))
            )
        )

    def _event_at(self, number: int) -> dict[str, Any]:
        return next(
            event for event in self.events if any(on == number for on, _ in event["targets"])
        )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Load the page, tell the server who is here and keep the line open."""
        beating = None
        with self.site.measured("open the page"):
            (await self.site.client.get("/")).raise_for_status()
            beating = asyncio.create_task(self._beat())
        yield
        if beating is not None:
            beating.cancel()

    async def _beat(self) -> None:
        path = f"/gradio_api/heartbeat/{self.hash}"
        with suppress(httpx.HTTPError):
            async with self.site.client.stream("GET", path) as stream:
                async for _ in stream.aiter_lines():
                    pass

    async def served(self, name: str, values: dict[str, Any], kind: str) -> None:
        """What a script of the page asks for, asked again while it is busy."""
        with self.site.measured(kind):
            while (await self.site.post(f"/ask/{name}", json=values)).get("kind") == "busy":
                await asyncio.sleep(0.3)

    async def upload(self, lines: int) -> dict[str, Any]:
        """A file of texts, as a value of the component for files."""
        content = "\n".join(some_text(random.randint(4, 40)) for _ in range(lines)).encode()
        files = {"files": (f"{secrets.token_hex(4)}.txt", content)}
        (path,) = await self.site.post("/gradio_api/upload", files=files)
        reference = {"path": path, "orig_name": "texts.txt", "size": len(content)}
        return {**reference, "meta": {"_type": "gradio.FileData"}}

    async def event(self, name: str, choices: Mapping[str, Any] = MappingProxyType({})) -> Any:
        """The output of one of the Evaluate tab, by what triggers it; choices by their labels."""
        event = self.event_of(name)
        props = [self.components[i]["props"] for i in event["inputs"]]
        await self._join(event, [choices.get(p.get("label"), p.get("value")) for p in props])
        return await self._until_done(1)

    async def _join(self, event: dict[str, Any], data: list[Any]) -> None:
        body = {"fn_index": event["id"], "data": data, "session_hash": self.hash}
        await self.site.post("/gradio_api/queue/join", json=body)

    async def _until_done(self, events: int) -> Any:
        """Read what the queue sends until so many events have ended; the output of the last."""
        path, who = "/gradio_api/queue/data", {"session_hash": self.hash}
        async with self.site.client.stream("GET", path, params=who) as stream:
            async for line in stream.aiter_lines():
                message = json.loads(line[6:]) if line.startswith("data: ") else {}
                if message.get("msg") == "process_completed":
                    events -= 1
                    if not message["success"]:
                        raise ValueError(str(message["output"].get("error"))[:200])
                if events <= 0 or message.get("msg") == "close_stream":
                    return message.get("output")
        return None


async def type_sentences(site: Site) -> None:
    """Open a page, type some sentences word by word, look at what stands beside, leave."""
    page = Page(site)
    async with page.opened():
        for _ in range(random.randint(3, 8)):
            length = random.choice([4, 8, 12, 20, 40, 100, 250])
            words = some_text(length, masks=random.choice([0, 1, 1, 2, 5])).split()
            state = {"model": random.choice(site.models), "top_k": random.choice([5, 10, 50])}
            for length_so_far in sorted({random.randint(1, length) for _ in range(6)} | {length}):
                state["text"] = " ".join(words[:length_so_far])
                await page.served("answer", state, "sentence")
                await site.pause()
            if random.random() < 0.5:
                state["compare"] = random.choice(site.models)
            aside = random.choice(ASIDES)
            await page.served(aside, state | {"start": 0, "label": "CSV"}, f"beside it: {aside}")
            await site.pause()
            if random.random() < 0.05:
                long = {"text": some_text(9_000)[:50_000]}
                await page.served("answer", long, "50,000 characters")


async def call_endpoint(site: Site) -> None:
    """A program's question through the queue: each is one of a stranger."""
    text, model = some_text(random.randint(3, 150), 1), random.choice(site.models)
    with site.measured("program"):
        event = await site.post("/gradio_api/call/predict", json={"data": [text, model, 5, ""]})
        answer = await site.client.get(f"/gradio_api/call/predict/{event['event_id']}")
        if "event: complete" not in answer.text:
            raise ValueError(answer.text[:200])
    await site.pause()


async def open_and_close(site: Site) -> None:
    async with Page(site).opened():
        await site.pause()


async def evaluate(site: Site, ending: str) -> None:
    """Start an evaluation and watch it; at the `end` it is "watched", "left" or "cancelled"."""
    page, few = Page(site), ending == "watched"
    async with page.opened():
        chosen: dict[str, Any] = {"Candidate": random.choice(site.models)}
        chosen |= {"Number of texts": 10 if few else 100, "Seed": random.randint(0, 9999)}
        if random.random() < 0.5:
            chosen |= {"Texts": "paste", "Texts to paste": some_text(300)}
        else:
            chosen["Texts"] = "upload"
            with site.measured("upload"):
                chosen["Text, CSV, TSV or JSON lines"] = await page.upload(200)
        with site.measured(f"evaluation {ending}"):
            await page.open_evaluate()
            await page.event("evaluate-run", chosen)
            for _ in range(20 if few else random.randint(1, 4)):
                await asyncio.sleep(0.5)
                await page.event("timer")
            if ending == "cancelled":
                await page.event("evaluate-cancel")
    await site.pause(8)


STRANGER = {"x-forwarded-for": "203.0.113.7"}  # RFC 5737; a page believes its own machine


def _sent(path: str, content: Any, *, keyword: str = "json") -> Callable[..., Awaitable[int]]:
    async def send(site: Site) -> int:
        answer = await site.client.post(path, headers=STRANGER, **{keyword: content})
        return answer.status_code

    return send


async def invent_a_session(site: Site) -> int:
    path = f"/gradio_api/heartbeat/{secrets.token_hex(8)}"
    with suppress(httpx.ReadTimeout):
        await site.client.get(path, headers=STRANGER, timeout=random.uniform(0.1, 2.0))
    return 200


async def send_half_a_request(site: Site) -> int:
    address = site.client.base_url
    _, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: a\r\n")
    await writer.drain()
    await asyncio.sleep(random.uniform(0.1, 5.0))
    writer.close()
    return 200


async def paste_much(site: Site) -> int:
    page = await _evaluating(site)
    event = page.event_of("evaluate-run")
    props = [page.components[number]["props"] for number in event["inputs"]]
    texts = {"Texts": "paste", "Texts to paste": f"{page.hash} " * 50_000}
    data = [texts.get(values.get("label"), values.get("value")) for values in props]
    return await _sent("/gradio_api/queue/join", _event(event["id"], data, page.hash))(site)


async def choose_what_no_menu_has(site: Site) -> int:
    page = await _evaluating(site)
    event = page.event_of("evaluate-run")
    data = ["<b>no choice</b>"] * len(event["inputs"])
    return await _sent("/gradio_api/queue/join", _event(event["id"], data, page.hash))(site)


async def _evaluating(site: Site) -> Page:
    page = Page(site)
    await page.open_evaluate()
    return page


def _event(number: Any, data: list[Any], session: str = "attacker") -> dict[str, Any]:
    return {"fn_index": number, "data": data, "session_hash": session}


# Each gives a status; that of a server which failed counts as an error.
ATTACKS = (
    *(invent_a_session, send_half_a_request, paste_much, choose_what_no_menu_has),
    _sent("/gradio_api/queue/join", _event(9999, [])),
    _sent("/gradio_api/queue/join", "{" * 1000, keyword="content"),
    _sent("/class/", {"base": "http://a/".ljust(2250, "x")}),
    _sent("/class/", {"base": "http://a/class/", "key": "guessed"}),
    _sent("/class/ABCD/answer", {"round": 1, "guesses": [{"word": "\u200b", "amount": 100}]}),
)


async def attack(site: Site) -> None:
    with site.measured("attack"):
        status = await random.choice(ATTACKS)(site)
        if status >= 500:
            raise ValueError(f"the server failed with {status}")
    await site.pause()


# Of 32 clients the last ones do something else than type.
OTHERS = (
    *(call_endpoint, call_endpoint, open_and_close),
    *(partial(evaluate, ending=end) for end in ("watched", "left", "cancelled")),
)


async def load(url: str, process: int, args: argparse.Namespace, site: Site) -> list[float]:
    """Keep all clients busy until the time is over; the samples of memory, in MB."""
    # An idle connection is given up before the server, which waits 5 s, closes it.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=2)
    options = {"base_url": url, "limits": limits, "timeout": 300, "trust_env": False}
    async with httpx.AsyncClient(**options) as client:
        await site.reach(client)

        async def live(behaviour: Callable[[Site], Awaitable[None]]) -> None:
            while True:
                await site.pause(random.random())
                await behaviour(site)

        typing = max(1, args.clients - len(OTHERS) - args.attackers)
        clients = [type_sentences] * typing + [attack] * args.attackers + [*OTHERS]
        tasks = [asyncio.create_task(live(visit)) for visit in clients]
        samples, deadline = [], time.monotonic() + 60 * args.minutes
        while time.monotonic() < deadline:
            await asyncio.sleep(SAMPLE_SECONDS)
            samples.append(memory_mb(process))
            for task in tasks:
                if task.done():
                    task.result()  # what broke it
            if len(samples) % 20 == 0:
                answered = sum(map(len, site.seconds.values()))
                print(f"{len(samples) * SAMPLE_SECONDS:5.0f} s {samples[-1]:7.0f} MB", end=" ")
                print(f"{answered:7} answers, {site.errors.total()} errors", flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return samples


def report(samples: list[float], left: list[Path], site: Site) -> bool:
    """Print what was measured; whether all is as it should be."""
    first = min(int(REFERENCE_SECONDS / SAMPLE_SECONDS), len(samples) // 2)
    window = max(1, min(int(WINDOW_SECONDS / SAMPLE_SECONDS), len(samples) // 4))
    begin = statistics.median(samples[first : first + window])
    last = statistics.median(samples[-window:])
    growth = 100 * (last / begin - 1)
    print(f"memory: {begin:.0f} MB after {first * SAMPLE_SECONDS:.0f} s, {last:.0f} MB at the end")
    print(f"growth: {growth:+.1f}%, highest {max(samples):.0f} MB")
    for kind, seconds in sorted(site.seconds.items()):
        ordered = sorted(seconds)
        p50, p95 = (ordered[min(len(ordered) * p // 100, len(ordered) - 1)] for p in (50, 95))
        latencies = (
            f"p50 {1e3 * p50:6.0f} ms  p95 {1e3 * p95:6.0f} ms  longest {1e3 * ordered[-1]:6.0f}"
        )
        print(f"{kind:24}{len(ordered):7}  {latencies} ms")
    for error, times in site.errors.most_common(12):
        print(f"error, {times} times: {error}")
    print(f"files left: {len(left)}", *map(str, left[:20]), sep="\n  ")
    return growth <= GROWTH_PERCENT and not left and not site.errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--attackers", type=int, default=0, help="so many of the clients")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds between two questions")
    parser.add_argument("--public", action="store_true")
    parser.add_argument("--model", action="append", default=[*MODELS], help="one more")
    args = parser.parse_args()
    site, environment = Site(args), os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for name in ("TMPDIR", "FILLMASK_UI_RUNS", "FILLMASK_UI_CACHE"):
            environment[name] = str(Path(folder) / name)
            Path(environment[name]).mkdir()
        with started(*["--public"][: args.public], env=environment) as (url, page):
            samples = asyncio.run(load(url, page.pid, args, site))
        # As a service manager ended it.
        root = Path(environment["TMPDIR"])
        left = [path.relative_to(root) for path in root.rglob("*")]
        left = [path for path in left if str(path) not in GRADIOS]
    return 0 if report(samples, left, site) else 1


if __name__ == "__main__":
    sys.exit(main())
