"""The routes of classes, beside Gradio's: a small page for phones, and JSON for wall and phones.

POST /class/                 open a room: its code, the lecturer's secret, what the wall needs
GET  /class/, /class/CODE    the page of a phone
GET  /class/CODE/phone?v=N   what it shows, or 204 while that is N; by POST it comes in
POST /class/CODE/answer      what a student says
GET  /class/CODE/wall?v=N    what the wall shows, or 204; POST .../lead: open, close, reveal, ...

A phone names itself in the header `x-student`, the lecturer's browser has `x-class-secret`.
"""

import io
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from fillmask_ui.errors import DataError, FillmaskError, OptionError
from fillmask_ui.files import user_folder
from fillmask_ui.filling.guesses import Guess
from fillmask_ui.lessons.class_rounds import (
    MOST_CHARACTERS,
    MOST_SENTENCE_CHARACTERS,
    Sentence,
    Split,
    parse_sentence,
)
from fillmask_ui.runs.class_run import ClassRun, ClassStore, write_csv
from fillmask_ui.schema import from_json
from fillmask_ui.show.render import render
from fillmask_ui.ui.classroom.judge import check_sentence, judge, qr_rows, wall_html
from fillmask_ui.ui.classroom.room import Room, Rooms, Throttle, hashed
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.session import Session

MOST_BODY = 4096  # bytes of a request
_STUDENT = re.compile(r"[0-9a-f]{32}")
# Requests of one phone, of one wall, of one address, behind which a whole hall can be, and rooms
# opened from it: rate a second, burst.
PHONE_RATE, WALL_RATE, ADDRESS_RATE = (2.0, 20.0), (8.0, 40.0), (500.0, 3000.0)
OPEN_RATE = (0.2, 20.0)
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - addresses no phone reaches

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Opening:
    """What the wall asks for."""

    base: str = ""  # address of these routes, as its browser sees it
    model: str = ""
    code: str = ""  # of a room that it had before
    secret: str = ""


@dataclass(frozen=True)
class Lead:
    """What the lecturer does."""

    do: Literal["ask", "close", "reveal", "strike", "truth", "end"]
    text: str = ""  # a sentence, or a word
    truth: str = ""
    question: str = ""


@dataclass(frozen=True)
class Answer:
    """What a student says."""

    round: int
    guesses: tuple[Guess, ...]


