"""The routes of a class: who may do what, what is counted, what is bounded."""

import math
import secrets
import time

import httpx
import pytest
from explore_page import session_of
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from table_model import TableModel
from ui.test_strangers import public

from fillmask_ui.errors import DataError
from fillmask_ui.features.classroom import judge, routes
from fillmask_ui.features.classroom import room as rooms
from fillmask_ui.features.classroom.class_rounds import MOST_WORDS, parse_sentence, split_of
from fillmask_ui.features.classroom.class_run import ClassRun, ClassStore
from fillmask_ui.features.classroom.room import Room, Rooms
from fillmask_ui.features.classroom.routes import MOST_BASE, Classroom
from fillmask_ui.filling import score_candidate_at
from fillmask_ui.filling.guesses import Guess
from fillmask_ui.ui.throttle import Throttle

TEXT = "the [MASK] sat on the mat."
KEY = "of the lecturer's link"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Hall:
    """One room, its lecturer, and phones."""

    def __init__(self, store, *, public=False, listens="0.0.0.0", before=None, sentences=()):
        self.session = session_of(public=public, table=TableModel())
        self.clock = Clock()
        self.classroom = Classroom(
            self.session,
            sentences,
            key=KEY,
            store=store,
            listens=lambda: listens,
            clock=self.clock,
        )
        self.app = Starlette(routes=self.classroom.routes())
        self.http = TestClient(self.app, raise_server_exceptions=True)
        asked = {"base": "http://127.0.0.1:7860/class/", "model": "", **(before or {})}
        self.opened = self.http.post("/", json=asked).json()
        self.code, self.secret = self.opened["code"], self.opened["secret"]

    @property
    def room(self):
        return self.classroom.rooms.get(self.code)

    def lead(self, do, secret=None, **more):
        secret = self.secret if secret is None else secret
        headers = {"x-class-secret": secret}
        return self.http.post(f"/{self.code}/lead", json={"do": do, **more}, headers=headers)

    def phone(self, student, path="phone", **body):
        headers = {"x-student": student}
        if body or path == "join":
            path = path.replace("join", "phone")
            return self.http.post(f"/{self.code}/{path}", json=body, headers=headers)
        return self.http.get(f"/{self.code}/{path}", headers=headers)

    def say(self, student, *guesses, number=None):
        number = self.room.round.number if number is None else number
        told = [{"word": word, "amount": percent} for word, percent in guesses]
        return self.phone(student, "answer", round=number, guesses=told)


@pytest.fixture
def hall(tmp_path):
    return Hall(ClassStore(tmp_path))


def student():
    return secrets.token_hex(16)


def refuse(*_):
    raise HTTPException(429, "wait a little")


def test_a_round_from_the_question_to_the_losses(hall):
    phones = [student() for _ in range(3)]
    for own in phones:
        assert hall.phone(own, "join").json()["phase"] == "waiting"
    assert hall.lead("ask", text="the [cat] sat on the mat.").json()["text"] == TEXT
    hall.say(phones[0], ("dog", 100))
    hall.say(phones[0], ("Cat", 60), ("dog", 20))  # in place of the first
    hall.say(phones[1], ("cat", 100))
    wall = hall.lead("close").json()
    assert (wall["joined"], wall["answered"]) == (3, 2)
    late = hall.say(phones[2], ("cat", 10))
    assert (late.status_code, "closed" in late.json()["error"]) == (409, True)
    wall = hall.lead("reveal").json()
    size = TableModel().signature.vocabulary_size
    pooled = -math.log(0.99 * (0.8 + 0.1 / size) + 0.01 / size)
    assert wall["losses"]["people"] == pytest.approx(pooled)
    own = hall.phone(phones[1]).json()
    assert own["own"] == pytest.approx(-math.log(0.99 + 0.01 / size))
    assert own["people"] == pytest.approx(pooled)
    assert hall.phone(phones[2]).json()["own"] is None
    model = score_candidate_at(TableModel(), TEXT, "cat", 0)
    assert wall["losses"]["model"] == pytest.approx(model.nll_nats)


def test_a_proxy_may_strip_a_path(hall):
    app = Starlette(routes=hall.classroom.routes("/class"))
    http = TestClient(app, root_path="/tools/fill", follow_redirects=False)
    opened = http.post("/class/", json={"base": "http://127.0.0.1/tools/fill/class/"}).json()
    assert http.get(f"/class/{opened['code']}").status_code == 200


