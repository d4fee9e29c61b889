"""The harness behind `./roci bench`: figures of ours next to peers and limits, measured in the same run.

case.py        what a case is: our figure, what it stands next to, its targets
groups/        the cases, one file a group; add yours there, and to groups/__init__.py
programs.py    commands as cases name them, and what is read from the output of our own programs
peers.py       the same of other people's programs
run.py         runs a command: in time, in a folder of its own, leaving nothing behind
measure.py     rounds of all commands of a group in turn, and what they come to
google_benchmark.py, benchmarks.py    the Google Benchmark programs and their tables
compare.py     the same commands of another revision
report.py, document.py    tables for people, JSON for programs
command_line.py           options and names
"""