class Classroom:
    """The classes of one page; `listens` gives the address that its server is bound to.

    The wall goes through the `sentences`, or without any those of its browser. Finished rounds go
    to the `store`, by default where runs are kept; a public page has none.
    """

    def __init__(
        self,
        session: Session,
        sentences: Sequence[Sentence] = (),
        *,
        store: ClassStore | None = None,
        listens: Callable[[], str] = lambda: "127.0.0.1",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session, self.sentences, self.listens = session, tuple(sentences), listens
        self.store = store
        if store is None and not session.public:
            self.store = ClassStore(user_folder("runs"))
        self.rooms = Rooms(clock)
        self._clock = clock
        self._phones, self._walls = Throttle(*PHONE_RATE), Throttle(*WALL_RATE)
        self._addresses, self._opened = Throttle(*ADDRESS_RATE), Throttle(*OPEN_RATE)

    def app(self) -> Starlette:
        """The routes, to be mounted at `/class`."""
        routes = [Route("/", self._page), Route("/{code}", self._page)]
        for path, method, handler in (
            ("/", "POST", self._open),
            ("/{code}/phone", "GET POST", self._phone),
            ("/{code}/answer", "POST", self._answer),
            ("/{code}/wall", "GET", self._wall),
            ("/{code}/lead", "POST", self._lead),
            ("/{code}/rounds.csv", "GET", self._csv),
        ):
            routes.append(Route(path, self._answered(handler), methods=method.split()))
        return Starlette(routes=routes)

    # ---- What all requests share

    def _answered(self, handler: Handler) -> Handler:
        """A handler within the limits, whose errors become JSON."""

        async def handle(request: Request) -> Response:
            try:
                if not self._addresses.admit(_address_of(request), self._clock()):
                    raise HTTPException(429, "too many requests from this address: wait a little")
                answer = await handler(request)
            except FillmaskError as error:
                answer = JSONResponse({"error": error_message(error)}, 400)
            except HTTPException as error:
                answer = JSONResponse({"error": error.detail}, error.status_code)
            if answer.status_code == 429:
                answer.headers["retry-after"] = "3"
            answer.headers["cache-control"] = "no-store"
            return answer

        return handle

    def _room(self, request: Request) -> Room:
        room = self.rooms.get(request.path_params["code"])
        if room is None:
            raise HTTPException(404, "there is no such class: look at the address on the wall")
        return room

    def _student(self, request: Request) -> tuple[Room, str]:
        """The room and the id of a phone, within its limit."""
        room = self._room(request)
        student = request.headers.get("x-student", "")
        if not _STUDENT.fullmatch(student):
            raise HTTPException(400, "a phone names itself by 32 hexadecimal digits")
        if not self._phones.admit(f"{room.run.code} {student}", self._clock()):
            raise HTTPException(429, "too many requests: wait a little")
        return room, student

    def _lecturer(self, request: Request) -> Room:
        room = self._room(request)
        if not room.is_lecturer(request.headers.get("x-class-secret", "")):
            raise HTTPException(403, "only the browser that opened this class leads it")
        if not self._walls.admit(room.run.code, self._clock()):
            raise HTTPException(429, "too many requests of this wall: wait a little")
        return room

    # ---- Phones

    async def _page(self, request: Request) -> Response:
        code = request.path_params.get("code", "")
        room = self.rooms.get(code)
        values = {"code": room.run.code if room else "", "asked": code if room is None else ""}
        html = render("page/class/phone.html", most=MOST_CHARACTERS, **values)
        return HTMLResponse(html, 200 if room or not code else 404, {"cache-control": "no-store"})

    async def _phone(self, request: Request) -> Response:
        room, student = self._student(request)
        if request.method == "POST":
            room.join(student)
        elif student not in room.students:
            raise HTTPException(404, "join first")
        elif request.query_params.get("v") == str(room.phase_version):
            return Response(status_code=204)
        return JSONResponse(room.for_phone(student))

    async def _answer(self, request: Request) -> Response:
        room, student = self._student(request)
        said = await _body(request, Answer)
        split = Split.of(said.guesses)
        room.join(student)
        if not room.answer(student, said.round, split):
            raise HTTPException(409, "this round is closed: look at the wall")
        return JSONResponse(room.for_phone(student))

    # ---- The wall

    async def _open(self, request: Request) -> Response:
        asked = await _body(request, Opening)
        self._address(asked.base, "")  # before a room is opened
        secret, room = asked.secret, self.rooms.get(asked.code)
        if room is None or not room.is_lecturer(secret):
            if not self._opened.admit(_address_of(request), self._clock()):
                raise HTTPException(429, "many classes were opened just now: wait a minute")
            model = await run_in_threadpool(self.session.model, asked.model)
            lost = await run_in_threadpool(self._stored, asked.code, secret)
            secret = secret if lost else secrets.token_urlsafe(24)

            def make(code: str) -> Room:
                fresh = ClassRun(model.signature.to_dict(), code, hashed(secret))
                return Room(asked.model, lost or fresh, self._clock)

            room = self.rooms.add(make, lost.code if lost else "")
        told: dict[str, Any] = {"code": room.run.code, "secret": secret}
        where = self._address(asked.base, room.run.code)
        told["slides"] = [asdict(own) for own in self.sentences]
        told["join"] = render("page/class/join.html", **where)
        told["about"] = render("page/class/about.html", **where)
        return JSONResponse(told)

    def _stored(self, code: str, secret: str) -> ClassRun | None:
        """The stored class that a lecturer's browser had before this process began."""
        if self.store is None or not re.fullmatch(r"\w{4}", code) or self.rooms.get(code):
            return None
        for name in reversed(self.store.names()):
            if f"-{code}-class" in name:
                with suppress(DataError):
                    run = self.store.read(name)
                    if run.secret_sha256 == hashed(secret):
                        return run
        return None

    def _address(self, base: str, code: str) -> dict[str, Any]:
        """The address for phones and whether they can reach it, as the wall says it."""
        try:
            own, bound = urlsplit(base), self.listens()
            host, port = own.hostname or "", own.port
            reached = not (host in _LOCAL or host.startswith("127."))
            if not reached and bound in ("0.0.0.0", "::") and (lan := lan_address()):  # noqa: S104
                host, reached = lan, True
            place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
            address = f"{own.scheme}://{place}{own.path.rstrip('/')}/{code}"
            shown = {"address": address, "reached": reached, "qr": qr_rows(address)}
        except ValueError as error:  # not of a browser; or too long for a code
            raise HTTPException(400, f"this is no address: {base[:60]}") from error
        return {**shown, "opens": reached and not self.session.public}

    async def _wall(self, request: Request) -> Response:
        room = self._lecturer(request)
        room.seen = self._clock()
        if request.query_params.get("v") == str(room.version):
            return Response(status_code=204)
        return JSONResponse(_shown(room))

    async def _lead(self, request: Request) -> Response:
        room = self._lecturer(request)
        lead = await _body(request, Lead)
        if lead.do == "ask":
            sentence = parse_sentence(lead.text)
            if lead.truth or lead.question:
                truth = lead.truth[:MOST_CHARACTERS]
                sentence = replace(sentence, truth=truth or sentence.truth, question=lead.question)
            model = await run_in_threadpool(self.session.model, room.model)
            await run_in_threadpool(check_sentence, model, sentence.text)
            room.ask(sentence)
        elif lead.do == "reveal":
            await run_in_threadpool(self._reveal, room)
        elif lead.do in ("strike", "truth"):
            (room.strike if lead.do == "strike" else room.tell)(lead.text)
            if room.phase == "revealed":
                await run_in_threadpool(self._save, room)
        else:
            (room.close if lead.do == "close" else room.end)()
        return JSONResponse(_shown(room))

    def _reveal(self, room: Room) -> None:
        room.close()
        now = room.round
        if now is None or now.phase != "closed":
            raise OptionError("no round is on: ask a sentence first")
        model = self.session.model(room.model)
        finished = judge(self.session, model, now.sentence, room.splits())
        if room.reveal(now.number, finished, model.signature.vocabulary_size):
            self._save(room)

    def _save(self, room: Room) -> None:
        if self.store is not None:
            saved = self.store.save(room.run)
            room.run = replace(room.run, name=saved.name, created=saved.created)

    async def _csv(self, request: Request) -> Response:
        room, target = self._lecturer(request), io.StringIO()
        write_csv(room.run.rounds, target)
        return Response(target.getvalue(), media_type="text/csv; charset=utf-8")


def _address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def _shown(room: Room) -> dict[str, Any]:
    """What the wall shows, as JSON."""
    version, now = room.version, room.round
    told: dict[str, Any] = {"version": version, "phase": room.phase}
    told |= {"joined": len(room.students), "answered": len(room.splits())}
    told |= {"text": now.sentence.text if now else "", "html": wall_html(room)}
    losses = now.finished.losses if now and now.finished else None
    return told | {"losses": asdict(losses) if losses else None}


async def _body(request: Request, kind: type[T]) -> T:
    """A small body of JSON."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BODY + 4 * MOST_SENTENCE_CHARACTERS:
            raise HTTPException(413, "the request is too long")
    return from_json(kind, bytes(content))


def lan_address() -> str | None:
    """This machine's address in its network; None without one. Nothing is sent."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # of no machine, RFC 5737; it only asks for the route
        return str(probe.getsockname()[0])
    return None


def mount(demo: Any, classroom: Classroom) -> Callable[[], Awaitable[None]]:
    """What puts the routes before Gradio's once the page has started."""

    async def start() -> None:
        classroom.listens = lambda: str(demo.server_name)
        demo.app.router.routes[:0] = [
            Route("/class", lambda _: RedirectResponse("class/")),
            Mount("/class", classroom.app()),
        ]

    return start
