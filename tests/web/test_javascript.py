from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from playwright.async_api import Route, async_playwright

from tests.web.chromium import launch

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted(path.name for path in (ROOT / "tests/js").glob("*.test.js"))
ORIGIN = "http://modules.localhost"
IMPORTS = """<script type="importmap">{"imports": {
  "node:test": "/tests/js/shim.js", "node:assert/strict": "/tests/js/shim.js"}}</script>"""
RUN = """async (name) => {
  const { results } = await import('/tests/js/shim.js');
  await import(`/tests/js/${name}`);
  return results;
}"""


async def serve(route: Route) -> None:
    path = ROOT / route.request.url.removeprefix(f"{ORIGIN}/")
    if path == ROOT:
        await route.fulfill(body=IMPORTS, content_type="text/html")
    else:
        await route.fulfill(body=path.read_text(encoding="utf-8"), content_type="text/javascript")


@pytest.mark.e2e
@pytest.mark.parametrize("name", TESTS)
async def test_the_pages_pure_modules_keep_their_rules_in_a_browser(name):
    async with async_playwright() as playwright, await launch(playwright) as chromium:
        page = await chromium.new_page()
        await page.route(f"{ORIGIN}/**", serve)
        await page.goto(f"{ORIGIN}/")
        results = await page.evaluate(RUN, name)
    assert results
    assert [result for result in results if not result["ok"]] == []


# Node is a convenience of developers: where there is none, the browser has run the same tests.
if shutil.which("node"):

    async def test_the_pages_pure_modules_keep_their_rules_in_node():
        command = ["node", "--test", *(str(ROOT / "tests/js" / name) for name in TESTS)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
