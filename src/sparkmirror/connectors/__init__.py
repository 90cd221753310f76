"""What the MirrorMaker connectors are: validate, plan, reconcile. They run nothing."""
