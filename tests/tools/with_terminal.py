"""Runs a program whose standard input is a terminal without input.

usage: with_terminal.py PROGRAM [ARGUMENT...]
"""

import os
import sys

controller, terminal = os.openpty()
os.set_inheritable(controller, True)  # the terminal exists as long as this descriptor is open
os.dup2(terminal, 0)
os.execvp(sys.argv[1], sys.argv[1:])
