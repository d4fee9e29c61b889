"""UCX, and Open MPI and OpenSHMEM over UCX, in a network without losses."""

import sys
import unittest

from programs import Programs
from ucx_programs import DATAGRAMS, MPI, RELIABLE, MpiJobs, ShmemJobs, UcxTransfers

Programs.run_program = sys.argv.pop(1)
MpiJobs.mpi_check = sys.argv.pop(1)
ShmemJobs.shmem_check = sys.argv.pop(1)


class UcxOverRc(UcxTransfers, Programs):
    environment_more = RELIABLE


class UcxOverUd(UcxTransfers, Programs):
    environment_more = DATAGRAMS


class MpiOverRc(MpiJobs, ShmemJobs, Programs):
    environment_more = {**MPI, **RELIABLE}


class MpiOverUd(MpiJobs, ShmemJobs, Programs):
    environment_more = {**MPI, **DATAGRAMS}


if __name__ == "__main__":
    unittest.main(verbosity=2)
