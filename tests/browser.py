"""A real Chromium for the tests of Airflow's pages: it hears every complaint, and measures what a person sees.

Contrast is measured here and not by a library: of each text its computed colour, and below it every background that is
painted at its middle (``elementsFromPoint``), laid over one another by their opacity. A text with a picture below it is
named as not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

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
WIDTH, HEIGHT = 1280, 900
"""Pixels: the narrowest window that the pages are made for."""
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

TOO_WIDE = """
() => [document.documentElement, ...document.querySelectorAll(".krb, .krb *, :has(> .krb), :has(> div > .krb)")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && !["inline", "contents"].includes(getComputedStyle(e).display))
  .map((e) => `${e.tagName} ${e.className}: ${e.scrollWidth} in ${e.clientWidth}`)
"""
NOT_REACHED = """
(root) => [...document.querySelectorAll(`${root} a`)].filter((a) => !reached.has(a.href)).map((a) => a.textContent)
"""


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
        """Keep what is seen now."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=self.pictures / f"{name}.png", full_page=True)


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
    """What is wider than the room it has: the page itself, or a part of it that may be scrolled."""
    return list(page.evaluate(TOO_WIDE))


def reached_by_keyboard(page: Page, root: str, *, most: int = 300) -> list[str]:
    """Press Tab through the page once; the texts of the links below ``root`` that never had the focus."""
    page.evaluate(
        """(root) => {
          document.activeElement?.blur();
          globalThis.reached = new Set();
          document.addEventListener("focusin", (e) => e.target.closest(`${root} a`) && reached.add(e.target.href));
        }""",
        root,
    )
    for _ in range(most):
        page.keyboard.press("Tab")
        if not page.evaluate(NOT_REACHED, root):
            return []
    return list(page.evaluate(NOT_REACHED, root))
