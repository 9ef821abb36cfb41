"""A connector as another package would bring it: numbered lines of files in a folder, read as a log with partitions.

``<folder>/id`` says which folder it is, ``<folder>/<partition>.lines`` has lines of an offset, a blank and a value. It
stands in this tree to show that a connector needs no change of mzshare.
"""
