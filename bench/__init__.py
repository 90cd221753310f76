"""What sparkmirror costs and reaches, beside the real Java MirrorMaker 2 where it can be, on real brokers.

`python -m bench` starts both clusters, runs every side alternately and prints medians with their spread. A
side is whatever fills the target: sparkmirror, MM2 with its defaults, MM2 with Strimzi's high-volume
settings, or the ceiling (`bench.replay`), a producer that reads nothing. The same probe measures all of
them from outside.
"""
