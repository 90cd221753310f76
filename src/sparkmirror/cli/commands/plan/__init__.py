"""The command `sparkmirror plan`: shows what a mirror would do, and changes nothing."""
