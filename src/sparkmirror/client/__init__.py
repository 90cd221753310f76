"""What applications ask about replication: `MirrorClient`, and the functions of `RemoteClusterUtils`."""
