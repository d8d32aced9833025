"""The routes of classes, beside Gradio's: a small page for phones, and JSON for wall and phones.

A phone names itself in the header `x-student`, the lecturer's browser has `x-class-secret`. Both
ask with `?v=` the version that they show, and get 204 while there is no other.
"""

import io
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import gradio as gr
import segno
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from fillmask_ui.errors import DataError, FillmaskError
from fillmask_ui.features.classroom.class_rounds import (
    MOST_CHARACTERS,
    ClassSentence,
    parse_sentence,
    split_of,
)
from fillmask_ui.features.classroom.class_run import ClassRun, ClassStore, write_csv
from fillmask_ui.features.classroom.judge import reveal, wall
from fillmask_ui.features.classroom.room import Room, Rooms, hashed
from fillmask_ui.files import user_folder
from fillmask_ui.filling.guesses import Guess
from fillmask_ui.filling.masked_position import find_masked_position
from fillmask_ui.schema import from_json
from fillmask_ui.show.render import render
from fillmask_ui.ui.components import error_message
from fillmask_ui.ui.session import Session
from fillmask_ui.ui.throttle import Throttle

MOST_BODY = 8192  # bytes of a request: the longest sentence and its question
MOST_BASE = 300  # characters of an address that becomes a QR code
_STUDENT = re.compile(r"[0-9a-f]{32}")
# Requests of one phone, of one wall, of one address, behind which a whole hall can be, and rooms
# opened from it: rate a second, burst.
PHONE_RATE, WALL_RATE, ADDRESS_RATE = (2.0, 20.0), (8.0, 40.0), (500.0, 3000.0)
OPEN_RATE = (0.2, 20.0)
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - addresses no phone reaches

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Sent:
    """What walls and phones send; each names what it needs."""

    # To open a room, or to come back to one:
    base: str = ""  # address of these routes, as the wall's browser sees it
    model: str = ""
    code: str = ""
    secret: str = ""
    key: str = ""  # of the lecturer's link
    # What the lecturer does:
    do: Literal["", "ask", "close", "reveal", "strike", "truth", "end"] = ""
    text: str = ""  # a sentence, or a word
    truth: str = ""
    question: str = ""
    # What a student says:
    round: int = 0
    guesses: tuple[Guess, ...] = ()