def test_only_the_browser_that_opened_a_room_leads_it(hall):
    for secret in ("", "x", hall.secret[:-1]):
        assert hall.lead("end", secret=secret).status_code == 403
        for path in ("wall", "rounds.csv"):
            headers = {"x-class-secret": secret}
            assert hall.http.get(f"/{hall.code}/{path}", headers=headers).status_code == 403
    assert hall.secret not in repr(hall.room.run)
    other = hall.http.post("/", json={"code": hall.code, "secret": "guess"}).json()
    assert other["code"] != hall.code  # a room of one's own instead


def test_only_the_lecturers_link_gets_the_sentences_with_their_hidden_words(tmp_path):
    sentences = [parse_sentence("the [cat] sat on the mat."), parse_sentence("a [dog] ran.")]
    hall = Hall(ClassStore(tmp_path), sentences=sentences, before={"key": KEY})
    assert [slide["truth"] for slide in hall.opened["slides"]] == ["cat", "dog"]
    base, room = {"base": "http://a/class/"}, {"code": hall.code, "secret": hall.secret}
    for sent in ({}, {"code": hall.code}, room):
        answer = hall.http.post("/", json=base | sent)
        assert answer.json()["slides"] == []
        assert "cat" not in answer.text
    wrong = hall.http.post("/", json=base | {"key": f"{KEY}."})
    assert (wrong.status_code, "slides" in wrong.json()) == (403, False)
    assert hall.http.post("/", json=base | room | {"key": KEY}).json()["slides"]
    # Without sentences there is nothing to keep, and no key that could be wrong.
    assert Hall(None, public=True, before={"key": "x"}).opened["slides"] == []


def test_a_wall_of_a_thousand_phones_with_different_words_is_quick(hall):
    hall.lead("ask", text=TEXT)
    for number in range(rooms.MOST_STUDENTS):
        name = student()
        hall.room.join(name)
        words = [Guess(f"word {number} {place}", 33) for place in range(MOST_WORDS)]
        assert hall.room.answer(name, hall.room.round.number, split_of(words))
    seconds = []
    for _ in range(9):
        hall.room.version += 1  # somebody has answered
        begun = time.thread_time()
        shown = judge.wall(hall.room)
        seconds.append(time.thread_time() - begun)
    assert sorted(seconds)[4] < 0.02, seconds
    assert shown["answered"] == rooms.MOST_STUDENTS
    assert judge.wall(hall.room) is shown  # until something changes


def test_a_long_address_draws_no_code_and_floods_are_slowed_before_one_is(hall, monkeypatch):
    drawn = []
    monkeypatch.setattr(routes.segno, "make", lambda *_, **__: drawn.append(1))
    for length in (MOST_BASE + 1, 2250):
        long = hall.http.post("/", json={"base": "http://a/".ljust(length, "x")})
        assert long.status_code == 400
    before = {"base": "http://a/class/", "code": hall.code, "secret": hall.secret}
    monkeypatch.setattr(hall.classroom, "_limit", refuse)
    for sent in ({"base": "http://a/class/"}, before):
        assert hall.http.post("/", json=sent).status_code == 429
    assert not drawn


def test_a_phone_that_comes_back_is_where_it_was(hall):
    own = student()
    assert hall.phone(own).status_code == 404
    hall.phone(own, "join")
    hall.lead("ask", text=TEXT)
    hall.say(own, ("cat", 70), ("dog", 30))
    assert hall.phone(own, "join").json()["sent"] == [["cat", 70.0], ["dog", 30.0]]
    version = hall.phone(own).json()["version"]
    hall.say(student(), ("dog", 50))  # of others phones need not hear
    headers = {"x-student": own}
    assert hall.http.get(f"/{hall.code}/phone?v={version}", headers=headers).status_code == 204
    hall.say(own)
    assert "sent" not in hall.phone(own).json()
    assert (len(hall.room.students), len(hall.room.splits())) == (2, 1)


def test_what_comes_from_strangers_is_bounded(hall, monkeypatch):
    own = student()
    hall.lead("ask", text=TEXT)
    assert hall.phone("me", "join").status_code == 400
    assert hall.say(own, ("x" * 41, 50)).status_code == 400
    assert hall.say(own, ("a", 90), ("b", 20)).status_code == 400
    for unseen in (
        "\u200b",
        "\u202e",
        "\u3164",
        "\u2800",
        "\u200d\ufe0f",
        "\U000e0041",
        "\u00ad\n",
    ):
        assert "1 to 40 characters" in hall.say(own, (unseen, 50)).json()["error"]
    long = hall.http.post(f"/{hall.code}/answer", content="x" * 9000, headers={"x-student": own})
    assert long.status_code == 413
    assert hall.phone(own, "answer", round="x", guesses=[]).status_code == 400
    script = "<script>alert(1)</script>"
    assert hall.say(student(), (script, 50)).status_code == 200
    main = hall.lead("close").json()["html"]["main"]
    assert script not in main
    assert "&lt;script&gt;" in main
    monkeypatch.setattr(rooms, "MOST_STUDENTS", len(hall.room.students))
    assert "full" in hall.phone(student(), "join").json()["error"]


