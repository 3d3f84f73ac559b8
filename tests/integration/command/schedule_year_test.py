"""`millrace schedule show NAME --next 400` in twenty zones, odd ones among them, against two others.

When it fires is compared with tests/support/cron_oracle.py, a second implementation; what the zone's clock shows then,
with Hinnant's library itself. Usage: schedule_year_test.py ZONE_CLOCK, the program that asks that library.
"""
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from cron_oracle import firings

# Two hours and half an hour at once, quarters of an hour, midnight, no saving in Ramadan, the far south and north.
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Antarctica/Troll",
         "Africa/Casablanca", "America/Sao_Paulo", "Pacific/Chatham", "America/St_Johns", "Asia/Gaza", "Europe/Dublin",
         "Africa/Cairo", "America/Havana", "Asia/Beirut", "Pacific/Kiritimati", "America/Nuuk", "America/Asuncion",
         "Asia/Tehran", "UTC"]
EXPRESSIONS = {"nightly": "30 2 * * *", "midnight": "0 0 * * *", "odd": "*/20 2 * * *", "even": "0 */2 * * *"}
FIRINGS = 400
A_DAY = 86400


def instant(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


class ScheduleYearTest(unittest.TestCase):
    zone_clock = ""

    def page(self, folder, name):
        program = os.path.join(os.environ["MILLRACE_BINARY_DIR"], "millrace")
        done = subprocess.run([program, "schedule", "show", name, "--next", str(FIRINGS), "--json", "--config", "m.json",
                               "--store", "sqlite:none.db"], cwd=folder, env={**os.environ, "HOME": folder},
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["schedules"][0]["firings"]

    def check_zone(self, folder, zone):
        begin = int(time.time()) // 60 * 60
        expected = dict(zip(EXPRESSIONS, firings(zone, EXPRESSIONS.values(), begin, begin + (FIRINGS + 2) * A_DAY)))
        nights = 0
        for name in EXPRESSIONS:
            with self.subTest(zone=zone, schedule=name):
                page = self.page(folder, f"{zone.lower().replace('/', '-')}.{name}")
                said = [instant(one["at"]) for one in page]
                self.assertEqual(len(said), FIRINGS)
                # What came due while this test was under way is over.
                from_first = [one for one in expected[name] if one >= said[0]]
                self.assertLessEqual(len(expected[name]) - len(from_first), 1)
                self.assertEqual(said, from_first[:FIRINGS])
                asked = "".join(f"{zone}\t{one}\n" for one in said)
                shown = subprocess.run([self.zone_clock], input=asked, capture_output=True, text=True, check=True)
                self.assertEqual([one["local"] for one in page], shown.stdout.splitlines())
                nights += sum(one["clock_change"] is not None for one in page)
        return nights

    def test_a_page_of_four_hundred_firings_in_twenty_zones(self):
        self.assertEqual(len(set(ZONES)), 20)
        schedules = {f"{zone.lower().replace('/', '-')}.{name}": {"cron": cron, "zone": zone, "handler": "noop"}
                     for zone in ZONES for name, cron in EXPRESSIONS.items()}
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "m.json"), "w") as file:
                json.dump({"schedules": schedules}, file)
            nights = {zone: self.check_zone(folder, zone) for zone in ZONES}
        # The nights on which the clock is changed are marked, where there are any.
        for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll"):
            self.assertGreaterEqual(nights[zone], 4, zone)
        for zone in ("UTC", "Asia/Kathmandu", "Asia/Tehran", "Pacific/Kiritimati"):
            self.assertEqual(nights[zone], 0, zone)


if __name__ == "__main__":
    ScheduleYearTest.zone_clock = sys.argv.pop(1)
    unittest.main()
