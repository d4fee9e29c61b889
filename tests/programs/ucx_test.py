"""UCX, and Open MPI over UCX, in a network without losses."""

import sys
import unittest

from programs import Programs
from ucx_programs import DATAGRAMS, MPI, RELIABLE, MpiJobs, UcxTransfers

Programs.run_program = sys.argv.pop(1)
MpiJobs.mpi_check = sys.argv.pop(1)


class UcxOverRc(UcxTransfers, Programs):
    environment_more = RELIABLE


class UcxOverUd(UcxTransfers, Programs):
    environment_more = DATAGRAMS


class MpiOverRc(MpiJobs, Programs):
    environment_more = {**MPI, **RELIABLE}


class MpiOverUd(MpiJobs, Programs):
    environment_more = {**MPI, **DATAGRAMS}


if __name__ == "__main__":
    unittest.main(verbosity=2)