def test_a_phone_that_floods_is_slowed_and_others_are_not(hall):
    own, other = student(), student()
    hall.phone(own, "join")
    codes = [hall.phone(own).status_code for _ in range(60)]
    assert codes[0] == 200
    assert codes[-1] == 429
    assert hall.phone(other, "join").status_code == 200
    hall.clock.now += 5
    assert hall.phone(own).status_code == 200


def test_a_wall_that_floods_and_rooms_without_end(hall):
    headers = {"x-class-secret": hall.secret}
    codes = [hall.http.get(f"/{hall.code}/wall", headers=headers).status_code for _ in range(60)]
    assert (codes[0], codes[-1]) == (200, 429)
    opened = [hall.http.post("/", json={"base": "http://a/class/"}) for _ in range(30)]
    assert (opened[0].status_code, opened[-1].status_code) == (200, 429)
    assert opened[-1].headers["retry-after"] == "3"


def test_buckets_fill_again_and_are_bounded():
    throttle = Throttle(rate=1.0, burst=2, most=3)
    assert [throttle.admit("a", 0.0) for _ in range(3)] == [True, True, False]
    assert throttle.admit("a", 1.0)
    for name in "bcd":
        throttle.admit(name, 1.0)
    assert len(throttle._buckets) == 3


def test_rooms_are_bounded_in_number_and_age(monkeypatch):
    monkeypatch.setattr(rooms, "MOST_ROOMS", 2)
    clock = Clock()
    all_rooms = Rooms(clock)

    def add():
        room = Room("", ClassRun({}, "", ""))
        all_rooms.add(room)
        return room

    first, second = add(), add()
    with pytest.raises(DataError, match="all 2 classes"):
        add()
    clock.now += rooms.STALE_SECONDS + 1
    second.seen = clock.now
    third = add()  # in the place of the one whose wall is gone
    assert all_rooms.get(first.run.code) is None
    assert all_rooms.get(second.run.code.lower()) is second
    clock.now += rooms.ROOM_SECONDS - 1
    assert all_rooms.get(third.run.code) is third
    assert all_rooms.get(second.run.code) is None
    third.seen = clock.now  # its wall still asks
    clock.now += 2
    assert all_rooms.get(third.run.code) is None


def test_a_hidden_word_that_is_told_later_or_never(hall):
    own = student()
    hall.lead("ask", text=TEXT)
    hall.say(own, ("cat", 100))
    hall.lead("close")
    assert "not known" in hall.lead("reveal").json()["html"]["side"]
    assert hall.room.run.rounds[0].losses is None
    hall.lead("ask", text="a [MASK] ran.")
    hall.say(own, ("dog", 100))
    hall.lead("close")
    assert hall.lead("truth", text="dog").json()["losses"] is None
    assert hall.lead("reveal").json()["losses"]["people"] < 0.02
    # A finished sentence is shown again, not asked twice.
    again = hall.lead("ask", text="a [MASK] ran.").json()
    assert again["phase"] == "revealed"
    assert len(hall.room.run.rounds) == 2


def test_nobody_answered(hall):
    hall.lead("ask", text=TEXT)
    assert "Nobody has answered" in hall.lead("reveal").json()["error"]
    assert hall.lead("ask", text=TEXT).json()["phase"] == "open"  # again
    assert hall.say(student(), ("cat", 100)).status_code == 200


def test_a_page_that_starts_anew_has_the_finished_rounds(tmp_path, hall):
    own = student()
    hall.lead("ask", text="the [cat] sat on the mat.")
    hall.say(own, ("cat", 100))
    hall.lead("reveal")
    before = {"code": hall.code, "secret": hall.secret}
    again = Hall(ClassStore(tmp_path), before=before)
    assert again.code == hall.code
    assert again.room.run.rounds == hall.room.run.rounds
    assert again.phone(own).status_code == 404  # it joins, and goes on
    assert again.phone(own, "join").json()["phase"] == "waiting"
    again.lead("ask", text="a [dog] ran.")
    again.say(own, ("dog", 100))
    again.lead("reveal")
    (name,) = ClassStore(tmp_path).names()
    assert len(ClassStore(tmp_path).read(name).rounds) == 2
    stranger = Hall(ClassStore(tmp_path), before={**before, "secret": "guess"})
    assert stranger.code != hall.code
    stored = (tmp_path / name / "class.json").read_text()
    assert own not in stored
    assert hall.secret not in stored


