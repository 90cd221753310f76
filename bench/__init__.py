"""Measures sparkmirror on real brokers, where possible beside the real Java MirrorMaker 2.

`python -m bench` starts both clusters, runs every side alternately and prints medians with their spread. A
side is a program that fills the target: sparkmirror, MM2 with its defaults, MM2 with Strimzi's high-volume
settings, or the ceiling (`bench.replay`), a producer that reads nothing. The same probe measures all of
them from outside.
"""
