"""Clients for applications: `MirrorClient`, the functions of `RemoteClusterUtils`, and Connect's REST API."""