def test_a_public_page_stores_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path))
    hall = Hall(None, public=True)
    hall.lead("ask", text="the [cat] sat on the mat.")
    hall.say(student(), ("cat", 100))
    assert hall.lead("reveal").json()["phase"] == "revealed"
    assert not any(tmp_path.iterdir())


def test_the_address_that_phones_can_reach(tmp_path, monkeypatch):
    monkeypatch.setattr(routes, "lan_address", lambda: "192.168.7.5")
    hall = Hall(ClassStore(tmp_path))

    def found(base, code):
        return hall.classroom._address(routes._base(base), code)

    assert (
        found("http://127.0.0.1:7860/class/", "ABCD")["address"]
        == "http://192.168.7.5:7860/class/ABCD"
    )
    space = found("https://me-page.hf.space/class/", "ABCD")
    assert (space["address"], space["reached"]) == ("https://me-page.hf.space/class/ABCD", True)
    assert found("http://localhost:7860/class/", "ABCD")["opens"]
    assert (
        found("http://[fd00::1]:80/class/", "ABCD")["address"] == "http://[fd00::1]:80/class/ABCD"
    )
    for base in ("http://[", "http://a:b/", "http://a/" + "x" * 3000):
        assert hall.http.post("/", json={"base": base}).status_code == 400
    assert hall.classroom.rooms.get(hall.code) is hall.room
    local = Hall(ClassStore(tmp_path), listens="127.0.0.1")
    assert "listens on this machine only" in local.opened["join"]
    assert "--public" in hall.opened["about"]
    assert "--public" not in Hall(None, public=True).opened["about"]


def test_the_page_of_a_phone(hall):
    page = hall.http.get(f"/{hall.code.lower()}")
    assert len(page.content) < 30_000
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    assert hall.http.get("/ZZZZ").status_code == 404
    assert "Class code" in hall.http.get("/").text


def test_a_room_takes_so_many_rounds(hall, monkeypatch):
    hall.lead("ask", text="the [cat] sat on the mat.")
    hall.say(student(), ("cat", 100))
    hall.lead("reveal")
    monkeypatch.setattr(rooms, "MOST_ROUNDS", 1)
    assert "at most 1 rounds" in hall.lead("ask", text="a [dog] ran.").json()["error"]


def test_striking_a_word_takes_it_from_the_wall_and_changes_no_loss(hall, monkeypatch):
    hall.lead("ask", text="the [cat] sat on the mat.")
    hall.say(student(), ("cat", 50), ("rude", 50))
    assert "rude" in hall.lead("close").json()["html"]["main"]
    wall = hall.lead("strike", text="Rude").json()
    assert "rude" not in wall["html"]["main"]
    assert "1 struck" in wall["html"]["main"]
    # What nobody said is not kept as struck, and there is an end to it.
    version = hall.room.version
    hall.lead("strike", text="x" * 8000)
    monkeypatch.setattr(rooms, "MOST_STRUCK", 1)
    hall.lead("strike", text="cat")
    assert (hall.room.round.struck, hall.room.version) == ({"rude"}, version)
    wall = hall.lead("reveal").json()
    assert "rude" not in wall["html"]["main"]
    headers = {"x-class-secret": hall.secret}
    assert "rude" not in hall.http.get(f"/{hall.code}/rounds.csv", headers=headers).text
    assert "rude" not in repr(hall.room.run)
    size = TableModel().signature.vocabulary_size
    assert wall["losses"]["people"] == pytest.approx(-math.log(0.99 * 0.5 + 0.01 / size))


def test_a_class_keeps_its_hidden_words_from_students():
    sentences = [parse_sentence("Past us galloped a [zebra].")]
    with public(settings={"sentences": sentences, "class_key": "key"}) as (url, _):
        http = httpx.Client(trust_env=False, timeout=300)
        opened = {"base": f"{url}class/"}
        student = http.post(f"{url}class/", json=opened)
        assert (student.status_code, "zebra" in student.text) == (200, False)
        assert "zebra" not in http.get(url).text + http.get(f"{url}config").text
        lecturer = http.post(f"{url}class/", json=opened | {"key": "key"}).json()
        assert lecturer["slides"][0]["truth"] == "zebra"
