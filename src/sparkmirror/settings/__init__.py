"""Settings of connectors and flows, parsed from their properties, and the rules that follow from them.

A *config* is text, as a user wrote it; *settings* are its options as values; a *configured* connector or flow
is what runs by them: its settings and those of its clients.
"""
