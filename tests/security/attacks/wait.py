"""Says that it has begun and waits until its stdin ends: MARKER"""
import sys

print("begun", flush=True)
sys.stdin.read()
