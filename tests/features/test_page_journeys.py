"""Unmask and Quantize from beginning to end, every tab by keyboard, and a public page."""

from accessibility import STILL, accessible
from journey import Evaluate, Explore, Visitor
from playwright.sync_api import expect
from serving import serving

# How the element that has the focus is drawn, and how the one that had it before is drawn now.
_RINGS = """() => {
    const ring = (element) => {
        const style = getComputedStyle(element);
        return [style.outlineStyle, style.outlineWidth, style.outlineColor].join(" ");
    };
    const [here, before] = [document.activeElement, window.focused_before];
    window.focused_before = here;
    const box = here.getBoundingClientRect();
    return {
        name: here.outerHTML.slice(0, 120),
        page: here === document.body,
        drawn: box.width > 4 && box.height > 4 && getComputedStyle(here).opacity > 0.5,
        ring: ring(here),
        before: before && before !== here ? ring(before) : "",
    };
}"""
LEAST_STOPS = {"Explore": 12, "Unmask": 30, "Learn": 25, "Evaluate": 24, "Quantize": 12, "Guide": 7}


def test_who_moves_by_keyboard_sees_where_they_are(visit):
    visitor = Visitor(page := visit(color_scheme="dark"))
    # Who has many models has lists that scroll.
    page.add_style_tag(content=STILL + "[role=listbox] { max-height: 2rem !important; }")
    expect(page.locator("#bars .fm-row").first).to_be_visible()
    for tab, least in LEAST_STOPS.items():
        visitor.tab(tab)
        if tab == "Evaluate":
            Evaluate(page).form().unfold("Stored runs")
            page.get_by_label("Upload").locator("visible=true").check()
            expect(page.locator("#run-list :is(table, p)").first).to_be_visible()
        # An answer that comes meanwhile replaces what has the focus.
        expect(page.locator("[aria-busy=true]").locator("visible=true")).to_have_count(0)
        if tab == "Unmask":
            expect(page.get_by_role("region", name="Setting A", exact=True)).to_be_visible()
        page.locator("h1").evaluate("title => { title.tabIndex = -1; title.focus(); title.blur() }")
        ring, seen = "solid 2px rgb(94, 234, 212)", 0
        while seen < 300:
            page.keyboard.press("Tab")
            focus = page.evaluate(_RINGS)
            assert focus["before"] != ring, "a ring stays where the focus was"
            if focus["page"]:
                break
            assert focus["drawn"], focus
            assert focus["ring"] == ring, focus
            seen += 1
        assert least <= seen < 300


def test_strangers_on_a_public_page(visit, tmp_path, monkeypatch):
    from fillmask_ui.ui.page import build_app

    monkeypatch.setenv("FILLMASK_UI_RUNS", str(tmp_path))
    with serving(build_app(public=True), public=True) as url:
        bench = Evaluate(page := visit({"tab": "evaluate"}, url=url, width=390, height=844))
        expect(page.get_by_role("tab", name="Quantize")).to_have_count(0)
        expect(page.get_by_label("Data set")).to_have_count(0)
        asked = visit({"tab": "quantize"}, url=url)
        expect(asked.get_by_text("Quantize is not offered on a public page")).to_be_visible()
        bench.form()
        page.get_by_label("Paste").check()
        page.get_by_label("Texts to paste").fill("The river freezes early this year.")
        page.get_by_label("Number of texts").fill("100000")
        bench.run()
        expect(bench.notice.get_by_role("alert")).to_contain_text("at most")
        bench.form()
        page.get_by_label("Number of texts").fill("10")
        bench.run()
        expect(bench.value).to_be_visible()
        bench.unfold("Stored runs")
        expect(bench.runs).to_have_count(1)
        accessible(page)
        link = {
            "tab": "evaluate",
            "run": bench.runs.get_attribute("data-key").removeprefix("show:"),
        }
        # Another browser finds no run, by list or by link, and no model of this machine.
        other = Evaluate(visit(link, url=url))
        expect(other.notice.get_by_role("alert")).to_contain_text("Unknown run")
        other.unfold("Stored runs")
        expect(other.runs).to_have_count(0)
        other.tab("Explore")
        explore = Explore(other.page)
        explore.pick("Model", "/etc/passwd")
        expect(explore.notice).to_contain_text("not offered on this public page")
        for opened in (page, asked, other.page):
            opened.context.close()
