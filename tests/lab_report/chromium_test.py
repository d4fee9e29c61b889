"""Test of a roci-lab report in a browser: the charts are drawn, the console has no messages, and the pointer over a
line shows its values."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

LAB = pathlib.Path(sys.argv.pop(1)).resolve()
TIMEOUT = 60

# Two algorithms, unlimited and finite flows, so that every chart shows data.
SCENARIO = """
name: small
about: a test of reports, </script><b>
source: "nobody"
duration: 300us
settle: 60us
drain: 1ms
topology: {kind: star, hosts: 5, link: {rate: 25Gbps, delay: 1us}}
hosts:
  congestion_control: {profile: dcqcn}
switches:
  queue: 4MiB
traffic:
  - {name: long, pattern: fan_in, from: [h0, h1], to: h4, size: unlimited}
  - {name: short, pattern: fan_in, from: [h2, h3], to: h4, size: 20000, flows: 2, stagger: 50us}
variants:
  - name: dcqcn
  - name: hpcc
    set:
      hosts.congestion_control.profile: hpcc
      hosts.telemetry: {udp_port: 5201, begin: all}
      switches.telemetry: {udp_port: 5201, switch_id: 1}
"""

CHARTS = ("queue", "spread", "throughput", "goodput", "slowdown")

# Counts the pixels of a chart that have the color of one of its lines.
DRAWN = """
const canvas = document.getElementById(arguments[0]);
const lines = Chart.getChart(canvas).data.datasets.map((one) => one.borderColor);
const colours = lines.map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let found = 0;
for (let i = 0; i < pixels.length; i += 4)
  if (colours.some((rgb) => rgb.every((part, k) => Math.abs(part - pixels[i + k]) < 12))) ++found;
return found;
"""
TOOLTIP = """
const tooltip = Chart.getChart(arguments[0]).tooltip;
return {opacity: tooltip.opacity, title: tooltip.title, lines: tooltip.body.flatMap((one) => one.lines)};
"""


class ReportInBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="roci-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        scenario = cls.folder / "small.yaml"
        scenario.write_text(SCENARIO)
        made = subprocess.run([LAB, "run", scenario, "-q", "--threads", "1", "-o", cls.folder / "results"],
                              capture_output=True, text=True, timeout=TIMEOUT)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        cls.last_line = made.stdout.splitlines()[-1]
        cls.browser = cls.start_browser()

    @classmethod
    def start_browser(cls):
        options = webdriver.ChromeOptions()
        # No host name resolves, so the browser cannot load anything from the network.
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                         "--disable-dev-shm-usage", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND",
                         f"--user-data-dir={cls.folder / 'profile'}", "--window-size=1280,900"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        cls.addClassCleanup(browser.quit)
        browser.set_page_load_timeout(TIMEOUT)
        return browser

    def open(self, theme="light", width=1280):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.get((self.folder / "results" / "report.html").as_uri())

    def tearDown(self):
        self.assertEqual(self.browser.get_log("browser"), [])

    def point_at(self, chart):
        canvas = self.browser.find_element(By.ID, chart)
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
        ActionChains(self.browser).move_to_element(canvas).perform()
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            tooltip = self.browser.execute_script(TOOLTIP, chart)
            if tooltip["opacity"] == 1:
                return tooltip
            time.sleep(0.05)
        return self.fail(f"pointing at the chart {chart} shows nothing: {tooltip}")

    def test_last_output_line_contains_report_path(self):
        self.assertEqual(self.last_line, f"report: {self.folder / 'results' / 'report.html'}")

    def test_draws_every_chart_in_both_themes_and_at_phone_width(self):
        for theme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            self.open(theme, width)
            for chart in CHARTS:
                with self.subTest(chart=chart, theme=theme, width=width):
                    self.assertGreater(self.browser.execute_script(DRAWN, chart), 100)
            wide = self.browser.execute_script("return document.documentElement.scrollWidth")
            self.assertLessEqual(wide, width, "the page is wider than the screen")

    def test_tooltip_shows_values_of_chart(self):
        self.open()
        queue = self.point_at("queue")
        self.assertRegex(queue["title"][0], r"^at [0-9.]+ us$")
        self.assertEqual(len(queue["lines"]), 2)
        for line in queue["lines"]:
            self.assertRegex(line, r"^ (dcqcn|hpcc): [0-9.]+ K?B$")
        self.assertRegex(self.point_at("spread")["title"][0], r"^[0-9.]+ % of the time at most$")
        self.assertRegex(self.point_at("throughput")["lines"][0], r"^ (dcqcn|hpcc): [0-9.]+ [GMK]?b/s$")

    def test_run_selection_filters_chart_lines(self):
        self.open()
        boxes = self.browser.find_elements(By.CSS_SELECTOR, "#run-chips input")
        self.assertEqual(len(boxes), 2)
        boxes[0].click()
        lines = "return Chart.getChart('queue').data.datasets.map((one) => one.label)"
        self.assertEqual(self.browser.execute_script(lines), ["hpcc"])
        self.browser.find_element(By.ID, "choose-none").click()
        self.assertEqual(self.browser.execute_script(lines), [])
        self.browser.find_element(By.ID, "choose-all").click()
        self.assertEqual(self.browser.execute_script(lines), ["dcqcn", "hpcc"])

    def test_shows_markup_in_description_as_text(self):
        self.open()
        self.assertIn("</script><b>", self.browser.find_element(By.ID, "about").text)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "header b"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
