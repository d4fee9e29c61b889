"""MPI programs of the distribution in addition to Open MPI's test: MPICH, mpi4py and HPC Challenge. All of their traffic uses UCX."""

import pathlib
import re
import subprocess
import sys
import unittest

from programs import PYTHON, Programs, require_programs
from ucx_programs import DATAGRAMS, MPI, RELIABLE, MpiJobs, mpi_command

Programs.run_program = sys.argv.pop(1)
HERE = pathlib.Path(__file__).resolve().parent
HPCC_EXAMPLE = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
HPCC_SIZE = 400  # order of the matrices, instead of 1000


class Mpich(MpiJobs):
    """The job of the Open MPI tests, compiled with MPICH."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mpi_check = cls.folder / "mpi-check"
        subprocess.run(["mpicc.mpich", "-O1", "-o", cls.mpi_check, HERE / "mpi_check.c"], check=True)
        # Otherwise ranks of one machine use MPICH's own shared memory.
        cls.environment["MPIR_CVAR_NOLOCAL"] = "1"

    def command(self, ranks, program):
        return "mpiexec.hydra", "-n", ranks, program


class MpichOverRc(Mpich, Programs):
    environment_more = RELIABLE


class MpichOverUd(Mpich, Programs):
    environment_more = DATAGRAMS


class Mpi4py:
    def test_collectives_of_python_objects_and_arrays(self):
        for ranks in (2, 4):
            job = self.wait(self.start(*mpi_command(ranks, PYTHON), HERE / "mpi4py_check.py"), limit=240)
            self.assertEqual(job.status, 0, job.text)
            self.assertIn(f"{ranks} ranks: all data correct", job.text)


class Mpi4pyOverRc(Mpi4py, Programs):
    environment_more = {**MPI, **RELIABLE}


class Mpi4pyOverUd(Mpi4py, Programs):
    environment_more = {**MPI, **DATAGRAMS}


class HpcChallenge(Programs):
    environment_more = {**MPI, **RELIABLE, "OPENBLAS_NUM_THREADS": "1"}

    def test_all_benchmarks_verify_their_results(self):
        text, changed = re.subn(r"(?m)^1000( +Ns)", rf"{HPCC_SIZE}\1", HPCC_EXAMPLE.read_text(encoding="utf-8"))
        self.assertEqual(changed, 1, text)
        (self.folder / "hpccinf.txt").write_text(text, encoding="utf-8")
        result = self.folder / "hpccoutf.txt"
        for ranks in (2, 4):
            result.unlink(missing_ok=True)
            job = self.wait(self.start(*mpi_command(ranks, "hpcc")), limit=600)
            self.assertEqual(job.status, 0, job.text)
            written = result.read_text(encoding="utf-8")
            self.assertIn("Success=1", written)
            self.assertNotRegex(written, r"FAILED|[1-9]\d* tests completed and failed")
            self.assertRegex(written, "PASSED")


if __name__ == "__main__":
    require_programs("mpicc.mpich", "mpiexec.hydra", "hpcc", modules=["mpi4py"])
    unittest.main(verbosity=2)
