"""Questions about many things at once, each answered from one snapshot. Nothing here changes anything."""
