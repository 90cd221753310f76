"""The commands of `sparkmirror`, one module or package each."""
