"""A real Chromium for the tests of Airflow's pages: it hears every complaint, and measures what a person sees.

What keeps people out is found by axe-core. Contrast is measured here as well, since axe measures none in a drawing: of
each text its computed colour, and below it every background that is painted at its middle (``elementsFromPoint``), laid
over one another by their opacity. A text with a picture below it is named as not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Frame, Page, Request, Response, sync_playwright

from lab import ROOT

CHROMIUM = which("chromium")
NEEDED = "chromium is not installed here: these tests drive a real one"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PICTURES = ROOT / "build" / "screenshots"
PATIENCE = 120_000
"""Milliseconds in which a page must show something: on a busy machine, Airflow takes half a minute for its own."""
WIDTH, HEIGHT = 1280, 900
"""Pixels: the narrowest window that the pages are made for."""
HIGHEST = 6000
"""Pixels of a picture."""
ENOUGH = 4.5
"""Contrast of text, by WCAG 2.1, level AA."""
STILL = "*, *::before, *::after { animation: none !important; transition: none !important; caret-color: transparent; }"
"""What is half faded in has no colour of its own yet."""

TEXTS = """
(root) => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour, opacity = 1) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
    return [r, g, b, (a / 255) * opacity];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = c.slice(0, 3).map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const drawn = (element) => element instanceof SVGElement && !(element instanceof SVGSVGElement);
  const ground = (element) => {
    const style = getComputedStyle(element);
    if (!drawn(element)) return rgba(style.backgroundColor, Number(style.opacity));
    if (element instanceof SVGTextContentElement || style.fill === "none") return [0, 0, 0, 0];
    return rgba(style.fill, Number(style.fillOpacity) * Number(style.opacity));
  };
  const found = [];
  const walk = document.createTreeWalker(document.querySelector(root), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, element = node.parentElement, text = node.data.trim();
    if (!text || element.closest("style, script, title, desc, noscript")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const visible = element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    if (!visible || !range.getClientRects().length) continue;
    element.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const box = range.getClientRects()[0];
    const here = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const style = getComputedStyle(element);
    const pictured = (each) => each instanceof HTMLImageElement || getComputedStyle(each).backgroundImage !== "none";
    const below = here.reduceRight((under, each) => over(ground(each), under), [255, 255, 255, 1]);
    const ink = over(drawn(element) ? rgba(style.fill, Number(style.fillOpacity)) : rgba(style.color), below);
    const [a, b] = [light(ink), light(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push({ text: text.slice(0, 60), picture: here.some(pictured), seen: here.includes(element), contrast });
  }
  return found;
}
"""

BELOW = """
() => [document.documentElement, ...document.querySelectorAll("*")]
  .filter((e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowY) || e === document.documentElement)
  .reduce((most, e) => Math.max(most, e.scrollHeight - e.clientHeight), 0)
"""
TOO_WIDE = """
() => {
  const cut = (e, [a, b] = [e, e.ownerSVGElement].map((each) => each.getBoundingClientRect())) =>
    a.left < b.left - 1 || a.right > b.right + 1;
  const flows = (e) => !["inline", "contents"].includes(getComputedStyle(e).display);
  const ours = ".krb, .krb :not(svg *), :has(> .krb), :has(> div > .krb), svg[role=img] text";
  return [document.documentElement, ...document.querySelectorAll(ours)]
    .filter((e) => (e.localName === "text" ? cut(e) : flows(e) && e.scrollWidth > e.clientWidth + 1))
    .map((e) => `${e.tagName} ${e.textContent.trim().slice(0, 40)}: ${e.scrollWidth} in ${e.clientWidth}`);
}
"""
STOPS = ":is(a, summary, button, input)"
"""What a person uses with the keyboard."""
NOT_REACHED = """
(stops) => [...document.querySelectorAll(stops)].filter((e) => !reached.has(e.href ?? e.textContent))
  .map((e) => e.textContent)
"""
BARRIERS = frozenset({"serious", "critical"})
"""Of axe-core's words for how much a finding keeps people out."""


@dataclass
class Watching:
    """One window of a person. ``complaints``: each console error, uncaught exception, failed request, and answer of 400
    and more.
    """

    page: Page
    pictures: Path
    complaints: list[str] = field(default_factory=list)

    def listen(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        # A page that is left ends what it still asks for.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {request.method} {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"answered {response.status}: {response.request.method} {response.url}")

    def picture(self, name: str) -> None:
        """Keep what is seen now, and what is below it: Airflow's pages scroll in parts of theirs, so the window is made
        as high as they need.
        """
        self.pictures.mkdir(parents=True, exist_ok=True)
        below = max(int(each.evaluate(BELOW)) for each in self.page.frames)
        self.page.set_viewport_size({"width": WIDTH, "height": min(HEIGHT + below, HIGHEST)})
        self.page.screenshot(path=self.pictures / f"{name}.png")
        self.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def window(browser: Browser, pictures: Path, *, dark: bool = False, of: Watching | None = None) -> Watching:
    """A new window in Airflow's light or dark colours. ``of``: of the person who logged in there; None: of nobody."""
    context: BrowserContext = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        reduced_motion="reduce",
        locale="en-GB",
        storage_state=of and of.page.context.storage_state(),
    )
    context.set_default_timeout(PATIENCE)
    context.add_init_script(f"localStorage.setItem('theme', '{'dark' if dark else 'light'}')")
    watching = Watching(context.new_page(), pictures)
    watching.listen()
    return watching


def log_in(watching: Watching, url: str, user: str, password: str) -> None:
    """By Airflow's own form; ends on its home page, with no complaint."""
    page = watching.page
    page.goto(url)
    page.locator("input[name=username]").fill(user)
    page.locator("input[name=password]").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Kafka").first.wait_for()
    watching.complaints.clear()  # before that Airflow's own page asks what it may not be told yet: 401


def contrasts(of: Page | Frame, root: str) -> list[dict[str, Any]]:
    """Each text below ``root`` with its contrast; raises AssertionError where one was not measured."""
    of.add_style_tag(content=STILL)
    found: list[dict[str, Any]] = of.evaluate(TEXTS, root)
    assert found, f"there is no text in {root}"
    not_measured = [each["text"] for each in found if each["picture"] or not each["seen"]]
    assert not not_measured, f"not measured: {not_measured}"
    return found


def too_faint(of: Page | Frame, root: str) -> list[str]:
    """The texts of too little contrast, with what they have."""
    return [f"{each['text']}: {each['contrast']:.2f}" for each in contrasts(of, root) if each["contrast"] < ENOUGH]


def scrolls_sideways(page: Page | Frame) -> list[str]:
    """What is wider than the room it has: the page itself, a part of it that may be scrolled, or a text in a drawing
    that is cut off.
    """
    return list(page.evaluate(TOO_WIDE))


def barriers(of: Page | Frame, root: str) -> list[str]:
    """What axe-core calls serious or critical below ``root``: its rule, and the elements."""
    found = Axe().run(of, context=root).response["violations"]
    return [
        f"{each['id']}: {', '.join(node['html'][:120] for node in each['nodes'][:5])}"
        for each in found
        if each["impact"] in BARRIERS
    ]


def not_reached_by_keyboard(page: Page, of: Page | Frame, root: str, *, most: int = 300) -> list[str]:
    """Press Tab through the page once; the texts of the links and the like below ``root`` that never had the focus.
    They are told apart by where they lead, else by their text: the page renews itself meanwhile.
    """
    stops = f"{root} {STOPS}"
    page.evaluate("document.activeElement?.blur()")
    of.evaluate(
        """(stops) => {
          globalThis.reached = new Set();
          const note = (e) => e.target.matches?.(stops) && reached.add(e.target.href ?? e.target.textContent);
          document.addEventListener("focusin", note);
        }""",
        stops,
    )
    left = of.evaluate(NOT_REACHED, stops)
    for _ in range(most if left else 0):
        page.keyboard.press("Tab")
        if not (left := of.evaluate(NOT_REACHED, stops)):
            break
    return list(left)