class Classroom:
    """The classes of one page; `listens` gives the address that its server is bound to.

    The wall goes through the `sentences`, or without any those of its browser. They hold the hidden
    words, so only a wall that names the `key` of the lecturer's link gets them. Finished rounds go
    to the `store`, by default where runs are kept; a public page has none.
    """

    def __init__(
        self,
        session: Session,
        sentences: Sequence[ClassSentence] = (),
        *,
        key: str = "",
        store: ClassStore | None = None,
        listens: Callable[[], str] = lambda: "127.0.0.1",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session, self.sentences, self.listens = session, tuple(sentences), listens
        self._key = key or secrets.token_urlsafe()
        self.store = store
        if store is None and not session.public:
            self.store = ClassStore(user_folder("runs"))
        self.rooms = Rooms(clock)
        self._clock = clock
        self._phones, self._walls = Throttle(*PHONE_RATE), Throttle(*WALL_RATE)
        self._addresses, self._openings = Throttle(*ADDRESS_RATE), Throttle(*OPEN_RATE)

    def routes(self, prefix: str = "") -> list[Route]:
        """The routes below a path. Not a `Mount`: that fails behind a proxy that strips a path."""
        answered = self._answered
        return [
            Route(f"{prefix}/", answered(self._page)),
            Route(f"{prefix}/{{code}}", answered(self._page)),
            Route(f"{prefix}/", answered(self._open), methods=["POST"]),
            Route(f"{prefix}/{{code}}/phone", answered(self._phone), methods=["GET", "POST"]),
            Route(f"{prefix}/{{code}}/answer", answered(self._answer), methods=["POST"]),
            Route(f"{prefix}/{{code}}/wall", answered(self._wall)),
            Route(f"{prefix}/{{code}}/lead", answered(self._lead), methods=["POST"]),
            Route(f"{prefix}/{{code}}/rounds.csv", answered(self._csv)),
        ]

    # ---- What all requests share

    def _answered(self, handler: Handler) -> Handler:
        """A handler within the limits, whose errors become JSON."""

        async def handle(request: Request) -> Response:
            try:
                self._limit(self._addresses, _host(request), "too many requests from this address")
                answer = await handler(request)
            except FillmaskError as error:
                answer = JSONResponse({"error": error_message(error)}, 400)
            except HTTPException as error:
                answer = JSONResponse({"error": error.detail}, error.status_code, error.headers)
            answer.headers["cache-control"] = "no-store"
            return answer

        return handle

    def _limit(self, throttle: Throttle, name: str, reason: str) -> None:
        if not throttle.admit(name, self._clock()):
            raise HTTPException(429, f"{reason}: wait a little", {"retry-after": "3"})

    def _room(self, request: Request) -> Room:
        room = self.rooms.get(request.path_params["code"])
        if room is None:
            raise HTTPException(404, "there is no such class: check the address on the wall")
        return room

    def _student(self, request: Request) -> tuple[Room, str]:
        """The room and the id of a phone, within its limit."""
        room = self._room(request)
        student = request.headers.get("x-student", "")
        if not _STUDENT.fullmatch(student):
            raise HTTPException(400, "the x-student header must be 32 hexadecimal digits")
        self._limit(self._phones, f"{room.run.code} {student}", "too many requests")
        return room, student

    def _lecturer(self, request: Request) -> Room:
        room = self._room(request)
        if not room.is_lecturer(request.headers.get("x-class-secret", "")):
            raise HTTPException(403, "only the browser that opened this class can lead it")
        self._limit(self._walls, room.run.code, "too many requests from this wall")
        return room

    # ---- Phones

    async def _page(self, request: Request) -> Response:
        code = request.path_params.get("code", "")
        room = self.rooms.get(code)
        values = {"code": room.run.code if room else "", "asked": code, "most": MOST_CHARACTERS}
        status = 404 if code and not room else 200
        return HTMLResponse(render("classroom/phone.html", **values), status)

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
        sent = await _sent(request)
        split = split_of(sent.guesses)
        room.join(student)
        if not room.answer(student, sent.round, split):
            raise HTTPException(409, "this round is closed: look at the wall")
        return JSONResponse(room.for_phone(student))

    # ---- The wall

    async def _open(self, request: Request) -> Response:
        """The room of a lecturer's browser, on or stored, else a new one."""
        sent = await _sent(request)
        room, secret = self.rooms.get(sent.code), sent.secret
        if room is not None and not room.is_lecturer(secret):
            room = None
        if room is not None:
            self._limit(self._walls, room.run.code, "too many requests from this wall")
        else:
            self._limit(self._openings, _host(request), "too many classes were opened just now")
        base = _base(sent.base)
        has_key = secrets.compare_digest(sent.key.encode(), self._key.encode())
        if self.sentences and sent.key and not has_key:
            raise HTTPException(
                403, "This link is from an earlier start: open the last one printed."
            )
        if room is None:
            model = await run_in_threadpool(self.session.model, sent.model)
            run = await run_in_threadpool(self._stored, sent)
            if run is None:
                secret = secrets.token_urlsafe(24)
                run = ClassRun(model.signature.to_dict(), "", hashed(secret))
            room = Room(sent.model, run)
            self.rooms.add(room)
        where = self._address(base, room.run.code)
        fragments = {name: render(f"classroom/{name}.html", **where) for name in ("join", "about")}
        slides = [asdict(sentence) for sentence in self.sentences if has_key]
        return JSONResponse(
            {"code": room.run.code, "secret": secret, "slides": slides, **fragments}
        )

    def _stored(self, sent: Sent) -> ClassRun | None:
        """The class that a lecturer's browser had before this process began."""
        if self.store is None or self.rooms.get(sent.code):
            return None
        for name in reversed(self.store.names()):
            if name.endswith(f"-{sent.code}-class"):
                with suppress(DataError):
                    run = self.store.read(name)
                    if run.secret_sha256 == hashed(sent.secret):
                        return run
        return None

    def _address(self, base: URL, code: str) -> dict[str, Any]:
        """The address for phones and whether they can reach it, as the wall says it."""
        reached = True
        if base.hostname in _LOCAL or str(base.hostname).startswith("127."):
            bound_to_all = self.listens() in ("0.0.0.0", "::")  # noqa: S104
            lan = lan_address() if bound_to_all else None
            base, reached = base.replace(hostname=lan), lan is not None
        path = f"{base.path.rstrip('/')}/{code}"
        address = str(base.replace(username=None, path=path, query="", fragment=""))
        qr = [*segno.make(address, micro=False, error="m").matrix_iter(border=2)]
        opens = reached and not self.session.public
        return {"address": address, "reached": reached, "qr": qr, "opens": opens}

    async def _wall(self, request: Request) -> Response:
        room = self._lecturer(request)
        room.seen = self._clock()
        if request.query_params.get("v") == str(room.version):
            return Response(status_code=204)
        return JSONResponse(wall(room))

    async def _lead(self, request: Request) -> Response:
        """What the lecturer does, and what it changes of the finished rounds stored."""
        room, sent = self._lecturer(request), await _sent(request)
        before = room.run
        match sent.do:
            case "ask":
                sentence = parse_sentence(sent.text)
                truth = sent.truth[:MOST_CHARACTERS] or sentence.truth
                question = sent.question or sentence.question
                model = await run_in_threadpool(self.session.model, room.model)
                await run_in_threadpool(find_masked_position, model, sentence.text)
                room.ask(ClassSentence(sentence.text, truth, question))
            case "close":
                room.close()
            case "reveal":
                await reveal(self.session, room)
            case "strike":
                room.strike(sent.text)
            case "truth":
                room.tell(sent.text)
            case "end":
                room.end()
        if self.store and room.run is not before:
            saved = await run_in_threadpool(self.store.save, room.run)
            room.run = replace(room.run, name=saved.name, created=saved.created)
        return JSONResponse(wall(room))

    async def _csv(self, request: Request) -> Response:
        room, target = self._lecturer(request), io.StringIO()
        write_csv(room.run.rounds, target)
        return Response(target.getvalue(), media_type="text/csv; charset=utf-8")


def _base(address: str) -> URL:
    """The address of these routes as a browser sees it; 400 for what is none, or too long."""
    if len(address) <= MOST_BASE:
        with suppress(ValueError):  # of its host or port, which are read here first
            base = URL(address)
            _ = base.hostname, base.port
            return base
    raise HTTPException(400, f"this is no address: {address[:60]}")


def _host(request: Request) -> str:
    return request.client.host if request.client else ""


async def _sent(request: Request) -> Sent:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BODY:
            raise HTTPException(413, "the request is too long")
    return from_json(Sent, bytes(content))


def lan_address() -> str | None:
    """This machine's address in its network; None without one. Nothing is sent."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # of no machine, RFC 5737; it only asks for the route
        return str(probe.getsockname()[0])
    return None


def join_page(demo: gr.Blocks, session: Session) -> None:
    """Serve the classes of a page; they go through the `sentences` of the session's settings."""
    settings = session.settings
    key = settings.get("class_key", "")
    classroom = Classroom(session, settings.get("sentences", ()), key=key)
    demo.extra_startup_events.append(mount(demo, classroom))


def mount(demo: Any, classroom: Classroom) -> Callable[[], Coroutine[Any, Any, None]]:
    """What puts the routes before Gradio's once the page has started."""

    async def start() -> None:
        classroom.listens = lambda: str(demo.server_name)
        demo.app.router.routes[:0] = [
            Route("/class", lambda _: RedirectResponse("class/")),
            *classroom.routes("/class"),
        ]

    return start
