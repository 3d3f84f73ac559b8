"""The main job on MariaDB: 16,049 payments from the file to the last settle, each awarded exactly once."""
import time

from chaos.scenario import PAYMENTS, TOTAL_PAYMENTS, main


def run(s):
    s.start_mariadb()
    s.apply_schema()
    submit = ("submit", "--handler", "award_points", "--from", PAYMENTS, "--key-column", "payment_id")
    began = time.monotonic()
    s.millrace(*submit)
    worker = s.start_worker(arguments=["--until-idle"])
    code = worker.exit_code(120)
    seconds = time.monotonic() - began
    s.check("the worker ends by itself with code 0", f"code {code}", code == 0)
    s.check("submitted and done in under 30 s", f"{seconds:.1f} s", seconds < 30)
    s.check(f"{TOTAL_PAYMENTS} succeeded, 0 failed", f"{s.done()} succeeded, {s.failed()} failed",
            (s.done(), s.failed()) == (TOTAL_PAYMENTS, 0))
    s.check_points()

    s.millrace(*submit)
    s.check("the same file again adds nothing", f"{s.unfinished()} tasks added", s.unfinished() == 0)


if __name__ == "__main__":
    main(run)
