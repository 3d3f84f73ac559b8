"""A partner that fails for a while, one worker: calls fall to the probes, no task is charged more than once, other task
types keep their rate, and all is done after it recovers."""
from chaos.broken import BrokenPartner, handlers
from chaos.scenario import main


def run(s):
    s.start_mariadb()
    s.apply_schema()
    broken = BrokenPartner(s, workers=1)
    s.start_worker(handlers=handlers(broken.partner))
    broken.run(told=None)
    broken.partner.stop()


if __name__ == "__main__":
    main(run)
