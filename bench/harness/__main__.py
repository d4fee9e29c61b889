import sys

from harness import command_line

sys.exit(command_line.main(sys.argv[1:]))
