"""The units say what they must, and systemd takes them, where this machine has its tools."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
UNITS = {"millrace-worker@.service": "millrace-worker@1.service", "millrace-coordinator.service": "millrace-coordinator.service"}
MUST = {
    "Type": "notify", "NotifyAccess": "main", "WatchdogSec": "30", "Restart": "on-failure", "RestartPreventExitStatus": "2 4",
    "LoadCredential": "password:/etc/millrace/password", "Environment": "MILLRACE_PASSWORD_FILE=%d/password",
    "NoNewPrivileges": "yes", "ProtectSystem": "strict", "User": "millrace",
}
DRAIN_SECONDS = 30  # engine.stop_timeout
MOST_EXPOSED = "20"  # systemd-analyze security, in tenths
failures = []


def check(asked, measured, holds):
    print(f"{'ok    ' if holds else 'FAILED'}  {asked}: {measured}", flush=True)
    if not holds:
        failures.append(asked)


def settings_of(unit):
    lines = [line.partition("=") for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return {key: value for key, _, value in lines}


def check_settings(unit):
    settings = settings_of(unit)
    wrong = {key: settings.get(key) for key, value in MUST.items() if settings.get(key) != value}
    check(f"{unit.name} says what it must", wrong or "all of it", not wrong)
    stop = int(settings["TimeoutStopSec"])
    check(f"{unit.name} stops it after its drain at the earliest", f"{stop} s", stop > DRAIN_SECONDS)


def check_with_systemd(folder, name):
    """A copy whose program is there, under the name of an instance."""
    text = (BINARY / "conf" / "systemd" / name).read_text()
    program = next(line for line in text.splitlines() if line.startswith("ExecStart=")).split()[0][len("ExecStart="):]
    copy = pathlib.Path(folder) / UNITS[name]
    copy.write_text(text.replace(program, "/bin/true"))
    for command in (["verify", "--man=no"], ["security", "--offline=yes", f"--threshold={MOST_EXPOSED}"]):
        done = subprocess.run(["systemd-analyze", *command, str(copy)], capture_output=True, text=True, timeout=60)
        said = done.stdout + done.stderr
        quiet = command[0] != "verify" or not said.strip()
        check(f"systemd-analyze {command[0]} {name}", said.strip().splitlines()[-1:] or "nothing to say",
              done.returncode == 0 and quiet)


if __name__ == "__main__":
    for unit in UNITS:
        check_settings(BINARY / "conf" / "systemd" / unit)
    if shutil.which("systemd-analyze"):
        with tempfile.TemporaryDirectory() as temporary:
            for unit in UNITS:
                check_with_systemd(temporary, unit)
    sys.exit(1 if failures else 0)
