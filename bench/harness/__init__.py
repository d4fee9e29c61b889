"""The harness of `./roci bench`: measures figures, peers and limits in the same run.

case.py        definition of a case: its figure, what it is compared with, its targets
groups/        the cases, one file per group; a new group is also listed in groups/__init__.py
programs.py    commands of the cases, and parsers of the output of the project's programs
peers.py       the same for third-party programs
run.py         runs a command with a time limit, in an empty folder, without remaining processes
measure.py     runs all commands of a group in rounds, and computes the results
google_benchmark.py, benchmarks.py    the Google Benchmark programs and their tables
compare.py     the same commands with another revision
report.py, document.py    tables as text, results as JSON
command_line.py           options and names
"""
