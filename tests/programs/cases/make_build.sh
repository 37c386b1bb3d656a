set -e
printf 'all: b\nb: a\n\t@tr a-z A-Z < a > b; cat b\na:\n\t@echo made by make > a\n.PHONY: all\n' > Makefile
make -s; make -s -j4; make -q && echo "up to date"
