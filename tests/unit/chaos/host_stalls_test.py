"""What a scenario may excuse by the host: the host's stalls within the time asked for, up to a bound, and never the time
in which the measured process had a core for itself."""
import os
import tempfile
import time
import unittest
from unittest import mock

from chaos import host_stalls
from chaos.host_stalls import LONGEST, cpu_clock, excuse


class Excuse(unittest.TestCase):
    def test_is_the_part_of_a_stall_that_falls_between(self):
        self.assertAlmostEqual(0.03, excuse([(10.05, 0.1)], 10.02, 11))
        self.assertAlmostEqual(0.05, excuse([(10.05, 0.1)], 9, 10))
        self.assertEqual(0, excuse([(10.05, 0.1)], 10.1, 11))

    def test_is_capped(self):
        self.assertEqual(LONGEST, excuse([(10.0 + i, 0.5) for i in range(9)], 0, 100))


class Measured(unittest.TestCase):
    def stalls(self, slept, used):
        """What is noted of one tick that took so long, in which the measured process had a core for so long."""
        class Stop(Exception):
            pass
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "stalls")
            with mock.patch.object(time, "monotonic", side_effect=[0.0, slept, Stop]), \
                    mock.patch.object(time, "sleep"), self.assertRaises(Stop):
                host_stalls.measure(file, mock.Mock(side_effect=[1.0, 1.0 + used]))
            with open(file) as notes:
                return [float(line.split()[1]) for line in notes]

    def test_a_stall_is_noted(self):
        self.assertEqual([0.1], self.stalls(0.1 + host_stalls.TICK, 0.0))

    def test_the_processes_own_time_is_no_stall(self):
        self.assertEqual([0.04], self.stalls(0.1 + host_stalls.TICK, 0.06))
        self.assertEqual([], self.stalls(0.1 + host_stalls.TICK, 0.1))

    def test_another_processes_time_can_be_read(self):
        cpu = cpu_clock(os.getpid())
        before = cpu()
        while cpu() < before + 0.01:
            pass
        self.assertGreater(cpu(), before)


if __name__ == "__main__":
    unittest.main()
