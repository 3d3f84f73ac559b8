"""Real servers and real workers, killed, paused and cut off for real. See scenario.py for how a test uses it."""
